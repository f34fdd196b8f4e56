// A workgroup without cells reads no heads.

// A workgroup without cells reads no heads: nobody waits for it to.
count_reader(0u, thread);

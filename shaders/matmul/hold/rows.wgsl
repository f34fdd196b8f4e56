// How matmul_resident.wgsl brings x to workgroup memory: as it is.
//for s in LOADS
if (i$s < $ROWSu * $STAGEu) {
  put_vec8(i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
}
//end

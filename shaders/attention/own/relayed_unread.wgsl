// A workgroup without cells reads no heads: nobody waits for it to.
if (thread == 0u) {
  done(0u);
}
workgroupBarrier();

// How matmul_tensor_held.wgsl brings x to workgroup memory: as it is, by a scale that is known.
let x_scale = x_scales[0];
for (var first = 0u; first < RANGE; first += $BATCHu * THREADS) {
  //for s in BATCH
  let chunk$s = first + $su * THREADS + lane;
  let from$s = (begin + min(chunk$s, RANGE - 1u)) * 2u;
  let a$s = x[from$s];
  let b$s = x[from$s + 1u];
  //end
  //for s in BATCH
  if (chunk$s < RANGE) {
    put_chunk(chunk$s, a$s * x_scale, b$s * x_scale);
  }
  //end
}
workgroupBarrier();

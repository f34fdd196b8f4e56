// How matmul_tiled.wgsl puts a vec8 of x or of W to a buffer: element k of row `own` of 64 is component own % 4
// of vector own / 4 of the k-th QUADS vectors.

fn put(at: u32, own: u32, lo: vec4<f32>, hi: vec4<f32>) {
  //for k in FOUR
  staged[at + $ku * QUADS + own / 4u][own % 4u] = lo[$k];
  //end
  //for k in FOUR
  staged[at + ($ku + 4u) * QUADS + own / 4u][own % 4u] = hi[$k];
  //end
}

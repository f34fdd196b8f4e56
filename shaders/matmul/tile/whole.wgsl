// How matmul_tiled.wgsl stages rounded activations and whole numbers (dot/whole.wgsl). The scales of the weights
// are behind them, QUADS vectors a vec8.

//use matmul/dot/rounded
//use matmul/tile/put

const SCALES_AT = 2u * WEIGHTS_AT;

fn put_x(at: u32, own: u32, lo: vec4<f32>, hi: vec4<f32>) {
  let scale = scale_of(lo, hi);
  put(at, own, round(lo * scale.inverse) * scale.step, round(hi * scale.inverse) * scale.step);
}

//for j in BLOCKS
fn put_block_$j(buffer: u32, own: u32, block: PackedBlock) {
  //for c in BLOCK_VEC8S
  {
    let w = whole_$c(block);
    let v = $ju * $BLOCK_VEC8Su + $cu;
    put(buffer + WEIGHTS_AT + v * 8u * QUADS, own, w.vec8.lo, w.vec8.hi);
    staged[buffer + SCALES_AT + v * QUADS + own / 4u][own % 4u] = w.scale;
  }
  //end
}
//end

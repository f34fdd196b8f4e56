// How matmul_tiled.wgsl stages x and weights that are floats or have zeros of their own.

//use matmul/tile/put

fn put_x(at: u32, own: u32, lo: vec4<f32>, hi: vec4<f32>) {
  put(at, own, lo, hi);
}

//for j in BLOCKS
fn put_block_$j(buffer: u32, own: u32, block: PackedBlock) {
  //for c in BLOCK_VEC8S
  {
    let w = vec8_$c(block);
    put(buffer + WEIGHTS_AT + ($ju * $BLOCK_VEC8Su + $cu) * 8u * QUADS, own, w.lo, w.hi);
  }
  //end
}
//end

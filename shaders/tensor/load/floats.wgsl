// Weights of checkpoints that are quantized already, as f16: the f32 number that the other kernels take, times
// the row's scale, rounded. The slot `floats` declares it, weights/weights_*.wgsl.

//use floats
//use tensor/load/lanes
//use tensor/to_f16

alias Loaded = PackedBlock;

fn load_weights(i: u32) -> Loaded {
  return load_block(i);
}

fn eight_of_x(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a, b);
}

//for p in VEC8S
fn halves_$p(block: Loaded, scale: f32) -> vec4<u32> {
  let w = vec8_$p(block);
  return vec4(bitcast<vec2<u32>>(vec4<f16>(w.lo * scale)), bitcast<vec2<u32>>(vec4<f16>(w.hi * scale)));
}

//end

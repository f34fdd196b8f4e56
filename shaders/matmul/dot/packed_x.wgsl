// Inner products of rounded activations and integers of 8 bits, four products an instruction, in tiles of
// few rows: weights are never unpacked, and take a quarter of the registers that floats would.
//
// n = 256 h + l has two signed bytes, h in -64 .. 64. The sum over a vec8 is exact, so this has the
// bits of whole_x.wgsl.

//use matmul/dot/rounded

struct X {
  bytes: vec4<u32>, // h of the low and the high half, l of both
  step: f32,
}

// 1.5 * 2^23 + 128: the sum with n has n + 128 in its low 16 bits, which is h in the upper byte and
// l + 128 in the lower one.
const BIAS = 12583040.0;

fn with_bias(x: vec4<f32>, inverse: f32) -> vec4<u32> {
  return bitcast<vec4<u32>>(fma(x, vec4<f32>(inverse), vec4<f32>(BIAS)));
}

// The low 16 bits of x and z, and of y and w, in a word each: bytes of both then alternate in order.
fn halves(n: vec4<u32>) -> vec2<u32> {
  return (n.xy & vec2<u32>(0xffffu)) | (n.zw << vec2<u32>(16u));
}

fn upper(n: vec2<u32>) -> u32 {
  return ((n.x >> 8u) & 0xff00ffu) | (n.y & 0xff00ff00u);
}

fn lower(n: vec2<u32>) -> u32 {
  return ((n.x & 0xff00ffu) | ((n.y << 8u) & 0xff00ff00u)) ^ 0x80808080u;
}

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  let scale = scale_of(lo, hi);
  let a = halves(with_bias(lo, scale.inverse));
  let b = halves(with_bias(hi, scale.inverse));
  return X(vec4<u32>(upper(a), upper(b), lower(a), lower(b)), scale.step);
}

fn add_dot(sum: f32, x: X, w: Packed) -> f32 {
  let h = dot4I8Packed(x.bytes.x, w.lo) + dot4I8Packed(x.bytes.y, w.hi);
  let l = dot4I8Packed(x.bytes.z, w.lo) + dot4I8Packed(x.bytes.w, w.hi);
  return fma(f32(256 * h + l), x.step * w.scale, sum);
}

//for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Packed {
  return packed_$c(block);
}
//end

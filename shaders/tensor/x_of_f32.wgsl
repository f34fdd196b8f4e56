// x of matmuls on matrix units: f32 that become two f16 numbers, hi + lo, times their row's scale. Eight of
// them, a chunk, come as the vectors at `first_of(chunk)` of a row and SECOND behind it.

alias X = vec4<f32>;

// [rows, COLS / 4]
@group(0) @binding(1) var<storage, read> x: array<X>;

const SECOND = 1u;

fn first_of(chunk: u32) -> u32 {
  return chunk * 2u;
}

// x with the 11 bits that f16 has. By its bits: a driver takes unpack2x16float(pack2x16float(x)) for x, and
// lo for 0.
fn cut(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4(0xffffe000u));
}

fn packed(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(
    pack2x16float(a.xy),
    pack2x16float(a.zw),
    pack2x16float(b.xy),
    pack2x16float(b.zw),
  );
}

fn hi_of(a: X, b: X, scale: f32) -> vec4<u32> {
  return packed(cut(a * scale), cut(b * scale));
}

fn lo_of(a: X, b: X, scale: f32) -> vec4<u32> {
  return packed(a * scale - cut(a * scale), b * scale - cut(b * scale));
}

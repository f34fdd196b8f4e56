// Weights of the matmuls on matrix units as f16 ($load), and x in the same order of k as the stored weights:
//
//   load_weights(i)         is block i, of $VEC8S vec8s of a row;
//   halves_<p>(block, s)    vec8 p of it times the row's scale;
//   eight_of_x(a, b)        eight numbers of x as f16, in the same order;
//   in_order(eight)         eight numbers that are f16 already, in that order;
//   vec8_of(block)          where the first vec8 of a row's block is;
//   in_stage(chunk)         which vec8 of a stage its chunk `chunk` is.

//#import lib/to_f16

//#if load == whole
// Weights of matmuls on matrix units, bf16 or f16: a block is eight of them, in the order of k.

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [MATRIX_ROWS, COLS / 8]

alias Loaded = vec4<u32>;

fn load_weights(i: u32) -> Loaded {
  return weights[i];
}

fn halves_0(block: Loaded, scale: f32) -> vec4<u32> {
  return eight_halves(block, scale);
}

fn eight_of_x(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a, b);
}

fn in_order(eight: vec4<u32>) -> vec4<u32> {
  return eight;
}

fn vec8_of(block: u32) -> u32 {
  return block;
}

fn in_stage(chunk: u32) -> u32 {
  return chunk;
}
//#else
// Quantized weights of matmuls on matrix units: k goes in the order in which they are stored, and so does x.
// A block of a row has $VEC8S vec8s of it, LANES vec8s apart (matmul/quantize.wgsl).

// Quantized rows that are packed for the invocations that share an output.

fn packed_lanes() -> u32 {
  return LANES;
}

override LANES: u32;

// Where the first vec8 of a row's block is. Blocks a and b, a power of two above b dividing a:
// vec8_of(a + b) = vec8_of(a) + vec8_of(b).
fn vec8_of(block: u32) -> u32 {
  return block / LANES * LANES * $VEC8Su + block % LANES;
}

// The vec8 in chunk c of a stage whose first block is the row's first.
fn in_stage(chunk: u32) -> u32 {
  return vec8_of(chunk / $VEC8Su) + chunk % $VEC8Su * LANES;
}
//#if load == floats
// Weights of checkpoints that are quantized already, as f16: the f32 number that the other kernels take, times
// the row's scale, rounded. The file of the format declares it.

//#import lib/weights_$weights

alias Loaded = PackedBlock;

fn load_weights(i: u32) -> Loaded {
  return load_block(i);
}

fn eight_of_x(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a, b);
}

fn in_order(eight: vec4<u32>) -> vec4<u32> {
  return eight;
}

//#for p in VEC8S
fn halves_$p(block: Loaded, scale: f32) -> vec4<u32> {
  let w = vec8_$p(block);
  return vec4(bitcast<vec2<u32>>(vec4<f16>(w.lo * scale)), bitcast<vec2<u32>>(vec4<f16>(w.hi * scale)));
}

//#endfor
//#else if load == fp4
// mxfp4 and nvfp4 as f16: 2^-14 of the numbers times 2^14, which is exact, times their scale and the row's, cut to f16
// once: the product is rounded once.

//#import lib/weights_$weights

alias Loaded = PackedBlock;

fn load_weights(i: u32) -> Loaded {
  return load_block(i);
}

fn eight_of_x(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a, b);
}

fn in_order(eight: vec4<u32>) -> vec4<u32> {
  return eight;
}

fn two(pair: u32, scale: vec2<f16>) -> u32 {
  return bitcast<u32>(bitcast<vec2<f16>>(pair) * vec2(16384.0h) * scale);
}

//#for p in VEC8S
fn halves_$p(block: Loaded, scale: f32) -> vec4<u32> {
  let pairs = pairs_of_e2m1(block.words[$p]);
  let by = vec2<f16>(f16(large_$p(block) * (scale * 0.00006103515625))); // 2^-14
  return vec4(two(pairs.x, by), two(pairs.y, by), two(pairs.z, by), two(pairs.w, by));
}

//#endfor
//#else
// q8 and q4 as f16: w = q * (scale * the row's scale), the scale of the group cut to f16 once, the product
// rounded once. Weights 0, 2 and 1, 3 of four go together: those are 16 bits apart in their words. x goes in
// the same order.

// Integers in the mantissas of two f16 numbers: `bias` + q each.
fn less(mantissas: u32, bias: f16) -> vec2<f16> {
  return bitcast<vec2<f16>>(mantissas) - vec2<f16>(bias);
}

fn eight_of_x(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a.xzyw, b.xzyw);
}

fn in_order(eight: vec4<u32>) -> vec4<u32> {
  let even = (eight.xz & vec2(0xffffu)) | (eight.yw << vec2(16u));
  let odd = (eight.xz >> vec2(16u)) | (eight.yw & vec2(0xffff0000u));
  return vec4(even.x, odd.x, even.y, odd.y);
}
//#if load == q4
// q4, four vec8s a block. q + 8 in the mantissa of 1024 is 1032 + q, four bits higher 1152 + 16 q.

//#import lib/weights_q4

alias Loaded = PackedBlock;

fn load_weights(i: u32) -> Loaded {
  return load_block(i);
}

fn low_two(word: u32, scale: vec2<f16>) -> u32 {
  return bitcast<u32>(less((word & 0x000f000fu) ^ 0x64086408u, 1032.0h) * scale);
}

fn high_two(word: u32, scale: vec2<f16>) -> u32 {
  let shifted = bitcast<vec2<f16>>((word & 0x00f000f0u) ^ 0x64806480u);
  return bitcast<u32>(fma(shifted, vec2(0.0625h), vec2(-72.0h)) * scale);
}

fn eight(word: u32, group: f32) -> vec4<u32> {
  let scale = vec2<f16>(f16(group));
  return vec4(
    low_two(word, scale),
    low_two(word >> 8u, scale),
    high_two(word, scale),
    high_two(word >> 8u, scale),
  );
}

fn halves_0(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.x, unpack2x16float(block.scales.x).x * scale);
}

fn halves_1(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.y, unpack2x16float(block.scales.x).y * scale);
}

fn halves_2(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.z, unpack2x16float(block.scales.y).x * scale);
}

fn halves_3(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.w, unpack2x16float(block.scales.y).y * scale);
}
//#else
// q8, two vec8s a block. q + 128 in the mantissa of 1024 is 1152 + q.

//#import lib/weights_q8

alias Loaded = PackedBlock;

fn load_weights(i: u32) -> Loaded {
  return load_block(i);
}

fn two(word: u32, scale: vec2<f16>) -> u32 {
  return bitcast<u32>(less((word & 0x00ff00ffu) ^ 0x64806480u, 1152.0h) * scale);
}

fn eight(lo: u32, hi: u32, group: f32) -> vec4<u32> {
  let scale = vec2<f16>(f16(group));
  return vec4(two(lo, scale), two(lo >> 8u, scale), two(hi, scale), two(hi >> 8u, scale));
}

fn halves_0(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.x, block.words.y, unpack2x16float(block.scales).x * scale);
}

fn halves_1(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.z, block.words.w, unpack2x16float(block.scales).y * scale);
}
//#endif
//#endif
//#endif

// Packs rows of a float matrix as q8 or q4: groups of 32 along k, w = q * scale, scale f16,
// q = w / scale to the nearest integer, halves down.
//
// The order is matmul's. Vec8 e = 4 g + t of group g belongs to lane e % LANES; it is vec8 c of the
// lane's block j, e / LANES = j * BLOCK_VEC8S + c, and block j of the lane is block j * LANES + lane of the row.
// Scales are in the order in which the blocks read them: with Q = LANES / 4 (at least 1) quads of lanes, scale
// g = quad + (j * BLOCK_VEC8S + c) * Q has the place (j * Q + quad) * BLOCK_VEC8S + c of the row.
//
// One invocation packs the two groups whose scales share a word. Divisions by the scale may be
// off in their last bits; the remainder, which is exact, corrects them, so that every adapter packs
// the same bits.

//#import lib/weights_$weights
//#if pack == q4
// q4: the largest weight of a group is -8, whatever its sign, as in llama.cpp's Q4_0: -8 is the
// integer that a symmetric range would not use. Of two equally large weights it is the negative one.

const BLOCK_VEC8S = 4u;
const MIN = -8.0;
const MAX = 7.0;

fn scale_of(least: f32, most: f32) -> f32 {
  return select(least, most, most > -least) * -0.125;
}

// Two's complement in the low nibble of each byte.
fn nibbles_of(q: vec4<i32>) -> u32 {
  let u = (vec4<u32>(q) & vec4<u32>(15u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return u.x | u.y | u.z | u.w;
}

fn store_vec8(block: u32, part: u32, lo: vec4<i32>, hi: vec4<i32>) {
  words[4u * block + part] = nibbles_of(lo) | (nibbles_of(hi) << 4u);
}
//#else
// q8: the largest weight of a group is 127 or -127.

const BLOCK_VEC8S = 2u;
const MIN = -127.0;
const MAX = 127.0;

fn scale_of(least: f32, most: f32) -> f32 {
  return max(most, -least) * 0.007874015718698502; // f32 nearest to 1 / 127
}

fn bytes_of(q: vec4<i32>) -> u32 {
  let u = (vec4<u32>(q) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return u.x | u.y | u.z | u.w;
}

fn store_vec8(block: u32, part: u32, lo: vec4<i32>, hi: vec4<i32>) {
  let at = 4u * block + 2u * part;
  words[at] = bytes_of(lo);
  words[at + 1u] = bytes_of(hi);
}
//#endif

override COLS: u32; // a multiple of 64
override LANES: u32; // a power of two that divides the blocks of a row

@group(0) @binding(1) var<storage, read> rows: array<u32>; // [source rows] where each row goes
@group(0) @binding(2) var<storage, read_write> words: array<u32>; // [shard rows, blocks, 4]
@group(0) @binding(3) var<storage, read_write> packed_scales: array<u32>; // [shard rows, COLS / 64]

// The f16 nearest to x, ties to even, at most 65504 in size and never -0. pack2x16float may round
// otherwise, and a subnormal f16 may come back as 0 from unpack2x16float.
struct Half {
  bits: u32,
  value: f32,
}

fn nearest_half(x: f32) -> Half {
  let sign = bitcast<u32>(x) & 0x80000000u;
  let size = min(abs(x), 65504.0);
  if (size < 0.00006103515625) { // 2^-14; below, halves are 2^-24 apart
    let steps = round(size * 16777216.0);
    let signed = select(sign, 0u, steps == 0.0);
    let value = bitcast<u32>(steps * 5.9604644775390625e-8);
    return Half(u32(steps) | (signed >> 16u), bitcast<f32>(value | signed));
  }
  let bits = bitcast<u32>(size);
  let rounded = (bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u;
  return Half(((rounded - 0x38000000u) >> 13u) | (sign >> 16u), bitcast<f32>(rounded | sign));
}

fn quantized(w: vec4<f32>, scale: f32, inverse: f32) -> vec4<i32> {
  let guess = round(w * inverse);
  let rest = (w - guess * scale) * sign(scale);
  let half = vec4<f32>(0.5 * abs(scale));
  let up = select(vec4<f32>(0.0), vec4<f32>(1.0), rest > half);
  let down = select(vec4<f32>(0.0), vec4<f32>(1.0), rest <= -half);
  return vec4<i32>(clamp(guess + up - down, vec4<f32>(MIN), vec4<f32>(MAX)));
}

// Packs the group whose scale has the place `place` in the row; returns the bits of the scale.
fn pack_group(row: u32, place: u32) -> u32 {
  let quads = max(1u, LANES / 4u);
  let step = place / BLOCK_VEC8S; // j * Q + quad
  let group = step % quads + (step / quads * BLOCK_VEC8S + place % BLOCK_VEC8S) * quads;
  let first = row * (COLS / 8u) + 4u * group;
  //#for t in 4
  let w$t = vec8_0(load_block(first + $tu));
  let least$t = min(w$t.lo, w$t.hi);
  let most$t = max(w$t.lo, w$t.hi);
  //#endfor
  let least = min(min(least0, least1), min(least2, least3));
  let most = max(max(most0, most1), max(most2, most3));
  let scale = nearest_half(scale_of(
    min(min(least.x, least.y), min(least.z, least.w)),
    max(max(most.x, most.y), max(most.z, most.w)),
  ));
  let blocks = COLS / 8u / BLOCK_VEC8S;
  //#for t in 4
  {
    let vec8 = 4u * group + $tu;
    let turn = vec8 / LANES; // j * BLOCK_VEC8S + c
    let block = rows[row] * blocks + turn / BLOCK_VEC8S * LANES + vec8 % LANES;
    var lo = vec4<i32>(0);
    var hi = vec4<i32>(0);
    if (scale.value != 0.0) {
      let inverse = 1.0 / scale.value;
      lo = quantized(w$t.lo, scale.value, inverse);
      hi = quantized(w$t.hi, scale.value, inverse);
    }
    store_vec8(block, turn % BLOCK_VEC8S, lo, hi);
  }
  //#endfor
  return scale.bits;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.x / (COLS / 64u);
  let word = id.x % (COLS / 64u);
  if (row < arrayLength(&rows)) {
    let low = pack_group(row, 2u * word);
    let high = pack_group(row, 2u * word + 1u);
    packed_scales[rows[row] * (COLS / 64u) + word] = low | (high << 16u);
  }
}

// out[i] = two bf16 weights, low half first: (2 u - 65535) * scale, rounded to nearest (ties up),
// u = 16 bits of hash32(seed, stream, first + i) each. Uniform, mean 0, standard deviation
// 65536 scale / sqrt(3). One exact conversion and one product: the same bits on every adapter.
//
// One invocation per word; rows of workgroups, because a dispatch has at most 65535 in x and a
// buffer of 2 GiB needs 2^21.

//#import lib/noise

struct Params {
  seed: u32,
  stream: u32, // keeps the matrices of a model apart
  scale: f32,
  first: u32, // word of the stream that out begins with
}

@group(0) @binding(0) var<storage, read> params: Params;
@group(0) @binding(1) var<storage, read_write> out: array<u32>; // [elements / 2]

// bf16 in the upper half of the word.
fn weight(bits: u32) -> u32 {
  let x = f32(i32(2u * bits) - 65535) * params.scale;
  return (bitcast<u32>(x) + 0x8000u) & 0xffff0000u;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) tiles: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = (tile.y * tiles.x + tile.x) * 256u + lane;
  if (i < arrayLength(&out)) {
    let bits = hash32(params.seed, params.stream, params.first + i);
    out[i] = (weight(bits & 0xffffu) >> 16u) | weight(bits >> 16u);
  }
}

// out[g] = sum of the words that workgroup g reads, modulo 2^32: all of `words` is read once.
//
// One workgroup takes vectors at a stride of all invocations, four in flight.

override GROUPS: u32; // workgroups

const LANES = 256u;

@group(0) @binding(0) var<storage, read> words: array<vec4<u32>>; // [count]
@group(0) @binding(1) var<storage, read_write> out: array<u32>; // [GROUPS]

var<workgroup> total: atomic<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let count = arrayLength(&words);
  let stride = GROUPS * LANES;
  var sum = vec4<u32>(0u);
  var i = tile.x * LANES + lane;
  while (i + 3u * stride < count) {
    sum += (words[i] + words[i + stride]) + (words[i + 2u * stride] + words[i + 3u * stride]);
    i += 4u * stride;
  }
  while (i < count) {
    sum += words[i];
    i += stride;
  }
  atomicAdd(&total, (sum.x + sum.y) + (sum.z + sum.w));
  workgroupBarrier();
  if (lane == 0u) {
    out[tile.x] = atomicLoad(&total);
  }
}

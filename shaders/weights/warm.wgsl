// Reads a part of each 32 bytes of a matrix, so that the cache beside memory has it when a matmul asks. It changes
// nothing: `sink` is written only where the words read are all alike a number that no one knows, so that no compiler
// can leave the reads out.
//
// One invocation per $EACH reads, those of neighbours side by side.

override VECTORS: u32; // of the matrix

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [VECTORS]
@group(0) @binding(1) var<storage, read_write> sink: array<u32>; // [1]

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let first = tile.x * 128u * $EACHu + thread;
  //for j in EACH
  let v$j = weights[min(2u * (first + $ju * 128u), VECTORS - 1u)];
  //end
  var all = vec4<u32>(0xffffffffu);
  //for j in EACH
  all &= v$j ^ vec4<u32>($(j * 40503 + 2654435)u);
  //end
  if ((all.x & all.y & all.z & all.w) == 0xffffffffu) {
    sink[0] = first;
  }
}

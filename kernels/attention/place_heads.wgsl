// Stores the heads of a qkv matmul that left sums over SPLIT_K ranges of k, as the epilogue qkv of a whole matmul does:
// the sums are added in the order of the ranges, q and k turned by rope, q stored in `out`, k and v in the KV pages.
// The two numbers of a rope pair are half a row apart.
//
// One invocation per (rope pair, row).

//#import lib/place_head

override SPLIT_K: u32;

const THREADS = 128u;

@group(0) @binding(0) var<storage, read> sums: array<f32>; // [SPLIT_K, rows, Q_HEADS + 2 KV_HEADS, HEAD_DIM]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, Q_HEADS, HEAD_DIM]: q

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let heads = Q_HEADS + 2u * KV_HEADS;
  let half = heads * (HEAD_DIM / 2u);
  let pair = tile.x * THREADS + thread;
  if (pair >= half) {
    return;
  }
  let head = pair / (HEAD_DIM / 2u);
  let w = pair % (HEAD_DIM / 2u);
  let place = head_place(tile.y, head, w);
  let stride = arrayLength(&sums) / SPLIT_K;
  let first = tile.y * 2u * half + pair;
  var sum = vec2<f32>(sums[first], sums[first + half]);
  for (var s = 1u; s < SPLIT_K; s++) {
    sum += vec2<f32>(sums[s * stride + first], sums[s * stride + first + half]);
  }
  put_head(place, head, w, sum);
}

// logits[r, e] = sum_k normed[r, k] W[e, k] with normed[r] = v / sqrt(mean(v^2) + EPS) * norm_weight, v = x[r]
// plus the sums of a split-K matmul, for few rows: every workgroup norms the row for itself. The first of a row
// stores v in `stream` and normed[r].
//
// One workgroup per row and $PART experts. The norm has the order of norm/rms_norm.wgsl, the logits that of
// matmul.wgsl: MATRIX_LANES lanes share one, and have $STEPS vec8s of its weights on their way from before the row is
// normed. Slots:
//   weights: `load_block` and `vec8_0` of a float format (weights/weights_*.wgsl).
//   note: as of norm/rms_norm.wgsl.
//   total: `fn total(x, lane)`, the sum over a workgroup (row_total.wgsl, or of few lanes fragments/workgroup_sum.wgsl).

//use weights
//use fragments/vec8
//use total
//use note
//use matmul/dot/add8

alias Sum = f32;

override COLS: u32; // COLS / 8 is a multiple of MATRIX_LANES * $STEPS
override EPS: f32;
override LANES: u32; // of the norm
override MATRIX_LANES: u32; // divides LANES
override ROW_VECTORS: u32; // COLS / 4
override LOGITS: u32; // of a row

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(2) var<storage, read> sums: array<vec4<f32>>; // [$SUMS, rows, COLS / 4]
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(4) var<storage, read_write> stream: array<vec4<f32>>; // [rows, COLS / 4]: not x
@group(0) @binding(5) var<storage, read_write> normed: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(6) var<storage, read_write> logits: array<f32>; // [rows, LOGITS]

// The normed row: the low halves of its vec8s and then the high ones.
var<workgroup> row_vectors: array<vec4<f32>, ROW_VECTORS>;
var<workgroup> lane_sums: array<f32, $LANE_SUMS>; // of a group, and one of padding

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}

fn norm_row(row: u32, store: bool, lane: u32) {
  let first = row * (COLS / 4u);
  let stride = arrayLength(&sums) / $SUMSu;
  var sum = 0.0;
  //for j in NORMED
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var g$j = Vec8();
  if (i$j < COLS / 8u) {
    let at = first + 2u * i$j;
    var branch = Vec8(sums[at], sums[at + 1u]);
    //for s in MORE_SUMS
    branch.lo += sums[($su + 1u) * stride + at];
    branch.hi += sums[($su + 1u) * stride + at + 1u];
    //end
    v$j = Vec8(x[at] + branch.lo, x[at + 1u] + branch.hi);
    g$j = Vec8(norm_weight[2u * i$j], norm_weight[2u * i$j + 1u]);
  }
  sum = add_squares(add_squares(sum, v$j.lo), v$j.hi);
  //end
  let scale = 1.0 / sqrt(total(sum, lane) / f32(COLS) + EPS);
  var peak = 0.0;
  //for j in NORMED
  if (i$j < COLS / 8u) {
    let lo = v$j.lo * scale * g$j.lo;
    let hi = v$j.hi * scale * g$j.hi;
    row_vectors[i$j] = lo;
    row_vectors[COLS / 8u + i$j] = hi;
    peak = seen(peak, Vec8(lo, hi));
    if (store) {
      let at = first + 2u * i$j;
      stream[at] = v$j.lo;
      stream[at + 1u] = v$j.hi;
      normed[at] = lo;
      normed[at + 1u] = hi;
    }
  }
  //end
  if (store) {
    note(row, lane, peak);
  }
  workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let vec8s = COLS / 8u;
  let lane = thread % MATRIX_LANES;
  let group = thread / MATRIX_LANES;
  // Groups without a logit of their own read that of the last, which is in the cache.
  let at = min(tile.x * $PARTu + min(group, $PARTu - 1u), LOGITS - 1u) * vec8s + lane;
  //for s in STEPS
  var block$s = load_block(at + $su * MATRIX_LANES);
  //end
  norm_row(tile.y, tile.x == 0u, thread);
  var sum = 0.0;
  let step = $STEPSu * MATRIX_LANES;
  for (var k = 0u; k < vec8s; k += step) {
    //for s in STEPS
    {
      let i = k + $su * MATRIX_LANES + lane;
      sum = add8(sum, row_vectors[i], row_vectors[vec8s + i], vec8_0(block$s));
      //for m in MORE
      block$s = load_block(at + min(k + step, vec8s - step) + $su * MATRIX_LANES);
      //end
    }
    //end
  }
  lane_sums[group * (MATRIX_LANES + 1u) + lane] = sum;
  workgroupBarrier();
  let own = tile.x * $PARTu + thread;
  if (thread < $PARTu && own < LOGITS) {
    var logit = 0.0;
    for (var l = 0u; l < MATRIX_LANES; l += $UNROLLu) {
      //for l in UNROLL
      logit += lane_sums[thread * (MATRIX_LANES + 1u) + l + $lu];
      //end
    }
    logits[tile.y * LOGITS + own] = logit;
  }
}

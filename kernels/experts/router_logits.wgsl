// logits[r, e] = sum_k normed[r, k] W[e, k] with normed[r] = v / sqrt(mean(v^2) + EPS) * norm_weight, v = x[r]
// plus the sums of a split-K matmul: the logits of a router of few rows. Every workgroup norms the row for itself; the
// first workgroup of a row stores v in `stream` and normed[r]. Without SUMS v = x[r], which is not stored again, and
// what is stored in `normed` is normed with experts_weight, not norm_weight: experts that have a norm of their own.
//
// One workgroup per row and $PART experts. The norm has the order of norm/rms_norm.wgsl, the logits that of
// matmul.wgsl: MATRIX_LANES lanes share a logit, and load $STEPS vec8s of its weights before the row is normed.

//#import lib/weights_$weights
//#import lib/vec8
//#import lib/store_scales
//#import lib/add8
//#if SMALL
//#import lib/workgroup_sum
//#else
// Returns to every lane the sum of `x` over the lanes of a workgroup, 32 or more, with the bits of
// lib/workgroup_sum.wgsl. Each lane adds the last stage's sums and the rest itself, since a barrier takes longer.

var<workgroup> partial: array<vec4<f32>, $LANE_QUADS>;

fn total(x: f32, lane: u32) -> f32 {
  partial[lane / 4u][lane % 4u] = x;
  workgroupBarrier();
  //#for s in FIRST_STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var sum = 0.0;
      //#for j in 8
      sum += partial[(lane + $ju * left) / 4u][lane % 4u];
      //#endfor
      partial[lane / 4u][lane % 4u] = sum;
    }
    workgroupBarrier();
  }
  //#endfor
  var sum = 0.0;
  //#for q in REST_QUADS
  var four$q = vec4<f32>(0.0);
  //#for j in 8
  four$q += partial[$(q + j * REST_QUADS)];
  //#endfor
  sum += four$q.x;
  sum += four$q.y;
  sum += four$q.z;
  sum += four$q.w;
  //#endfor
  return sum;
}
//#endif

alias Sum = f32;

override COLS: u32; // without PARTIAL COLS / 8 is a multiple of MATRIX_LANES * $STEPS
override EPS: f32;
override LANES: u32; // of the norm
override MATRIX_LANES: u32; // divides LANES
override ROW_VECTORS: u32; // COLS / 4
override LOGITS: u32; // of a row

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]
//#if SUMS
@group(0) @binding(2) var<storage, read> sums: array<vec4<f32>>; // [$SUMS, rows, COLS / 4]
@group(0) @binding(4) var<storage, read_write> stream: array<vec4<f32>>; // [rows, COLS / 4]: not x
//#else
@group(0) @binding(2) var<storage, read> experts_weight: array<vec4<f32>>; // [COLS / 4]
//#endif
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(5) var<storage, read_write> normed: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(6) var<storage, read_write> logits: array<f32>; // [rows, LOGITS]
//#if BIASED
@group(0) @binding(7) var<storage, read> bias: array<f32>; // of the logits, [LOGITS]
//#endif

// The normed row: the low halves of its vec8s and then the high ones.
var<workgroup> row_vectors: array<vec4<f32>, ROW_VECTORS>;
var<workgroup> lane_sums: array<f32, $LANE_SUMS>; // of a group, and one of padding

//#import lib/add_squares

// Norms a row into `row_vectors`.
fn norm_row(row: u32, store: bool, lane: u32) {
  let first = row * (COLS / 4u);
  //#if SUMS
  let stride = arrayLength(&sums) / $SUMSu;
  //#endif
  var sum = 0.0;
  //#for j in NORMED
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var g$j = Vec8();
  if (i$j < COLS / 8u) {
    let at = first + 2u * i$j;
    //#if SUMS
    var branch = Vec8(sums[at], sums[at + 1u]);
    //#for s in MORE_SUMS
    branch.lo += sums[($su + 1u) * stride + at];
    branch.hi += sums[($su + 1u) * stride + at + 1u];
    //#endfor
    v$j = Vec8(x[at] + branch.lo, x[at + 1u] + branch.hi);
    //#else
    v$j = Vec8(x[at], x[at + 1u]);
    //#endif
    g$j = Vec8(norm_weight[2u * i$j], norm_weight[2u * i$j + 1u]);
  }
  sum = add_squares(add_squares(sum, v$j.lo), v$j.hi);
  //#endfor
  let scale = 1.0 / sqrt(total(sum, lane) / f32(COLS) + EPS);
  var peak = 0.0;
  //#for j in NORMED
  if (i$j < COLS / 8u) {
    let lo = v$j.lo * scale * g$j.lo;
    let hi = v$j.hi * scale * g$j.hi;
    row_vectors[i$j] = lo;
    row_vectors[COLS / 8u + i$j] = hi;
    //#if SUMS
    peak = peak_of(peak, Vec8(lo, hi));
    if (store) {
      let at = first + 2u * i$j;
      stream[at] = v$j.lo;
      stream[at + 1u] = v$j.hi;
      normed[at] = lo;
      normed[at + 1u] = hi;
    }
    //#else
    if (store) {
      let at = first + 2u * i$j;
      let own_lo = v$j.lo * scale * experts_weight[2u * i$j];
      let own_hi = v$j.hi * scale * experts_weight[2u * i$j + 1u];
      peak = peak_of(peak, Vec8(own_lo, own_hi));
      normed[at] = own_lo;
      normed[at + 1u] = own_hi;
    }
    //#endif
  }
  //#endfor
  if (store) {
    store_scales(row, lane, peak);
  }
  workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let vec8s = COLS / 8u;
  let lane = thread % MATRIX_LANES;
  let group = thread / MATRIX_LANES;
  // Groups without a logit of their own read the weights of the last one, which are in the cache.
  let at = min(tile.x * $PARTu + min(group, $PARTu - 1u), LOGITS - 1u) * vec8s;
  //#for s in STEPS
  //#if PARTIAL
  var block$s = load_block(at + min($su * MATRIX_LANES + lane, vec8s - 1u));
  //#else
  var block$s = load_block(at + $su * MATRIX_LANES + lane);
  //#endif
  //#endfor
  norm_row(tile.y, tile.x == 0u, thread);
  var sum = 0.0;
  let step = $STEPSu * MATRIX_LANES;
  for (var k = 0u; k < vec8s; k += step) {
    //#for s in STEPS
    {
      let i = k + $su * MATRIX_LANES + lane;
      //#if PARTIAL
      if (i < vec8s) {
        sum = add8(sum, row_vectors[i], row_vectors[vec8s + i], vec8_0(block$s));
      }
      //#if MORE
      block$s = load_block(at + min(i + step, vec8s - 1u));
      //#endif
      //#else
      sum = add8(sum, row_vectors[i], row_vectors[vec8s + i], vec8_0(block$s));
      //#if MORE
      block$s = load_block(at + min(k + step, vec8s - step) + $su * MATRIX_LANES + lane);
      //#endif
      //#endif
    }
    //#endfor
  }
  lane_sums[group * (MATRIX_LANES + 1u) + lane] = sum;
  workgroupBarrier();
  let own = tile.x * $PARTu + thread;
  if (thread < $PARTu && own < LOGITS) {
    var logit = 0.0;
    for (var l = 0u; l < MATRIX_LANES; l += $UNROLLu) {
      //#for l in UNROLL
      logit += lane_sums[thread * (MATRIX_LANES + 1u) + l + $lu];
      //#endfor
    }
    //#if BIASED
    logits[tile.y * LOGITS + own] = logit + bias[own];
    //#else
    logits[tile.y * LOGITS + own] = logit;
    //#endif
  }
}

// normed[r] = v / sqrt(mean(v^2) + EPS) * norm_weight, v = x[r] with the sums of a split-K matmul, which is
// stored in x (norm_from_sums.wgsl); logits[e] = sum_k normed[r, k] W[e, k]; and the row's experts
// and their weights (choice.wgsl, with its slot `scores`).
//
// One workgroup per row. MATRIX_LANES lanes share a logit, whose sum has the order of matmul.wgsl; a group of them
// has $EACH logits at a time and $STEPS vec8s of each on their way, from before the row is normed to
// the last ones. Slot:
//   weights: `load_block` and `vec8_0` of a float format (weights/weights_*.wgsl).
//   note: as of norm/rms_norm.wgsl.

//use weights
//use router/choice
//use fragments/split_k_sums
//use fragments/workgroup_sum
//use note
//use matmul/dot/add8

alias Sum = f32;

override COLS: u32; // COLS / 8 is a multiple of MATRIX_LANES * $STEPS
override EPS: f32;
override MATRIX_LANES: u32;
override ROW_VECTORS: u32; // COLS / 4

@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(2) var<storage, read> sums: array<vec4<f32>>; // [SPLIT_K, rows, COLS / 4]
@group(0) @binding(3) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(4) var<storage, read_write> normed: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(5) var<storage, read_write> experts: array<u32>; // [rows, TOP_K + SHARED]
@group(0) @binding(6) var<storage, read_write> shares: array<f32>; // [rows, TOP_K + SHARED]

// The normed row: the low halves of its vec8s and then the high ones.
var<workgroup> row_vectors: array<vec4<f32>, ROW_VECTORS>;
var<workgroup> lane_sums: array<f32, $LANE_SUMS>; // of a group, and one of padding

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}

fn norm_row(row: u32, lane: u32) {
  let first = row * (COLS / 4u);
  var sum = 0.0;
  //for j in NORMED
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var g$j = Vec8();
  if (i$j < COLS / 8u) {
    let at = first + 2u * i$j;
    let branch = split_sum(at);
    v$j = Vec8(x[at] + branch.lo, x[at + 1u] + branch.hi);
    x[at] = v$j.lo;
    x[at + 1u] = v$j.hi;
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
    normed[first + 2u * i$j] = lo;
    normed[first + 2u * i$j + 1u] = hi;
    row_vectors[i$j] = lo;
    row_vectors[COLS / 8u + i$j] = hi;
    peak = seen(peak, Vec8(lo, hi));
  }
  //end
  note(row, lane, peak);
  workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let vec8s = COLS / 8u;
  let lane = thread % MATRIX_LANES;
  let group = thread / MATRIX_LANES;
  let groups = LANES / MATRIX_LANES;
  //for s in STEPS
  //for e in EACH
  var block$s_$e = load_block(min(group + $eu * groups, EXPERTS - 1u) * vec8s + $su * MATRIX_LANES + lane);
  //end
  //end
  norm_row(tile.x, thread);
  let step = $STEPSu * MATRIX_LANES;
  for (var first = 0u; first < EXPERTS; first += $EACHu * groups) {
    let later = first + $EACHu * groups;
    //for e in EACH
    let row$e = min(first + group + $eu * groups, EXPERTS - 1u);
    let row_later$e = min(later + group + $eu * groups, EXPERTS - 1u);
    var sum$e = 0.0;
    //end
    for (var k = 0u; k < vec8s; k += step) {
      // What is multiplied makes room for what comes next, of these logits or of the ones after them.
      let here = k + step < vec8s;
      let more = here || later < EXPERTS;
      //for e in EACH
      let next$e = select(row_later$e * vec8s, row$e * vec8s + k + step, here) + lane;
      //end
      //for s in STEPS
      {
        let at = k + $su * MATRIX_LANES + lane;
        let lo = row_vectors[at];
        let hi = row_vectors[vec8s + at];
        //for e in EACH
        let w$e = vec8_0(block$s_$e);
        //end
        if (more) {
          //for e in EACH
          block$s_$e = load_block(next$e + $su * MATRIX_LANES);
          //end
        }
        //for e in EACH
        sum$e = add8(sum$e, lo, hi, w$e);
        //end
      }
      //end
    }
    //for e in EACH
    lane_sums[($eu * groups + group) * (MATRIX_LANES + 1u) + lane] = sum$e;
    //end
    workgroupBarrier();
    let own = first + thread;
    if (thread < $EACHu * groups && own < EXPERTS) {
      var sum = 0.0;
      for (var l = 0u; l < MATRIX_LANES; l += $UNROLLu) {
        //for l in UNROLL
        sum += lane_sums[thread * (MATRIX_LANES + 1u) + l + $lu];
        //end
      }
      choices[own] = sum;
    }
    workgroupBarrier();
  }
  choose_experts(tile.x, thread);
}

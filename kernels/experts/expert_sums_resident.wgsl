// out[r, n] += sum_j shares[r, j] sum_k x[r, j, k] * W[e, n, k], e = experts[r, j], to the bit as in expert_sums.wgsl,
// for integer weights of which a lane has many blocks: x of all jobs of a row is rounded once in a workgroup and stays
// there, and each block of weights is loaded as soon as the one in its place is multiplied.
//
// One workgroup per 2 SETS outputs of a row; a set has LANES lanes for each of its GROUPS jobs, two outputs, and
// $STEPS loaded blocks of both rows of W; a lane's blocks are a multiple of $STEPS where $WHOLE is 1.

//#import lib/matmul_sizes
//#import lib/weights_$weights
//#import lib/staged_x
//#import lib/expert_rows

override SETS: u32;

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
@group(0) @binding(3) var<storage, read> experts: array<u32>; // [rows, GROUPS]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, GROUPS]

const THREADS = $THREADSu; // LANES * GROUPS * SETS
const RESIDENT = $STAGEu; // vec8s of x: GROUPS * COLS / 8

var<workgroup> lane_sums: array<vec2<f32>, $LANE_SUMS>; // of a group of a set, and one of padding
var<workgroup> job_shares: array<f32, GROUPS>;
var<workgroup> job_sums: array<vec2<f32>, $JOB_SUMS>; // [SETS, GROUPS]

@compute @workgroup_size(LANES * GROUPS * SETS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let group = thread / LANES % GROUPS;
  let own_set = thread / (LANES * GROUPS);
  let expert = experts[tile.y * GROUPS + group];
  // Load now what is needed only at the end.
  let own = min(tile.x * SETS * 2u + min(thread, SETS * 2u - 1u), MATRIX_ROWS - 1u);
  let before = out[tile.y * OUT_COLS + own];
  if (thread < GROUPS) {
    job_shares[thread] = shares[tile.y * GROUPS + thread];
  }
  //#for s in LOADS
  let from$s = (tile.y * RESIDENT + min(thread + $su * THREADS, RESIDENT - 1u)) * 2u;
  let lo$s = x[from$s];
  let hi$s = x[from$s + 1u];
  //#endfor
  let rows = rows_of(expert);
  let first = (tile.x * SETS + own_set) * 2u;
  //#for o in OUTS
  let at$o = (rows.first + min(first + $ou, MATRIX_ROWS - 1u) * rows.step) * blocks + lane;
  var sum$o = 0.0;
  //#endfor
  //#for j in STEPS
  //#for o in OUTS
  var block$o_$j = load_block(at$o + $ju * LANES);
  //#endfor
  //#endfor
  //#for s in LOADS
  if (($su + 1u) * THREADS <= RESIDENT || thread + $su * THREADS < RESIDENT) {
    put_vec8(0u, thread + $su * THREADS, lo$s, hi$s);
  }
  //#endfor
  workgroupBarrier();
  for (var i = 0u; i < blocks; i += $STEPSu * LANES) {
    //#for j in STEPS
    if ($WHOLE == 1 || i + $ju * LANES < blocks) {
      //#for c in BLOCK_VEC8S
      {
        let k = group * (COLS / 8u) + (i + $ju * LANES) * $BLOCK_VEC8Su + $cu * LANES + lane;
        let own = get_vec8(0u, k);
        //#for o in OUTS
        sum$o = add_dot(sum$o, own, weights_$c(block$o_$j));
        //#endfor
      }
      //#endfor
    }
    if (i + $(STEPS + j)u * LANES < blocks) {
      //#for o in OUTS
      block$o_$j = load_block(at$o + i + $(STEPS + j)u * LANES);
      //#endfor
    }
    //#endfor
  }
  lane_sums[thread + thread / LANES] = vec2<f32>(sum0, sum1);
  workgroupBarrier();
  if (thread < SETS * GROUPS) {
    var sum = vec2<f32>(0.0);
    for (var l = 0u; l < LANES; l += $UNROLLu) {
      //#for l in UNROLL
      sum += lane_sums[thread * (LANES + 1u) + l + $lu];
      //#endfor
    }
    job_sums[thread] = sum;
  }
  workgroupBarrier();
  if (thread < SETS * 2u && tile.x * SETS * 2u + thread < MATRIX_ROWS) {
    var sum = before;
    for (var j = 0u; j < GROUPS; j++) {
      sum = fma(job_shares[j], job_sums[thread / 2u * GROUPS + j][thread % 2u], sum);
    }
    out[tile.y * OUT_COLS + own] = sum;
  }
}

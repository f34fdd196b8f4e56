// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] of every job j, e its expert, on matrix units, for the
// experts of one shard of W.
//
// x is (hi + lo) / x_scales of its row, two f16 numbers, and W f16 / w_scales of its row, of bf16 in the order of
// tile_weights.wgsl, of quantized weights rounded and k in the order in which they lie. An output is
//   (sum_k hi * w + sum_k lo * w) / x_scales / w_scales,
// or, where $LOW is 0, the first sum alone of x rounded to the nearest f16,
// each sum over tiles of $UNIT_K in order of k: the same bits whatever jobs share a tile, at any number of
// rows and in any shape of workgroup.
//
// One workgroup per tile of at most $JOBS jobs of one expert and $TILE_COLS outputs, in pairs half of
// MATRIX_ROWS apart: of $UNIT_N columns the second half are the partners of the first. Its left matrix has
// $LO_ROW rows of hi and then as many of lo; with few jobs both are in one tile of the unit, without
// lo its rows are nobody's. All lanes
// bring $STAGE of k at a time through workgroup memory, 16 bytes each, and load $AHEAD stages ahead;
// subgroup g multiplies $OWN_R tiles of jobs by $OWN_C of columns. Loads stand outside of branches: a driver
// would wait for them at the end of one. Slots:
//   jobs: `fn expert_of(tile, thread)` and `fn job_of(tile, r)`, NOTHING past the last (experts/expert_jobs_*.wgsl).
//   load: as of tensor/matmul_tensor.wgsl.
//   place: where blocks of weights lie, experts/place/*.wgsl.
//   out: of matrix units, tensor/out_*.wgsl; its rows are jobs.
//   epilogue: as of matmul/matmul.wgsl, one that stores numbers.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);

override COLS: u32; // a multiple of $STAGE
override MATRIX_ROWS: u32; // of an expert, even
override OUT_COLS: u32; // row stride of out
override FIRST_EXPERT: u32; // of the shard
override SHARD_EXPERTS: u32;
override ROW_JOBS: u32; // jobs that a row of x has

//use jobs
//use experts/expert_rows
//use out
//use epilogue

// [rows, COLS / 4]
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
// [SHARD_EXPERTS, MATRIX_ROWS]
@group(0) @binding(14) var<storage, read> w_scales: array<f32>;
// [rows]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;

const FIRST = 0u;
const THREADS = $THREADSu;
const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank
const GROUP = $UNIT_HALFu; // rows of W on either side of a pair, in a tile of the unit
const BLOCKS = CHUNKS / $VEC8Su; // of weights, in a stage of a row

//use load
//use place

// Eight f16: [TILE_COLS, PITCH], later the sums of a tile for each subgroup.
var<workgroup> ws: array<vec4<u32>, $W_WORDS>;
// hi [LO_ROW, PITCH], then lo where there is one
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;
// What the sums need at the end is asked for before them.
var<workgroup> jobs: array<u32, $JOBS>; // of the tile
var<workgroup> x_inverses: array<f32, $JOBS>; // 1 / scale
var<workgroup> w_inverses: array<f32, $TILE_COLS>;

// Four sums of hi and of lo.
fn sum_at(at: u32) -> vec4<f32> {
  var sum = bitcast<vec4<f32>>(ws[at]);
  //for l in LOW
  sum += bitcast<vec4<f32>>(ws[at + $LO_SUMu]);
  //end
  return sum;
}

@compute @workgroup_size($THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let expert = expert_of(tile.x, thread) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  let half = MATRIX_ROWS / 2u;
  let rows = rows_of(expert);
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u; // blocks
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  let own_row = subgroup % $GRID_Ru * ($OWN_Ru * $TILE_Ru);
  let own_column = subgroup / $GRID_Ru * ($OWN_Cu * $UNIT_Nu);
  let w_own = own_column * PITCH;
  let x_own = own_row * PITCH;
  // Subgroups with the last rows of the tile may have no job.
  let used = $GRID_Ru == 1u || job_of(tile.x, own_row) != NOTHING;

  //for u in W_LOADS
  let w_at$u = thread + $uu * THREADS;
  let w_column$u = column_of(w_at$u);
  let w_pair$u = min(pair + w_column$u / $UNIT_Nu * GROUP + w_column$u % GROUP, half - 1u);
  let w_row$u = rows.first + w_pair$u * rows.step + w_column$u % $UNIT_Nu / GROUP * rows.pair;
  let w_from$u = begin_of(w_row$u, block_of(w_at$u), range);
  let w_to$u = w_column$u * PITCH + block_of(w_at$u) * $VEC8Su;
  let w_scale$u = w_scales[w_row$u];
  //for a in AHEAD
  var w$a_$u = load_weights(w_from$u + min($au * BLOCKS, range - BLOCKS) * STEP);
  //end
  //end
  // Where there is no job, lanes load the first one's row and store nothing.
  let first_job = job_of(tile.x, 0u);
  //for u in X_LOADS
  let x_chunk$u = thread + $uu * THREADS;
  let x_job$u = select(NOTHING, job_of(tile.x, x_chunk$u / CHUNKS), x_chunk$u < $JOBSu * CHUNKS);
  let x_row$u = select(x_job$u, first_job, x_job$u == NOTHING) / ROW_JOBS;
  let x_from$u = (x_row$u * (COLS / 8u) + in_stage(x_chunk$u % CHUNKS)) * 2u;
  let x_to$u = x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;
  let x_scale$u = x_scales[x_row$u];
  //for a in AHEAD
  var xa$a_$u = x[x_from$u + vec8_of(min($au * BLOCKS, range - BLOCKS)) * 2u];
  var xb$a_$u = x[x_from$u + vec8_of(min($au * BLOCKS, range - BLOCKS)) * 2u + 1u];
  //end
  //end

  //for u in JOB_LOADS
  let own_job$u = job_of(tile.x, min(thread + $uu * THREADS, $JOBSu - 1u));
  let own_x$u = x_scales[select(own_job$u, first_job, own_job$u == NOTHING) / ROW_JOBS];
  if (thread + $uu * THREADS < $JOBSu) {
    jobs[thread + $uu * THREADS] = own_job$u;
    x_inverses[thread + $uu * THREADS] = inverse(own_x$u);
  }
  //end
  //for u in COLUMN_LOADS
  let own_at$u = min(thread + $uu * THREADS, $TILE_COLSu - 1u);
  let own_pair$u = min(pair + own_at$u / $UNIT_Nu * GROUP + own_at$u % GROUP, half - 1u);
  let own_w$u = w_scales[rows.first + own_pair$u * rows.step + own_at$u % $UNIT_Nu / GROUP * rows.pair];
  if (thread + $uu * THREADS < $TILE_COLSu) {
    w_inverses[thread + $uu * THREADS] = inverse(own_w$u);
  }
  //end

  //for r in OWN_R
  //for p in PARTS
  //for c in OWN_C
  var sum$r_$p_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end
  //end
  //end

  for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {
    //for a in AHEAD
    {
      // Stages are a multiple of those ahead where UNEVEN is 0.
      let there = $UNEVENu == 0u || k + $au * BLOCKS < range;
      //for u in W_LOADS
      //for p in VEC8S
      ws[w_to$u + $pu] = halves_$p(w$a_$u, w_scale$u);
      //end
      //end
      //for u in X_LOADS
      if (x_job$u != NOTHING) {
        let a = xa$a_$u * x_scale$u;
        let b = xb$a_$u * x_scale$u;
        //for l in LOW
        xs[x_to$u] = eight_of_x(cut(a), cut(b));
        xs[x_to$u + $LO_ROWu * PITCH] = eight_of_x(a - cut(a), b - cut(b));
        //end
        //for l in ROUNDED
        xs[x_to$u] = eight_of_x(a, b);
        //end
      }
      //end
      workgroupBarrier();
      // Past the end it is the last stage again.
      let next = min(k + $(a + AHEAD)u * BLOCKS, range - BLOCKS);
      //for u in W_LOADS
      w$a_$u = load_weights(w_from$u + next * STEP);
      //end
      //for u in X_LOADS
      xa$a_$u = x[x_from$u + vec8_of(next) * 2u];
      xb$a_$u = x[x_from$u + vec8_of(next) * 2u + 1u];
      //end
      if (used && there) {
        for (var s = 0u; s < $STEPSu; s++) {
          //for c in OWN_C
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &ws, w_own + $cu * $UNIT_Nu * PITCH + s * $UNIT_Ku / 8u, PITCH);
          //end
          //for r in OWN_R
          //for p in PARTS
          let x_tile$r_$p = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
            &xs, x_own + ($ru * $TILE_Ru + $pu * $LO_ROWu) * PITCH + s * $UNIT_Ku / 8u, PITCH);
          //for c in OWN_C
          sum$r_$p_$c = subgroupMatrixMultiplyAccumulate(x_tile$r_$p, w_tile$c, sum$r_$p_$c);
          //end
          //end
          //end
        }
      }
      workgroupBarrier();
    }
    //end
  }

  // Tile by tile: the sums of hi and of lo, then what they make.
  let sums = subgroup * ($PARTSu * $SUM_WORDSu);
  //for r in OWN_R
  //for c in OWN_C
  //for p in PARTS
  subgroupMatrixStore<row_major>(&ws, sums + $pu * $SUM_WORDSu, sum$r_$p_$c, $UNIT_Nu / 4u);
  //end
  workgroupBarrier();
  for (var i = lane; i < $TILE_Ru * $HALF_WORDSu; i += $LANESu) {
    let row = own_row + $ru * $TILE_Ru + i / $HALF_WORDSu;
    let job = select(NOTHING, jobs[min(row, $JOBSu - 1u)], row < $JOBSu);
    let x_inverse = x_inverses[min(row, $JOBSu - 1u)];
    let column = own_column + $cu * $UNIT_Nu + i % $HALF_WORDSu * 4u;
    let c = pair + own_column / 2u + $cu * $UNIT_HALFu + i % $HALF_WORDSu * 4u;
    let at = sums + i / $HALF_WORDSu * ($HALF_WORDSu * 2u) + i % $HALF_WORDSu;
    let first = sum_at(at);
    let second = sum_at(at + $HALF_WORDSu);
    for (var e = 0u; e < 4u; e++) {
      if (job != NOTHING && c + e < half) {
        let w = vec2(w_inverses[column + e], w_inverses[column + e + GROUP]);
        let y = vec2(first[e], second[e]) * x_inverse * w;
        epilogue(job, c + e, half, y);
      }
    }
    if (job != NOTHING) {
      end_row(job);
    }
  }
  workgroupBarrier();
  //end
  //end
}

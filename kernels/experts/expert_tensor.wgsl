// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] of every job j, e its expert, on matrix units, for the
// experts of one shard of W.
//
// x is (hi + lo) / x_scales of its row, with hi and lo f16, and W is f16 / w_scales of its row. Weights of bf16 are in
// the order of tile_weights.wgsl; quantized ones are rounded to f16, and k is in the order in which they lie. An
// output is
//   (sum_k hi * w + sum_k lo * w) / x_scales / w_scales,
// or, where $LOW is 0, the first sum alone of x rounded to the nearest f16 (where $X_IS_F16 is 1, by the kernel that
// wrote x), each sum over tiles of $UNIT_K in order of k: the same bits whatever jobs share a tile, at any number of
// rows and in any shape of workgroup.
//
// One workgroup per tile of at most $TILE jobs of one expert and $TILE_COLS outputs, in pairs half of
// MATRIX_ROWS apart: of $UNIT_N columns the second half are the partners of the first. Its left matrix has
// $LO_ROW rows of hi and then as many of lo; with few jobs both are in one tile of the unit; without
// lo, the rows of lo are not used. All lanes load $STAGE of k at a time into workgroup memory, 16 bytes each, $AHEAD
// stages ahead; subgroup g multiplies $OWN_R tiles of jobs by $OWN_C of columns. Loads stand outside of branches: a
// driver would wait for them at the end of one. Jobs and tiles are those of lib/expert_jobs.wgsl.

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

//#import lib/expert_jobs
//#import lib/expert_rows
//#if OUT_SCALES
// The epilogue calls `consider` with what it stores, so that the scale of each row of `out` is reduced
// (lib/scale_of.wgsl): each row's largest number is found in workgroup memory first, and reduces its scale once.

//#import lib/scale_of

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
// Bits of f32 [rows]; positive ones are in the order of the numbers.
@group(0) @binding(13) var<storage, read_write> out_scales: array<atomic<u32>>;

var<private> peak: f32 = 0.0;
// Bits of numbers without sign, by row of the workgroup.
var<workgroup> row_peaks: array<atomic<u32>, $TILE>;

fn consider(y: f32) {
  peak = max(peak, abs(y));
}

// Called by an invocation after it gave the epilogue an output, or none, of row `own` of the workgroup. Lanes raise the
// same number one after the other: to fold them by shuffles first takes half as long again as the whole matmul of a
// small matrix.
fn gather(own: u32) {
  atomicMax(&row_peaks[own], bitcast<u32>(peak));
  peak = 0.0;
}

// Called by one invocation after the workgroup gave the epilogue all its outputs of the row.
fn end_row(row: u32, own: u32) {
  atomicMin(&out_scales[row], bitcast<u32>(scale_of(bitcast<f32>(atomicLoad(&row_peaks[own])))));
}
//#else
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]

fn gather(own: u32) {}

fn end_row(row: u32, own: u32) {}
//#endif
//#import lib/epilogue

//#if X_IS_F16
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>; // eight f16 each, [rows, COLS / 8]
//#else
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]
//#endif
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

//#import lib/f16_weights
//#if TILED
// Blocks of weights are in the order of tile_weights.wgsl: GROUP rows together, so that neighbouring lanes read one
// block of each of them.

const STEP = GROUP; // from a block of a row to the next

fn column_of(at: u32) -> u32 {
  return at / (GROUP * BLOCKS) * GROUP + at % GROUP;
}

fn block_of(at: u32) -> u32 {
  return at / GROUP % BLOCKS;
}

fn begin_of(row: u32, block: u32, range: u32) -> u32 {
  return (row / GROUP * range + block) * GROUP + row % GROUP;
}
//#else
// Blocks of weights are in order, row after row.

const STEP = 1u; // from a block of a row to the next

fn column_of(at: u32) -> u32 {
  return at / BLOCKS;
}

fn block_of(at: u32) -> u32 {
  return at % BLOCKS;
}

fn begin_of(row: u32, block: u32, range: u32) -> u32 {
  return row * range + block;
}
//#endif

//#import lib/row_of_chunk

// Numbers 8 i to 8 i + 7 of x.
//#if X_IS_F16
fn load_x(i: u32) -> vec4<u32> {
  return x[i];
}
//#else
//#import lib/vec8

fn load_x(i: u32) -> Vec8 {
  return Vec8(x[2u * i], x[2u * i + 1u]);
}
//#endif

const XS = $TILE_COLSu * PITCH;
const SUM_PITCH = $SUM_PITCHu; // as PITCH

// Eight f16: weights [TILE_COLS, PITCH], from XS on x, hi [LO_ROW, PITCH] and then lo where there is one. Later, of
// each subgroup, the sums of a tile: [$UNIT_M, SUM_PITCH] of four f32, hi and then lo.
var<workgroup> staged: array<vec4<u32>, $WORDS>;
// What the sums need at the end is loaded before them.
var<workgroup> jobs: array<u32, $TILE>; // of the tile
var<workgroup> x_inverses: array<f32, $TILE>; // 1 / scale
var<workgroup> w_inverses: array<f32, $TILE_COLS>;

// A number of a tile's sums of hi and of lo.
fn sum_at(at: u32) -> f32 {
  var sum = bitcast<f32>(staged[at / 4u][at % 4u]);
  //#if LOW
  sum += bitcast<f32>(staged[at / 4u + $LO_SUMu][at % 4u]);
  //#endif
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
  //#if epilogue == clamped
  own_expert = expert + FIRST_EXPERT;
  //#endif
  //#if epilogue == clamped_scaled
  own_expert = expert + FIRST_EXPERT;
  //#endif
  let half = MATRIX_ROWS / 2u;
  let rows = rows_of(expert);
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u; // blocks
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  let own_row = subgroup % $GRID_Ru * ($OWN_Ru * $TILE_Ru);
  let own_column = subgroup / $GRID_Ru * ($OWN_Cu * $UNIT_Nu);
  let w_own = own_column * PITCH;
  let x_own = XS + own_row * PITCH;
  // Subgroups with the last rows of the tile may have no job.
  let used = $GRID_Ru == 1u || job_of(tile.x, own_row) != NOTHING;

  //#for u in W_LOADS
  let w_at$u = thread + $uu * THREADS;
  let w_column$u = column_of(w_at$u);
  let w_pair$u = min(pair + w_column$u / $UNIT_Nu * GROUP + w_column$u % GROUP, half - 1u);
  let w_row$u = rows.first + w_pair$u * rows.step + w_column$u % $UNIT_Nu / GROUP * rows.pair;
  let w_from$u = begin_of(w_row$u, block_of(w_at$u), range);
  let w_to$u = w_column$u * PITCH + block_of(w_at$u) * $VEC8Su;
  let w_scale$u = w_scales[w_row$u];
  //#for a in AHEAD
  var w$a_$u = load_weights(w_from$u + min($au * BLOCKS, range - BLOCKS) * STEP);
  //#endfor
  //#endfor
  // Where there is no job, lanes load the first one's row and store nothing.
  let first_job = job_of(tile.x, 0u);
  //#for u in X_LOADS
  let x_chunk$u = thread + $uu * THREADS;
  let own_x_row$u = row_of_chunk(x_chunk$u);
  let x_job$u = select(NOTHING, job_of(tile.x, own_x_row$u), x_chunk$u < $TILEu * CHUNKS);
  let x_row$u = select(x_job$u, first_job, x_job$u == NOTHING) / ROW_JOBS;
  let x_from$u = x_row$u * (COLS / 8u) + in_stage(x_chunk$u % CHUNKS);
  let x_to$u = XS + own_x_row$u * PITCH + x_chunk$u % CHUNKS;
  //#if !X_IS_F16
  let x_scale$u = x_scales[x_row$u];
  //#endif
  //#for a in AHEAD
  var x$a_$u = load_x(x_from$u + vec8_of(min($au * BLOCKS, range - BLOCKS)));
  //#endfor
  //#endfor

  //#for u in JOB_LOADS
  let own_job$u = job_of(tile.x, min(thread + $uu * THREADS, $TILEu - 1u));
  let own_x$u = x_scales[select(own_job$u, first_job, own_job$u == NOTHING) / ROW_JOBS];
  if (thread + $uu * THREADS < $TILEu) {
    jobs[thread + $uu * THREADS] = own_job$u;
    x_inverses[thread + $uu * THREADS] = inverse(own_x$u);
  }
  //#endfor
  //#for u in COLUMN_LOADS
  let own_at$u = min(thread + $uu * THREADS, $TILE_COLSu - 1u);
  let own_pair$u = min(pair + own_at$u / $UNIT_Nu * GROUP + own_at$u % GROUP, half - 1u);
  let own_w$u = w_scales[rows.first + own_pair$u * rows.step + own_at$u % $UNIT_Nu / GROUP * rows.pair];
  if (thread + $uu * THREADS < $TILE_COLSu) {
    w_inverses[thread + $uu * THREADS] = inverse(own_w$u);
  }
  //#endfor

  //#for r in OWN_R
  //#for p in PARTS
  //#for c in OWN_C
  var sum$r_$p_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //#endfor
  //#endfor
  //#endfor

  for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {
    //#for a in AHEAD
    {
      // Stages are a multiple of those ahead where UNEVEN is 0.
      let there = $UNEVENu == 0u || k + $au * BLOCKS < range;
      //#for u in W_LOADS
      //#for p in VEC8S
      staged[w_to$u + $pu] = halves_$p(w$a_$u, w_scale$u);
      //#endfor
      //#endfor
      //#for u in X_LOADS
      if (x_job$u != NOTHING) {
        //#if X_IS_F16
        staged[x_to$u] = in_order(x$a_$u);
        //#else
        let a = x$a_$u.lo * x_scale$u;
        let b = x$a_$u.hi * x_scale$u;
        //#if LOW
        staged[x_to$u] = eight_of_x(hi_of(a), hi_of(b));
        staged[x_to$u + $LO_ROWu * PITCH] = eight_of_x(a - hi_of(a), b - hi_of(b));
        //#else
        staged[x_to$u] = eight_of_x(a, b);
        //#endif
        //#endif
      }
      //#endfor
      //#if EARLY
      let next = k + $(a + AHEAD)u * BLOCKS;
      if (next < range) {
        //#for u in W_LOADS
        w$a_$u = load_weights(w_from$u + next * STEP);
        //#endfor
        //#for u in X_LOADS
        x$a_$u = load_x(x_from$u + vec8_of(next));
        //#endfor
      }
      //#endif
      workgroupBarrier();
      //#if !EARLY
      // Past the end it is the last stage again.
      let next = min(k + $(a + AHEAD)u * BLOCKS, range - BLOCKS);
      //#for u in W_LOADS
      w$a_$u = load_weights(w_from$u + next * STEP);
      //#endfor
      //#for u in X_LOADS
      x$a_$u = load_x(x_from$u + vec8_of(next));
      //#endfor
      //#endif
      if (used && there) {
        for (var s = 0u; s < $STEPSu; s++) {
          //#for c in OWN_C
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &staged, w_own + $cu * $UNIT_Nu * PITCH + s * $UNIT_Ku / 8u, PITCH);
          //#endfor
          //#for r in OWN_R
          //#for p in PARTS
          let x_tile$r_$p = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
            &staged, x_own + ($ru * $TILE_Ru + $pu * $LO_ROWu) * PITCH + s * $UNIT_Ku / 8u, PITCH);
          //#for c in OWN_C
          sum$r_$p_$c = subgroupMatrixMultiplyAccumulate(x_tile$r_$p, w_tile$c, sum$r_$p_$c);
          //#endfor
          //#endfor
          //#endfor
        }
      }
      workgroupBarrier();
    }
    //#endfor
  }

  // Tile by tile: the sums of hi and of lo, then what they make.
  let sums = subgroup * $TILE_SUMSu;
  //#for r in OWN_R
  //#for c in OWN_C
  //#for p in PARTS
  subgroupMatrixStore<row_major>(&staged, sums + $pu * ($UNIT_Mu * SUM_PITCH), sum$r_$p_$c, SUM_PITCH);
  //#endfor
  workgroupBarrier();
  // Lanes side by side have outputs side by side.
  for (var i = lane; i < $TILE_Ru * GROUP; i += $LANESu) {
    let row = own_row + $ru * $TILE_Ru + i / GROUP;
    let job = select(NOTHING, jobs[min(row, $TILEu - 1u)], row < $TILEu);
    let column = own_column + $cu * $UNIT_Nu + i % GROUP;
    let c = pair + own_column / 2u + $cu * GROUP + i % GROUP;
    if (job != NOTHING && c < half) {
      let at = (sums + i / GROUP * SUM_PITCH) * 4u + i % GROUP;
      let w = vec2(w_inverses[column], w_inverses[column + GROUP]);
      let y = vec2(sum_at(at), sum_at(at + GROUP)) * x_inverses[min(row, $TILEu - 1u)] * w;
      epilogue(job, c, half, y);
    }
    gather(min(row, $TILEu - 1u));
  }
  workgroupBarrier();
  //#endfor
  //#endfor
  for (var i = thread; i < $TILEu; i += THREADS) {
    if (jobs[i] != NOTHING) {
      end_row(jobs[i], i);
    }
  }
}

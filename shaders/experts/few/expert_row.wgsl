// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] of every job j, e its expert, as expert_tensor.wgsl, to the bit, where
// each job is a tile of its own: W is the left matrix, and a tile of the unit's $UNIT_N columns has hi in the first and
// lo half of them behind, as in tensor/row/matmul_tensor_row.wgsl. What the other columns have nobody reads.
//
// A workgroup is one subgroup and makes $OWN_C tiles of a job's outputs, in pairs half of MATRIX_ROWS apart. Its lanes
// bring $STAGE of k at a time through workgroup memory, 16 bytes each, $AHEAD stages ahead. Slots:
//   jobs: `fn expert_of(tile, thread)` and `fn job_of(tile, r)` (experts/expert_jobs_alone.wgsl, or one of experts/few/).
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
const GROUP = $UNIT_HALFu; // rows of W on either side of a pair, in a tile of the unit
const CHUNKS = $CHUNKSu; // of eight numbers, in a stage
const BLOCKS = CHUNKS / $VEC8Su; // of weights, in a stage of a row
const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank
const LO = $UNIT_Nu / 2u; // column of lo
const PAIRS = $(OWN_C * UNIT_HALF)u; // of outputs, one a lane

//use load
//use place

// Eight f16: [TILE_COLS, PITCH], later the sums of the tiles.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
// hi [LO, PITCH], then lo, zero where $LOW is 0.
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;

// The sums of hi and of lo.
fn sum_of(output: u32) -> f32 {
  let at = output * $UNIT_Nu;
  var sum = bitcast<f32>(ws[at / 4u].x);
  //for l in LOW
  sum += bitcast<f32>(ws[(at + LO) / 4u].x);
  //end
  return sum;
}

@compute @workgroup_size($LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let expert = expert_of(tile.x, lane) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  let half = MATRIX_ROWS / 2u;
  let rows = rows_of(expert);
  let job = job_of(tile.x, 0u);
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u; // blocks

  // Of the lane's outputs: no cache has the scales of weights, so that they are asked for with the first of these.
  let column = pair + lane % PAIRS;
  let own = rows.first + min(column, half - 1u) * rows.step;
  let own_scales = vec2(w_scales[own], w_scales[own + rows.pair]);
  let x_scale = x_scales[job / ROW_JOBS];

  //for u in W_LOADS
  let w_at$u = lane + $uu * $LANESu;
  let w_column$u = column_of(w_at$u);
  let w_pair$u = min(pair + w_column$u / $UNIT_Mu * GROUP + w_column$u % GROUP, half - 1u);
  let w_row$u = rows.first + w_pair$u * rows.step + w_column$u % $UNIT_Mu / GROUP * rows.pair;
  let w_from$u = begin_of(w_row$u, block_of(w_at$u), range);
  let w_to$u = w_column$u * PITCH + block_of(w_at$u) * $VEC8Su;
  let w_scale$u = w_scales[w_row$u];
  //for a in AHEAD
  var w$a_$u = load_weights(w_from$u + min($au * BLOCKS, range - BLOCKS) * STEP);
  //end
  //end
  //for u in X_LOADS
  let x_chunk$u = lane + $uu * $LANESu;
  let x_from$u = (job / ROW_JOBS * (COLS / 8u) + in_stage(x_chunk$u % CHUNKS)) * 2u;
  let x_to$u = x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;
  //for a in AHEAD
  var xa$a_$u = x[x_from$u + vec8_of(min($au * BLOCKS, range - BLOCKS)) * 2u];
  var xb$a_$u = x[x_from$u + vec8_of(min($au * BLOCKS, range - BLOCKS)) * 2u + 1u];
  //end
  //end

  //for c in OWN_C
  var sums$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end

  for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {
    //for a in AHEAD
    //for g in RAGGED
    if (k + $au * BLOCKS < range)
    //end
    {
      //for u in W_LOADS
      //for p in W_PART
      if (w_at$u < $TILE_COLSu * BLOCKS)
      //end
      {
        //for p in VEC8S
        ws[w_to$u + $pu] = halves_$p(w$a_$u, w_scale$u);
        //end
      }
      //end
      //for u in X_LOADS
      //for p in X_PART
      if (x_chunk$u < CHUNKS)
      //end
      {
        let a = xa$a_$u * x_scale;
        let b = xb$a_$u * x_scale;
        //for l in LOW
        xs[x_to$u] = eight_of_x(cut(a), cut(b));
        xs[x_to$u + LO * PITCH] = eight_of_x(a - cut(a), b - cut(b));
        //end
        //for l in ROUNDED
        xs[x_to$u] = eight_of_x(a, b);
        //end
      }
      //end
      workgroupBarrier();
      //for b in BRANCHED
      let next = k + ($au + $AHEADu) * BLOCKS;
      if (next < range)
      //end
      //for b in STRAIGHT
      let next = min(k + ($au + $AHEADu) * BLOCKS, range - BLOCKS);
      //end
      {
        //for u in W_LOADS
        w$a_$u = load_weights(w_from$u + next * STEP);
        //end
        //for u in X_LOADS
        xa$a_$u = x[x_from$u + vec8_of(next) * 2u];
        xb$a_$u = x[x_from$u + vec8_of(next) * 2u + 1u];
        //end
      }
      //for o in STRAIGHT
      for (var s = 0u; s < $STEPSu; s++)
      //end
      {
        //for o in BRANCHED
        let s = 0u;
        //end
        //for t in OWN_STEPS
        {
          let at = (s + $tu) * $UNIT_Ku / 8u;
          let x_tile = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&xs, at, PITCH);
          //for c in OWN_C
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
            &ws, $cu * $UNIT_Mu * PITCH + at, PITCH);
          sums$c = subgroupMatrixMultiplyAccumulate(w_tile$c, x_tile, sums$c);
          //end
        }
        //end
      }
      workgroupBarrier();
    }
    //end
  }

  //for c in OWN_C
  subgroupMatrixStore<row_major>(&ws, $cu * $SUM_WORDSu, sums$c, $UNIT_Nu / 4u);
  //end
  workgroupBarrier();
  let out_scale = vec2(inverse(own_scales.x), inverse(own_scales.y));
  let first = lane % PAIRS / $UNIT_HALFu * $UNIT_Mu + lane % $UNIT_HALFu;
  if (lane < PAIRS && column < half) {
    let y = vec2(sum_of(first), sum_of(first + $UNIT_HALFu)) * inverse(x_scale) * out_scale;
    epilogue(job, column, half, y);
  }
  fold(PAIRS);
  if (lane == 0u) {
    end_row(job);
  }
}

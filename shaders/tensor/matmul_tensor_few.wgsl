// y[r, n] = sum_k x[r, k] * W[n, k] as matmul_tensor.wgsl, to the bit, for rows that are at most half of a
// unit's: hi and lo lie in one tile, lo in its second half, so that one product makes both sums.
//
// A workgroup is one subgroup and makes all $X_ROWS rows and $OWN_C tiles of columns, over one of SPLIT_K ranges
// of k: a barrier costs nothing, and many workgroups have loads on their way. Its lanes bring $STAGE of k at a
// time through workgroup memory, 16 bytes each, $AHEAD stages ahead. Outputs come in pairs as in
// matmul_tensor.wgsl, a pair of a row to each lane. COLS / SPLIT_K is a multiple of $STAGE.
// The slots are those of tensor/common.wgsl.

//use tensor/common

// [X_ROWS, COLS / 4]
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
// [X_ROWS]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;

const LO_ROW = $UNIT_Mu / 2u;
const PER_ROW = $(OWN_C * UNIT_HALF)u; // pairs of columns, one a lane

// Eight f16: [TILE_COLS, PITCH], later the sums of the tiles.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
// hi [LO_ROW, PITCH], then lo, zero where $LOW is 0; rows beyond X_ROWS stay zero.
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;

// The sums of hi and of lo.
fn sum_of(at: u32) -> f32 {
  var sum = bitcast<f32>(ws[at / 4u][at % 4u]);
  //for l in LOW
  sum += bitcast<f32>(ws[at / 4u + $SUM_WORDSu / 2u][at % 4u]);
  //end
  return sum;
}

@compute @workgroup_size($LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u / SPLIT_K; // blocks
  let begin = tile.z * range;

  // Of the lane's outputs: no cache has the scales of weights, so that they are asked for with the first of these.
  let column = pair + lane % PER_ROW;
  let own = min(column, half - 1u);
  let own_scales = vec2(w_scales[own], w_scales[own + half]);
  //for t in TURNS
  let row$t = $tu * ($LANESu / PER_ROW) + lane / PER_ROW;
  let row_scale$t = x_scales[min(row$t, $X_ROWSu - 1u)];
  //end

  //for u in W_LOADS
  let w_block$u = lane + $uu * $LANESu;
  let w_column$u = w_block$u / BLOCKS;
  let w_pair$u = min(pair + w_column$u / $UNIT_Nu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Nu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / $(8 * VEC8S)u) + begin + w_block$u % BLOCKS;
  let w_to$u = w_column$u * PITCH + w_block$u % BLOCKS * $VEC8Su;
  let w_scale$u = w_scales[w_row$u];
  //for a in AHEAD
  var w$a_$u = load_weights(w_from$u + min($au * BLOCKS, range - BLOCKS));
  //end
  //end
  //for u in X_LOADS
  let x_chunk$u = lane + $uu * $LANESu;
  let x_row$u = min(x_chunk$u / CHUNKS, $X_ROWSu - 1u);
  let x_from$u = (x_row$u * (COLS / 8u) + in_stage(x_chunk$u % CHUNKS)) * 2u;
  let x_to$u = x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;
  let x_scale$u = x_scales[x_row$u];
  //for a in AHEAD
  var xa$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * 2u];
  var xb$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * 2u + 1u];
  //end
  //end

  //for c in OWN_C
  var sums$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end

  for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {
    //for a in AHEAD
    if (k + $au * BLOCKS < range) {
      //for u in W_LOADS
      if (w_block$u < $TILE_COLSu * BLOCKS) {
        //for p in VEC8S
        ws[w_to$u + $pu] = halves_$p(w$a_$u, w_scale$u);
        //end
      }
      //end
      //for u in X_LOADS
      if (x_chunk$u < $X_ROWSu * CHUNKS) {
        let a = xa$a_$u * x_scale$u;
        let b = xb$a_$u * x_scale$u;
        //for l in LOW
        xs[x_to$u] = eight_of_x(cut(a), cut(b));
        xs[x_to$u + LO_ROW * PITCH] = eight_of_x(a - cut(a), b - cut(b));
        //end
        //for l in ROUNDED
        xs[x_to$u] = eight_of_x(a, b);
        //end
      }
      //end
      workgroupBarrier();
      // In a branch, which compilers move no load out of: fewer registers, and so more workgroups at once.
      let next = k + ($au + $AHEADu) * BLOCKS;
      if (next < range) {
        //for u in W_LOADS
        w$a_$u = load_weights(w_from$u + next);
        //end
        //for u in X_LOADS
        xa$a_$u = x[x_from$u + vec8_of(begin + next) * 2u];
        xb$a_$u = x[x_from$u + vec8_of(begin + next) * 2u + 1u];
        //end
      }
      //for t in STEPS
      {
        let at = $tu * $UNIT_Ku / 8u;
        let x_tile = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&xs, at, PITCH);
        //for c in OWN_C
        let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
          &ws, $cu * $UNIT_Nu * PITCH + at, PITCH);
        sums$c = subgroupMatrixMultiplyAccumulate(x_tile, w_tile$c, sums$c);
        //end
      }
      //end
      workgroupBarrier();
    }
    //end
  }

  //for c in OWN_C
  subgroupMatrixStore<row_major>(&ws, $cu * $SUM_WORDSu, sums$c, $UNIT_Nu / 4u);
  //end
  workgroupBarrier();
  let out_scale = vec2(inverse(own_scales.x), inverse(own_scales.y));
  //for p in PREPARED
  //for t in TURNS
  let prepared$t = prepare(min(row$t, $X_ROWSu - 1u), own);
  //end
  //end
  let sums_at = lane % PER_ROW / $UNIT_HALFu * $(SUM_WORDS * 4)u + lane % $UNIT_HALFu;
  //for t in TURNS
  {
    if (row$t < $X_ROWSu && column < half) {
      let at = sums_at + row$t * $UNIT_Nu;
      let y = vec2(sum_of(at), sum_of(at + $UNIT_HALFu)) * inverse(row_scale$t) * out_scale;
      //for p in PREPARED
      finish(prepared$t, column, y);
      //end
      //for p in UNPREPARED
      epilogue(tile.z * $X_ROWSu + row$t, column, half, y);
      //end
    }
    fold(PER_ROW);
    if (row$t < $X_ROWSu && lane % PER_ROW == 0u) {
      end_row(row$t);
    }
  }
  //end
}

// y[n] = sum_k x[k] * W[n, k] as matmul_tensor.wgsl, to the bit, for one row: W is the left matrix, and a tile of the
// unit's $UNIT_N columns has hi in the first and lo half of them behind. So a product of $UNIT_M outputs is half of what
// matmul_tensor_few.wgsl has multiplied; what the other columns have nobody reads.
//
// A workgroup is one subgroup and makes $OWN_C tiles of outputs over one of SPLIT_K ranges of k, in pairs as in
// matmul_tensor.wgsl. Its lanes bring $STAGE of k at a time through workgroup memory, 16 bytes each, $AHEAD stages ahead;
// lanes with nothing of their own to bring of x bring it again, since stores in a branch cost a tenth. COLS / SPLIT_K is
// a multiple of $STAGE. Slots, besides those of tensor/common.wgsl:
//   hold: where x is whole in workgroup memory before the first stage ($HELD is 1), as of
//     matmul/matmul_resident.wgsl. Its scale is found on the way.
//   held: what it declares.
//   lowers: `fn lower_scales(lane)`, what the first workgroup does for scales of other inputs (tensor/row/lower_*.wgsl).

//use tensor/common

// [COLS / 4]
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
//for h in STAGED
// [1]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;
//end

const LO = $UNIT_Nu / 2u; // column of lo
const PAIRS = $(OWN_C * UNIT_HALF)u; // of outputs, one a lane

// Eight f16: [TILE_COLS, PITCH], later the sums of the tiles.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
// hi [LO, PITCH], then lo, zero where $LOW is 0. Held: see `place_of`.
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;

//for h in HELD
//use held
//use lowers
//use tensor/scale_of

const THREADS = $LANESu;
const X_BLOCK = $UNIT_Nu; // eights of hi side by side, then those of lo

// The largest number of those an invocation has put.
var<private> x_peak: f32 = 0.0;

// Where an eight of x has hi; its lo is X_BLOCK behind, as far as the column of lo, columns being 2 apart.
fn place_of(i: u32) -> u32 {
  return i / X_BLOCK * (2u * X_BLOCK) + i % X_BLOCK;
}

// As f32 at first.
fn put_vec8(r: u32, i: u32, a: vec4<f32>, b: vec4<f32>) {
  xs[place_of(i)] = bitcast<vec4<u32>>(a);
  xs[place_of(i) + X_BLOCK] = bitcast<vec4<u32>>(b);
  let size = max(abs(a), abs(b));
  x_peak = max(max(x_peak, max(size.x, size.y)), max(size.z, size.w));
}

// All of x is there; hi and lo take the places of f32.
fn split_x(lane: u32, count: u32, scale: f32) {
  for (var i = lane; i < count; i += THREADS) {
    let at = place_of(i);
    let a = bitcast<vec4<f32>>(xs[at]) * scale;
    let b = bitcast<vec4<f32>>(xs[at + X_BLOCK]) * scale;
    //for l in LOW
    xs[at] = eight_of_x(cut(a), cut(b));
    xs[at + X_BLOCK] = eight_of_x(a - cut(a), b - cut(b));
    //end
    //for l in ROUNDED
    xs[at] = eight_of_x(a, b);
    //end
  }
}
//end

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
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u / SPLIT_K; // blocks
  let begin = tile.z * range;

  // Of the lane's outputs: no cache has the scales of weights, so that they are asked for with the first of these.
  let column = pair + lane % PAIRS;
  let own = min(column, half - 1u);
  let own_scales = vec2(w_scales[own], w_scales[own + half]);
  //for h in STAGED
  let x_scale = x_scales[0];
  //end

  //for u in W_LOADS
  let w_block$u = lane + $uu * $LANESu;
  let w_column$u = w_block$u / BLOCKS;
  let w_pair$u = min(pair + w_column$u / $UNIT_Mu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Mu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / $(8 * VEC8S)u) + begin + w_block$u % BLOCKS;
  let w_to$u = w_column$u * PITCH + w_block$u % BLOCKS * $VEC8Su;
  let w_scale$u = w_scales[w_row$u];
  //for a in AHEAD
  var w$a_$u = load_weights(w_from$u + min($au * BLOCKS, range - BLOCKS));
  //end
  //end
  //for h in STAGED
  //for u in X_LOADS
  let x_chunk$u = lane + $uu * $LANESu;
  let x_from$u = in_stage(x_chunk$u % CHUNKS) * 2u;
  let x_to$u = x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;
  //for a in AHEAD
  var xa$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * 2u];
  var xb$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * 2u + 1u];
  //end
  //end
  //end
  //for h in HELD
  let thread = lane;
  let row = 0u;
  let rows = 1u;
  //use hold
  if (tile.y == 0u) {
    lower_scales(lane);
  }
  workgroupBarrier();
  let x_scale = scale_of(subgroupMax(x_peak));
  split_x(lane, range, x_scale);
  workgroupBarrier();
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
      if (w_block$u < $TILE_COLSu * BLOCKS)
      //end
      {
        //for p in VEC8S
        ws[w_to$u + $pu] = halves_$p(w$a_$u, w_scale$u);
        //end
      }
      //end
      //for h in STAGED
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
        w$a_$u = load_weights(w_from$u + next);
        //end
        //for h in STAGED
        //for u in X_LOADS
        xa$a_$u = x[x_from$u + vec8_of(begin + next) * 2u];
        xb$a_$u = x[x_from$u + vec8_of(begin + next) * 2u + 1u];
        //end
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
          //for h in STAGED
          let x_tile = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&xs, at, PITCH);
          //end
          //for h in HELD
          let x_tile = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &xs, place_of(k + $au * BLOCKS + at), 2u);
          //end
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
    epilogue(tile.z, column, half, y);
  }
  fold(PAIRS);
  if (lane == 0u) {
    end_row(0u);
  }
}

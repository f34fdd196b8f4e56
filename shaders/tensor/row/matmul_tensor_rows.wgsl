// LAB

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);

override COLS: u32;
override MATRIX_ROWS: u32; // even
override OUT_COLS: u32; // row stride of out
override FIRST: u32; // first output column of the shard
override SPLIT_K: u32;

//use out
//use epilogue
//use load

//for s in STAGED
// [X_ROWS, COLS / 4]
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
//end
//for s in PAIRS
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
//end
// [MATRIX_ROWS]
@group(0) @binding(14) var<storage, read> w_scales: array<f32>;
// [X_ROWS]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;

const CHUNKS = $CHUNKSu; // of eight numbers, in a stage
const BLOCKS = CHUNKS / $VEC8Su; // of weights, in a stage of a row
const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank
const X_CHUNKS = $X_CHUNKSu; // of a part of a stage, of x
const X_PITCH = $X_CHUNKSu + 1u;
const PER_ROW = $(OWN_C * UNIT_HALF)u; // of outputs, one a lane

// Eight f16: [TILE_COLS, PITCH], later the sums of the tiles.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
//for m in IN_MEMORY
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;
//end

fn word_of(at: u32) -> f32 {
  return bitcast<f32>(ws[at / 4u][at % 4u]);
}

// The sums of hi and of lo.
fn sum_of(tile: u32, row: u32, output: u32) -> f32 {
  let at = tile * $(X_TILES * UNIT_N * UNIT_M)u + row * $HI_STEPu * $UNIT_Mu + output;
  return word_of(at) + word_of(at + $LO_STEPu * $UNIT_Mu);
}

@compute @workgroup_size($LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u / SPLIT_K; // blocks
  let begin = tile.z * range;

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
  let w_pair$u = min(pair + w_column$u / $UNIT_Mu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Mu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / $(8 * VEC8S)u) + begin + w_block$u % BLOCKS;
  let w_to$u = w_column$u * PITCH + w_block$u % BLOCKS * $VEC8Su;
  let w_scale$u = w_scales[w_row$u];
  //for a in AHEAD
  var w$a_$u = load_weights(w_from$u + min($au * BLOCKS, range - BLOCKS));
  //end
  //end
  //for s in STAGED
  //for u in X_LOADS
  let x_chunk$u = lane + $uu * $LANESu;
  let x_row$u = min(x_chunk$u / X_CHUNKS, $X_ROWSu - 1u);
  let x_from$u = (x_row$u * (COLS / 8u) + begin + x_chunk$u % X_CHUNKS) * 2u;
  let x_to$u = x_chunk$u / X_CHUNKS * ($HI_STEPu * X_PITCH) + x_chunk$u % X_CHUNKS;
  let x_scale$u = x_scales[x_row$u];
  //for a in X_SETS
  //for j in SUBS
  var xa$a_$j_$u = x[x_from$u + min($au * BLOCKS + $ju * X_CHUNKS, range - X_CHUNKS) * 2u];
  var xb$a_$j_$u = x[x_from$u + min($au * BLOCKS + $ju * X_CHUNKS, range - X_CHUNKS) * 2u + 1u];
  //end
  //end
  //end
  //end
  //for s in HALVES
  //for u in X_LOADS
  let x_chunk$u = lane + $uu * $LANESu;
  let x_row$u = min(x_chunk$u / X_CHUNKS, $X_ROWSu - 1u);
  let x_from$u = x_row$u * (COLS / 4u) + begin + x_chunk$u % X_CHUNKS;
  let x_to$u = x_chunk$u / X_CHUNKS * ($HI_STEPu * X_PITCH) + x_chunk$u % X_CHUNKS;
  //for a in X_SETS
  //for j in SUBS
  var xa$a_$j_$u = x[x_from$u + min($au * BLOCKS + $ju * X_CHUNKS, range - X_CHUNKS)];
  var xb$a_$j_$u = x[x_from$u + min($au * BLOCKS + $ju * X_CHUNKS, range - X_CHUNKS) + COLS / 8u];
  //end
  //end
  //end
  //end

  //for c in OWN_C
  //for i in X_TILES
  var sums$i_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end
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
      //for j in SUBS
      {
      //for m in IN_MEMORY
      //for u in X_LOADS
      //for p in X_PART
      if (x_chunk$u < $X_ROWSu * X_CHUNKS)
      //end
      {
        //for s in STAGED
        let a = xa$(a * XS)_$j_$u * x_scale$u;
        let b = xb$(a * XS)_$j_$u * x_scale$u;
        xs[x_to$u] = eight_of_x(cut(a), cut(b));
        xs[x_to$u + $LO_STEPu * X_PITCH] = eight_of_x(a - cut(a), b - cut(b));
        //end
        //for s in HALVES
        xs[x_to$u] = xa$(a * XS)_$j_$u;
        xs[x_to$u + $LO_STEPu * X_PITCH] = xb$(a * XS)_$j_$u;
        //end
      }
      //end
      //end
      workgroupBarrier();
      //for b in BRANCHED
      let next = k + ($au + $AHEADu) * BLOCKS;
      if ($ju == 0u && next < range)
      //end
      //for b in STRAIGHT
      let next = min(k + ($au + $AHEADu) * BLOCKS, range - BLOCKS);
      if ($ju == 0u)
      //end
      {
        //for u in W_LOADS
        w$a_$u = load_weights(w_from$u + next);
        //end
      }
      let next_x = k + $(a + X_AHEAD)u * BLOCKS + $ju * X_CHUNKS;
      //for m in IN_MEMORY
      //for b in BRANCHED
      if (next_x < range)
      //end
      {
        //for b in BRANCHED
        let at = next_x;
        //end
        //for b in STRAIGHT
        let at = min(next_x, range - X_CHUNKS);
        //end
        //for u in X_LOADS
        //for s in STAGED
        xa$(a * XS)_$j_$u = x[x_from$u + at * 2u];
        xb$(a * XS)_$j_$u = x[x_from$u + at * 2u + 1u];
        //end
        //for s in HALVES
        xa$(a * XS)_$j_$u = x[x_from$u + at];
        xb$(a * XS)_$j_$u = x[x_from$u + at + COLS / 8u];
        //end
        //end
      }
      //end
      //for o in LOOPED
      for (var s = 0u; s < $SUB_STEPSu; s++)
      //end
      {
        //for o in UNROLLED
        let s = 0u;
        //end
        //for t in OWN_STEPS
        {
          let at = (s + $tu) * $UNIT_Ku / 8u;
          //for i in X_TILES
          //for m in IN_MEMORY
          let x_tile$i = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &xs, at + $iu * $UNIT_Nu * X_PITCH, X_PITCH);
          //end
          //end
          //for c in OWN_C
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
            &ws, $cu * $UNIT_Mu * PITCH + $ju * X_CHUNKS + at, PITCH);
          //for i in X_TILES
          sums$i_$c = subgroupMatrixMultiplyAccumulate(w_tile$c, x_tile$i, sums$i_$c);
          //end
          //end
        }
        //end
      }
      workgroupBarrier();
      }
      //end
    }
    //end
  }

  //for c in OWN_C
  //for i in X_TILES
  subgroupMatrixStore<col_major>(&ws, $(c * X_TILES + i)u * $SUM_WORDSu, sums$i_$c, $UNIT_Mu / 4u);
  //end
  //end
  workgroupBarrier();
  let out_scale = vec2(inverse(own_scales.x), inverse(own_scales.y));
  //for p in PREPARED
  //for t in TURNS
  let prepared$t = prepare(min(row$t, $X_ROWSu - 1u), own);
  //end
  //end
  let own_tile = lane % PER_ROW / $UNIT_HALFu;
  let output = lane % $UNIT_HALFu;
  //for t in TURNS
  {
    if (row$t < $X_ROWSu && column < half) {
      let y = vec2(sum_of(own_tile, row$t, output), sum_of(own_tile, row$t, output + $UNIT_HALFu)) *
        inverse(row_scale$t) * out_scale;
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

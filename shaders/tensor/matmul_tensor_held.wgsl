// y[n] = sum_k x[k] * W[n, k] as matmul_tensor.wgsl, to the bit, for one row of x that is in workgroup memory as hi
// and lo over the whole of a workgroup's range of k: only weights pass through it stage by stage.
//
// A workgroup is one subgroup as in matmul_tensor_few.wgsl, and makes $OWN_C tiles of columns. Eight numbers of x
// are a chunk of hi and one of lo, LO_PLACE chunks of each in turn: read as a unit's tile whose rows begin STRIDE chunks
// apart, the first row is hi and row LO_ROW is lo; what the others are decides nothing that is read.
// COLS / SPLIT_K / 8 is $RANGE. Slots:
//   out, epilogue: as of matmul_tensor_few.wgsl.
//   held: what `hold` declares outside of functions.
//   hold: the statements that put x of the range into workgroup memory by `put_chunk`, and `let x_scale`.

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
//use tensor/to_f16
//use held

// [MATRIX_ROWS, COLS / 8]: eight bf16, or where $HALVED is 1 eight f16 that halve_weights.wgsl made of them
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
// [COLS / 4]
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
// [MATRIX_ROWS]
@group(0) @binding(14) var<storage, read> w_scales: array<f32>;

const THREADS = $LANESu;
const RANGE = $RANGEu; // chunks
const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank
const LO_ROW = $UNIT_Mu / 2u;
const STRIDE = $UNIT_Ku / 8u; // the least that a tile's rows may lie apart, in chunks
const LO_PLACE = LO_ROW * STRIDE;
const PER_ROW = $(OWN_C * UNIT_HALF)u; // pairs of columns

// Eight f16: [TILE_COLS, PITCH], later the sums of the tiles.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
// Chunk i of hi at place(i), that of lo LO_PLACE behind; the last tile ends beyond them.
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;

fn place(chunk: u32) -> u32 {
  return chunk + chunk / LO_PLACE * LO_PLACE;
}

// Eight numbers of x times its scale.
fn put_chunk(chunk: u32, a: vec4<f32>, b: vec4<f32>) {
  //for l in LOW
  xs[place(chunk)] = packed(cut(a), cut(b));
  xs[place(chunk) + LO_PLACE] = packed(a - cut(a), b - cut(b));
  //end
  //for l in ROUNDED
  xs[place(chunk)] = packed(a, b);
  //end
}

// The sums of hi and of lo.
fn sum_of(at: u32) -> f32 {
  var sum = bitcast<f32>(ws[at / 4u][at % 4u]);
  //for l in LOW
  sum += bitcast<f32>(ws[at / 4u + LO_ROW * $UNIT_Nu / 4u][at % 4u]);
  //end
  return sum;
}

@compute @workgroup_size($LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let begin = tile.z * RANGE;

  //for u in W_LOADS
  let w_chunk$u = lane + $uu * $LANESu;
  let w_column$u = w_chunk$u / CHUNKS;
  let w_pair$u = min(pair + w_column$u / $UNIT_Nu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Nu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / 8u) + begin + w_chunk$u % CHUNKS;
  let w_to$u = w_column$u * PITCH + w_chunk$u % CHUNKS;
  let w_scale$u = w_scales[w_row$u];
  //for a in AHEAD
  var w$a_$u = weights[w_from$u + min($au * CHUNKS, RANGE - CHUNKS)];
  //end
  //end
  // Of the lane's outputs; from memory, which answers while weights do.
  let column = pair + lane % PER_ROW;
  let own_column = min(column, half - 1u);
  let own_scale = vec2(w_scales[own_column], w_scales[own_column + half]);

  let thread = lane;
  //use hold

  //for c in OWN_C
  var sums$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end

  for (var k = 0u; k < RANGE; k += $AHEADu * CHUNKS) {
    //for a in AHEAD
    //for g in RAGGED
    if (k + $au * CHUNKS < RANGE)
    //end
    {
      //for u in W_LOADS
      if (w_chunk$u < $TILE_COLSu * CHUNKS) {
        ws[w_to$u] = eight_halves(w$a_$u, w_scale$u);
      }
      //end
      //for b in BARRIERS
      workgroupBarrier();
      //end
      let next = k + ($au + $AHEADu) * CHUNKS;
      if (next < RANGE) {
        //for u in W_LOADS
        w$a_$u = weights[w_from$u + next];
        //end
      }
      //for s in STEPS
      {
        let at = $su * $UNIT_Ku / 8u;
        let x_tile = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
          &xs, place(k + $au * CHUNKS + at), STRIDE);
        //for c in OWN_C
        let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
          &ws, $cu * $UNIT_Nu * PITCH + at, PITCH);
        sums$c = subgroupMatrixMultiplyAccumulate(x_tile, w_tile$c, sums$c);
        //end
      }
      //end
      //for b in BARRIERS
      workgroupBarrier();
      //end
    }
    //end
  }
  workgroupBarrier();

  //for c in OWN_C
  subgroupMatrixStore<row_major>(&ws, $cu * $SUM_WORDSu, sums$c, $UNIT_Nu / 4u);
  //end
  workgroupBarrier();
  if (lane < PER_ROW && column < half) {
    let out_scale = vec2(inverse(own_scale.x), inverse(own_scale.y));
    let at = lane / $UNIT_HALFu * $(SUM_WORDS * 4)u + lane % $UNIT_HALFu;
    let y = vec2(sum_of(at), sum_of(at + $UNIT_HALFu)) * inverse(x_scale) * out_scale;
    epilogue(tile.z, column, half, y);
  }
  fold(PER_ROW);
  if (lane == 0u) {
    end_row(0u);
  }
}

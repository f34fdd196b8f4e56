// y[r, n] = sum_k x[r, k] * W[n, k], on matrix units that multiply f16 and add f32.
//
// x = (hi + lo) / x_scales[r], two f16 numbers: 22 bits. hi is x cut to 11 bits, by its bits: a driver takes
// unpack2x16float(pack2x16float(x)) for x, and lo for 0. W, bf16, is f16 after its row's scale, exactly; quantized
// weights are rounded to it, and k is in the order in which they lie.
// The scales are powers of two. An output is
//   (sum_k hi * w + sum_k lo * w) / x_scales[r] / w_scales[n],
// or, where $LOW is 0, the first sum alone of x rounded to the nearest f16: half the products,
// each sum over tiles of $UNIT_K in order of k, of one of SPLIT_K equal ranges: the same bits at any
// number of rows and in any shape of workgroup, so that one family serves prompts, single tokens and rounds.
//
// Outputs come in pairs, half of MATRIX_ROWS apart, as the epilogues of matmul/ want them: of a tile's
// $UNIT_N columns the second half are the partners of the first. A workgroup makes $TILE_ROWS rows and
// $TILE_COLS columns. All its lanes bring $STAGE of k at a time
// through workgroup memory, 16 bytes each, and load $AHEAD stages ahead while subgroups multiply;
// subgroup g has $OWN_R tiles of rows and $OWN_C of columns, those beyond the grid bring data only.
// COLS / SPLIT_K is a multiple of $STAGE. Slots:
//   load: the weights as f16, tensor/load/*.wgsl: `Loaded`, `load_weights(block)`, `halves_$p(loaded, scale)` of the
//     block's vec8 p; `vec8_of(block)`, `in_stage(chunk)` and `eight_of_x` bring x in the same order.
//   out: of matrix units, tensor/out_*.wgsl.
//   epilogue: as of matmul/matmul.wgsl.

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

// [rows, COLS / 4]: its size gives the rows
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
// [MATRIX_ROWS]
@group(0) @binding(14) var<storage, read> w_scales: array<f32>;
// [rows]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;

const THREADS = $THREADSu;
const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const BLOCKS = CHUNKS / $VEC8Su; // of weights, in a stage of a row
const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank

// Eight f16: [TILE_COLS, PITCH], later the sums of a tile for each subgroup.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
// hi [TILE_ROWS, PITCH], then lo where there is one.
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;

// Four sums of hi and of lo.
fn sum_at(at: u32) -> vec4<f32> {
  var sum = bitcast<vec4<f32>>(ws[at]);
  //for l in LOW
  sum += bitcast<vec4<f32>>(ws[at + $SUM_WORDSu]);
  //end
  return sum;
}

@compute @workgroup_size($THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let rows = arrayLength(&x) / (COLS / 4u);
  let row = tile.x * $TILE_ROWSu;
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u / SPLIT_K; // blocks
  let begin = tile.z * range;
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  let multiplies = subgroup < $GRID_Ru * $GRID_Cu;
  let own_row = subgroup % $GRID_Ru * $OWN_Ru * $UNIT_Mu;
  let own_column = subgroup / $GRID_Ru * $OWN_Cu * $UNIT_Nu;

  //for u in W_LOADS
  let w_block$u = thread + $uu * THREADS;
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
  let x_chunk$u = thread + $uu * THREADS;
  let x_row$u = min(row + x_chunk$u / CHUNKS, rows - 1u);
  let x_from$u = (x_row$u * (COLS / 8u) + in_stage(x_chunk$u % CHUNKS)) * 2u;
  let x_to$u = x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;
  let x_scale$u = x_scales[x_row$u];
  //for a in AHEAD
  var xa$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * 2u];
  var xb$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * 2u + 1u];
  //end
  //end

  //for r in OWN_R
  //for c in OWN_C
  var hi$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //for l in LOW
  var lo$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end
  //end
  //end

  for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {
    //for a in AHEAD
    //for g in RAGGED
    if (k + $au * BLOCKS < range)
    //end
    {
      //for u in W_LOADS
      if (w_block$u < $TILE_COLSu * BLOCKS) {
        //for p in VEC8S
        ws[w_to$u + $pu] = halves_$p(w$a_$u, w_scale$u);
        //end
      }
      //end
      //for u in X_LOADS
      if (x_chunk$u < $TILE_ROWSu * CHUNKS) {
        let a = xa$a_$u * x_scale$u;
        let b = xb$a_$u * x_scale$u;
        //for l in LOW
        xs[x_to$u] = eight_of_x(cut(a), cut(b));
        xs[x_to$u + $TILE_ROWSu * PITCH] = eight_of_x(a - cut(a), b - cut(b));
        //end
        //for l in ROUNDED
        xs[x_to$u] = eight_of_x(a, b);
        //end
      }
      //end
      workgroupBarrier();
      let next = k + ($au + $AHEADu) * BLOCKS;
      // Loads that are in no branch, but clamped, end up behind the products: a fifth longer.
      if (next < range) {
        //for u in W_LOADS
        w$a_$u = load_weights(w_from$u + next);
        //end
        //for u in X_LOADS
        xa$a_$u = x[x_from$u + vec8_of(begin + next) * 2u];
        xb$a_$u = x[x_from$u + vec8_of(begin + next) * 2u + 1u];
        //end
      }
      if (multiplies) {
        for (var s = 0u; s < $STEPSu; s++) {
          //for r in OWN_R
          let at$r = (own_row + $ru * $UNIT_Mu) * PITCH + s * $UNIT_Ku / 8u;
          let xh$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&xs, at$r, PITCH);
          //for l in LOW
          let xl$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&xs, at$r + $TILE_ROWSu * PITCH, PITCH);
          //end
          //end
          //for c in OWN_C
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &ws, (own_column + $cu * $UNIT_Nu) * PITCH + s * $UNIT_Ku / 8u, PITCH);
          //for r in OWN_R
          hi$r_$c = subgroupMatrixMultiplyAccumulate(xh$r, w_tile$c, hi$r_$c);
          //for l in LOW
          lo$r_$c = subgroupMatrixMultiplyAccumulate(xl$r, w_tile$c, lo$r_$c);
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
  let sums = subgroup * 2u * $SUM_WORDSu;
  //for r in OWN_R
  //for c in OWN_C
  if (multiplies) {
    subgroupMatrixStore<row_major>(&ws, sums, hi$r_$c, $UNIT_Nu / 4u);
    //for l in LOW
    subgroupMatrixStore<row_major>(&ws, sums + $SUM_WORDSu, lo$r_$c, $UNIT_Nu / 4u);
    //end
  }
  workgroupBarrier();
  if (multiplies) {
    for (var i = lane; i < $SUM_WORDSu / 2u; i += $LANESu) {
      let r = row + own_row + $ru * $UNIT_Mu + i / $HALF_WORDSu;
      let c = pair + own_column / 2u + $cu * $UNIT_HALFu + i % $HALF_WORDSu * 4u;
      let at = sums + i / $HALF_WORDSu * $HALF_WORDSu * 2u + i % $HALF_WORDSu;
      let first = sum_at(at);
      let second = sum_at(at + $HALF_WORDSu);
      for (var e = 0u; e < 4u; e++) {
        if (r < rows && c + e < half) {
          let w = vec2(inverse(w_scales[c + e]), inverse(w_scales[c + e + half]));
          let y = vec2(first[e], second[e]) * inverse(x_scales[r]) * w;
          epilogue(tile.z * rows + r, c + e, half, y);
        }
      }
      if (r < rows) {
        end_row(r);
      }
    }
  }
  workgroupBarrier();
  //end
  //end
}

// y[r, n] = sum_k x[r, k] * W[n, k] as matmul_tensor.wgsl, to the bit, for few rows: W is the left matrix, and the rows
// of x are columns of the right one, lo of a row behind its hi, so that one product makes both sums. Rows that fill
// more than the unit's columns take two tiles of columns. The other columns' outputs are not read. Up to four rows need
// half the products if the unit also has products with half the columns.
//
// A workgroup makes $X_ROWS rows of $OWN_C tiles of $UNIT_M outputs for each of its subgroups, which share x, over one
// of SPLIT_K ranges of k, in pairs as in matmul_tensor.wgsl. With one subgroup a barrier costs nothing. The lanes bring
// $STAGE numbers of k at a time through workgroup memory, 16 bytes each, $AHEAD stages ahead. Lanes that have no vec8
// of x of their own store its last vec8 again, behind the rows, because stores in a branch cost a tenth. COLS /
// SPLIT_K is a multiple of $STAGE.
// Where $RESIDENT is set x, one row, is whole in workgroup memory before the first stage, as in
// matmul/matmul_resident.wgsl. Its scale is found on the way. With $RESETS the first workgroup resets the scales of
// other inputs to the largest.

// Declarations that the matmuls on matrix units have in common, for weights [MATRIX_ROWS, COLS] and rows of x in stages
// of $STAGE numbers of k.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);

override COLS: u32;
override MATRIX_ROWS: u32; // even
override OUT_COLS: u32; // row stride of out
override FIRST: u32; // first output column of the shard
override SPLIT_K: u32;

//#if OUT_SCALES
// For an epilogue that passes what it stores to `consider`: reduces the scale of a row of `out` to that of its largest
// number. The scale is the largest one before, so the order does not matter.

//#import lib/scale_of

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
// Bits of f32 [rows]; those of positive floats are ordered like the floats.
@group(0) @binding(13) var<storage, read_write> out_scales: array<atomic<u32>>;

var<private> peak: f32 = 0.0;
var<private> folded: f32 = 0.0;

fn consider(y: f32) {
  peak = max(peak, abs(y));
}

fn end_row(row: u32) {
  atomicMin(&out_scales[row], bitcast<u32>(scale_of(max(peak, folded))));
  peak = 0.0;
  folded = 0.0;
}

// Joins the peaks of `lanes` neighbouring invocations, a power of two, whose outputs belong to one row.
fn fold(lanes: u32) {
  folded = peak;
  peak = 0.0;
  for (var apart = 1u; apart < lanes; apart *= 2u) {
    folded = max(folded, subgroupShuffleXor(folded, apart));
  }
}
//#else
// The output of a matmul on matrix units whose epilogue stores numbers.
//
//   end_row(row): called when an invocation has given the epilogue its outputs of a row.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn end_row(row: u32) {}

fn fold(lanes: u32) {}
//#endif
//#import lib/epilogue
//#import lib/f16_weights

@group(0) @binding(14) var<storage, read> w_scales: array<f32>; // [MATRIX_ROWS]

const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const BLOCKS = CHUNKS / $VEC8Su; // of weights, in a stage of a row

const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank

//#if X_IS_F16
// hi and, where $LOW is 1, lo as f16, [X_ROWS, 1 + $LOW, COLS / 8]
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;

const X_STEP = 1u;
const X_VECTORS = 1u + $LOWu; // vectors for eight numbers
//#else
// [X_ROWS, COLS / 4]
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;

const X_STEP = 2u; // vectors of eight numbers, one after the other
const X_VECTORS = 2u;
//#endif
//#if !RESIDENT
// [X_ROWS]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;
//#endif

const THREADS = $THREADSu;
const X_PITCH = $X_PITCHu;
const ROW = $ROW_COLUMNSu; // columns from a row to the next
const LO = $LO_COLUMNSu; // and from hi of a row to lo
const PER_ROW = $(OWN_C * UNIT_HALF)u; // pairs of outputs, one a lane

// Eight f16: [TILE_COLS, PITCH], later the sums of the tiles, [UNIT_N, UNIT_M] f32 each.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
// Columns of the right matrix, [.., X_PITCH]. Resident: see `place_of`.
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;

//#if RESIDENT
//#import lib/prologue_normed
//#if RESETS
// Resets a row's scales of the inputs of the layer's other matmuls to the largest, for the kernels that make those
// inputs to reduce. This is what lib/store_scales.wgsl does, for a norm that is no dispatch of its own.

//#import lib/scale_of

override REDUCED_ROWS: u32; // of attention's output, in reduced
override ROW_JOBS: u32;

// Scales of attention's output, [REDUCED_ROWS], and of the gated activations, [rows, ROW_JOBS].
@group(0) @binding(15) var<storage, read_write> reduced: array<f32>;

fn reset_scales(lane: u32) {
  for (var j = lane; j < ROW_JOBS; j += THREADS) {
    reduced[REDUCED_ROWS + j] = bitcast<f32>(LARGEST_SCALE);
  }
  if (lane == 0u) {
    reduced[0] = bitcast<f32>(LARGEST_SCALE);
  }
}
//#else
// No scales are reset here.

fn reset_scales(lane: u32) {}
//#endif
//#import lib/scale_of

const X_BLOCK = $UNIT_Nu; // vec8s of hi side by side, then those of lo

// The largest size of the numbers that this invocation has stored.
var<private> x_peak: f32 = 0.0;

// Where the hi of vec8 i of x is. Its lo is X_BLOCK behind it: the LO columns to the column of lo are 2 apart.
fn place_of(i: u32) -> u32 {
  return i / X_BLOCK * (2u * X_BLOCK) + i % X_BLOCK;
}

// Stores x as f32; `split_x` makes it f16.
fn put_vec8(r: u32, i: u32, a: vec4<f32>, b: vec4<f32>) {
  xs[place_of(i)] = bitcast<vec4<u32>>(a);
  xs[place_of(i) + X_BLOCK] = bitcast<vec4<u32>>(b);
  let size = max(abs(a), abs(b));
  x_peak = max(max(x_peak, max(size.x, size.y)), max(size.z, size.w));
}

// Called when all of x is there: replaces the f32 numbers by hi and lo.
fn split_x(lane: u32, count: u32, scale: f32) {
  for (var i = lane; i < count; i += THREADS) {
    let at = place_of(i);
    let a = bitcast<vec4<f32>>(xs[at]) * scale;
    let b = bitcast<vec4<f32>>(xs[at + X_BLOCK]) * scale;
    //#if LOW
    xs[at] = eight_of_x(hi_of(a), hi_of(b));
    xs[at + X_BLOCK] = eight_of_x(a - hi_of(a), b - hi_of(b));
    //#else
    xs[at] = eight_of_x(a, b);
    //#endif
  }
}
//#endif

fn number_of(at: u32) -> f32 {
  return bitcast<f32>(ws[at / 4u][at % 4u]);
}

// The sum of hi plus that of lo, for one row and one output of a tile.
fn sum_of(tile: u32, row: u32, output: u32) -> f32 {
  let at = (tile * $(X_TILES * UNIT_N)u + row * ROW) * $UNIT_Mu + output;
  var sum = number_of(at);
  //#if LOW
  sum += number_of(at + LO * $UNIT_Mu);
  //#endif
  return sum;
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  //#if epilogue == bias
  own_range = tile.z;
  //#endif
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u / SPLIT_K; // blocks
  let begin = tile.z * range;

  // The weight scales of the lane's outputs: no cache has them, so they are loaded together with the first weights.
  let column = pair + subgroup * PER_ROW + lane % PER_ROW;
  let own = min(column, half - 1u);
  let own_scales = vec2(w_scales[own], w_scales[own + half]);
  //#for t in TURNS
  let row$t = $tu * ($LANESu / PER_ROW) + lane / PER_ROW;
  //#if !RESIDENT
  let row_scale$t = x_scales[min(row$t, $X_ROWSu - 1u)];
  //#endif
  //#endfor

  //#for u in W_LOADS
  let w_block$u = thread + $uu * THREADS;
  let w_column$u = w_block$u / BLOCKS;
  let w_pair$u = min(pair + w_column$u / $UNIT_Mu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Mu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / $(8 * VEC8S)u) + begin + w_block$u % BLOCKS;
  let w_to$u = w_column$u * PITCH + w_block$u % BLOCKS * $VEC8Su;
  let w_scale$u = w_scales[w_row$u];
  //#for a in AHEAD
  var w$a_$u = load_weights(w_from$u + min($au * BLOCKS, range - BLOCKS));
  //#endfor
  //#endfor
  //#if RESIDENT
  let row = 0u;
  let rows = 1u;
  //#import lib/prologue_statements_normed
  if (tile.y == 0u) {
    reset_scales(lane);
  }
  workgroupBarrier();
  let row_scale0 = scale_of(subgroupMax(x_peak));
  split_x(lane, range, row_scale0);
  workgroupBarrier();
  //#else
  //#if X_IS_F16
  let x_second = COLS / 8u;
  //#else
  let x_second = 1u; // behind the first of the two vectors of eight numbers
  //#endif
  //#for u in X_LOADS
  let x_chunk$u = thread + $uu * THREADS;
  let x_own$u = min(x_chunk$u, $X_ROWSu * CHUNKS - 1u);
  let x_row$u = x_own$u / CHUNKS;
  let x_to$u = x_chunk$u / CHUNKS * ROW * X_PITCH + x_chunk$u % CHUNKS;
  let x_scale$u = x_scales[x_row$u];
  let x_from$u = x_row$u * (COLS / 8u * X_VECTORS) + in_stage(x_own$u % CHUNKS) * X_STEP;
  //#for a in AHEAD
  var xa$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * X_STEP];
  //#if READS_TWO
  var xb$a_$u = x[x_from$u + vec8_of(begin + min($au * BLOCKS, range - BLOCKS)) * X_STEP + x_second];
  //#endif
  //#endfor
  //#endfor
  //#endif

  //#for c in OWN_C
  //#for h in X_TILES
  var sums$c_$h = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //#endfor
  //#endfor

  for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {
    //#for a in AHEAD
    //#if RAGGED
    if (k + $au * BLOCKS < range)
    //#endif
    {
      //#if BRANCHED
      let next = k + ($au + $AHEADu) * BLOCKS;
      //#else
      let next = min(k + ($au + $AHEADu) * BLOCKS, range - BLOCKS);
      //#endif
      //#for u in W_LOADS
      //#if W_PART
      if (w_block$u < $TILE_COLSu * BLOCKS)
      //#endif
      {
        //#for p in VEC8S
        ws[w_to$u + $pu] = halves_$p(w$a_$u, w_scale$u);
        //#endfor
      }
      //#endfor
      //#if !RESIDENT
      //#for u in X_LOADS
      //#if X_IS_F16
      //#if LOW
      xs[x_to$u] = xa$a_$u;
      //#else
      xs[x_to$u] = in_order(xa$a_$u);
      //#endif
      //#if LOW
      xs[x_to$u + LO * X_PITCH] = xb$a_$u;
      //#endif
      //#else
      let a$u = xa$a_$u * x_scale$u;
      let b$u = xb$a_$u * x_scale$u;
      //#if LOW
      xs[x_to$u] = eight_of_x(hi_of(a$u), hi_of(b$u));
      xs[x_to$u + LO * X_PITCH] = eight_of_x(a$u - hi_of(a$u), b$u - hi_of(b$u));
      //#else
      xs[x_to$u] = eight_of_x(a$u, b$u);
      //#endif
      //#endif
      //#endfor
      //#endif
      workgroupBarrier();
      //#if BRANCHED
      if (next < range)
      //#endif
      {
        //#for u in W_LOADS
        w$a_$u = load_weights(w_from$u + next);
        //#endfor
        //#if !RESIDENT
        //#for u in X_LOADS
        xa$a_$u = x[x_from$u + vec8_of(begin + next) * X_STEP];
        //#if READS_TWO
        xb$a_$u = x[x_from$u + vec8_of(begin + next) * X_STEP + x_second];
        //#endif
        //#endfor
        //#endif
      }
      //#if !BRANCHED
      for (var s = 0u; s < $STEPSu; s++)
      //#endif
      {
        //#if BRANCHED
        let s = 0u;
        //#endif
        //#for t in OWN_STEPS
        {
          let at = (s + $tu) * $UNIT_Ku / 8u;
          //#if RESIDENT
          let x_at = place_of(k + $au * BLOCKS + at);
          //#else
          let x_at = at;
          //#endif
          //#for h in X_TILES
          let x_tile$h = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &xs, $hu * $UNIT_Nu * X_PITCH + x_at, X_PITCH);
          //#endfor
          //#for c in OWN_C
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
            &ws, (subgroup * $OWN_Cu + $cu) * $UNIT_Mu * PITCH + at, PITCH);
          //#for h in X_TILES
          sums$c_$h = subgroupMatrixMultiplyAccumulate(w_tile$c, x_tile$h, sums$c_$h);
          //#endfor
          //#endfor
        }
        //#endfor
      }
      workgroupBarrier();
    }
    //#endfor
  }

  //#for c in OWN_C
  //#for h in X_TILES
  subgroupMatrixStore<col_major>(
    &ws, ((subgroup * $OWN_Cu + $cu) * $X_TILESu + $hu) * ($UNIT_Mu * $UNIT_Nu / 4u), sums$c_$h, $UNIT_Mu / 4u);
  //#endfor
  //#endfor
  workgroupBarrier();
  let out_scale = vec2(inverse(own_scales.x), inverse(own_scales.y));
  //#if PREPARED
  //#for t in TURNS
  let prepared$t = prepare(min(row$t, $X_ROWSu - 1u), own);
  //#endfor
  //#endif
  let own_tile = subgroup * $OWN_Cu + lane % PER_ROW / $UNIT_HALFu;
  let output = lane % $UNIT_HALFu;
  //#for t in TURNS
  {
    if (row$t < $X_ROWSu && column < half) {
      let sums = vec2(sum_of(own_tile, row$t, output), sum_of(own_tile, row$t, output + $UNIT_HALFu));
      let y = sums * inverse(row_scale$t) * out_scale;
      //#if PREPARED
      finish(prepared$t, column, y);
      //#else
      epilogue(tile.z * $X_ROWSu + row$t, column, half, y);
      //#endif
    }
    fold(PER_ROW);
    if (row$t < $X_ROWSu && lane % PER_ROW == 0u) {
      end_row(row$t);
    }
  }
  //#endfor
}

// y[r, n] = sum_k x[r, k] * W[n, k], on matrix units that multiply f16 and add f32.
//
// x = (hi + lo) / x_scales[r], two f16 numbers: 22 bits. hi is x truncated to 11 bits by a mask: a driver simplifies
// unpack2x16float(pack2x16float(x)) to x, so that lo would be 0. W, bf16, is exact in f16 after its row's scale;
// quantized weights are rounded to f16, and k is in the order in which they are stored. Where $X_IS_F16 is 1 the kernel
// that wrote x has split or rounded it. The scales are powers of two. An output is
//   (sum_k hi * w + sum_k lo * w) / x_scales[r] / w_scales[n],
// or, where $LOW is 0, the first sum alone, of x rounded to the nearest f16: half the products. Each sum goes over
// tiles of $UNIT_K in order of k, within one of SPLIT_K equal ranges. That gives the same bits at any number of rows
// and in any shape of workgroup, so that one family serves prompts, single tokens and rounds.
//
// Outputs come in pairs, half of MATRIX_ROWS apart, as the epilogues of matmul/ want them: the second half of a tile's
// $UNIT_N columns are the partners of the first. A workgroup makes $TILE_ROWS rows and $TILE_COLS columns. All its
// lanes bring $STAGE numbers of k at a time through workgroup memory, 16 bytes each, and load $AHEAD stages ahead while
// subgroups multiply. Where $IN_TURN is 1, $AHEAD groups of subgroups take turns to bring a whole stage instead: a
// driver lets a subgroup wait for all of its outstanding loads, not only for those of the next stage. Each subgroup has
// $OWN_R tiles of rows and $OWN_C of columns; subgroups beyond the grid only bring data. COLS / SPLIT_K is a multiple
// of $STAGE. Where $JOINED is 1 a line of workgroup memory has two columns' numbers, or hi and lo of a row.

diagnostic(off, subgroup_uniformity);

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
// As below, for an epilogue that passes what it stores to `consider`: reduces the scale of a row of `out` to that of
// its largest number. It does so once per workgroup, because all workgroups reduce the same few numbers, one after the
// other.

//#import lib/scale_of

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
// Bits of f32 [rows]; those of positive floats are ordered like the floats.
@group(0) @binding(13) var<storage, read_write> out_scales: array<atomic<u32>>;

var<private> peak: f32 = 0.0;
// Bits of the largest absolute value in each row of the workgroup.
var<workgroup> row_peaks: array<atomic<u32>, $TILE_ROWS>;

fn consider(y: f32) {
  peak = max(peak, abs(y));
}

fn taken() -> f32 {
  let found = peak;
  peak = 0.0;
  return found;
}

fn gather(own: u32, own_peak: f32, lanes: u32, first: bool) {
  var folded = own_peak;
  for (var apart = 1u; apart < lanes; apart *= 2u) {
    folded = max(folded, subgroupShuffleXor(folded, apart));
  }
  if (first) {
    atomicMax(&row_peaks[own], bitcast<u32>(folded));
  }
}

fn end_row(row: u32, own: u32) {
  atomicMin(&out_scales[row], bitcast<u32>(scale_of(bitcast<f32>(atomicLoad(&row_peaks[own])))));
}
//#else
// The output of matmul_tensor.wgsl whose epilogue stores numbers.
//
//   taken(): where the epilogue stores scales, the largest size of what the invocation gave it since the last call;
//   gather(own, peak, lanes, first): called by a subgroup when all of its outputs of some rows are there. Each
//     invocation passes a row `own` of the workgroup and its largest `taken` of that row; `lanes` neighbours, a power
//     of two, have the same row, and one of them is `first`;
//   end_row(row, own): called by one invocation when the workgroup has gathered all its outputs of the row.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn taken() -> f32 {
  return 0.0;
}

fn gather(own: u32, peak: f32, lanes: u32, first: bool) {}

fn end_row(row: u32, own: u32) {}
//#endif
//#import lib/epilogue
//#import lib/f16_weights

@group(0) @binding(14) var<storage, read> w_scales: array<f32>; // [MATRIX_ROWS]

const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const BLOCKS = CHUNKS / $VEC8Su; // of weights, in a stage of a row

// Its size gives the rows.
//#if X_IS_F16
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>; // hi and lo as f16, [rows, 1 + $LOW, COLS / 8]

const X_STEP = 1u;
const X_VECTORS = 1u + $LOWu; // vectors for eight numbers
//#else
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]

const X_STEP = 2u; // vectors of eight numbers, one after the other
const X_VECTORS = 2u;
//#endif
// [rows]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;

const THREADS = $THREADSu;
const LOADERS = $LOADERSu; // of a stage
const LINE = $LINEu; // from row to row of workgroup memory; rows do not begin in the same bank
const LO = $LO_ATu; // distance from hi of a row of x to its lo

//#import lib/row_of_chunk

const XS = $XSu;
const SUM_PITCH = $SUM_PITCHu; // as LINE

// Eight f16: weights [TILE_COLS, LINE], from XS on x, hi [TILE_ROWS, LINE] and lo, LO behind, where there is one.
// Later, of each subgroup, the sums of a tile: hi [$UNIT_M, SUM_PITCH] of four f32, then lo.
var<workgroup> staged: array<vec4<u32>, $WORDS>;
// The inverse weight scales that the sums need at the end are loaded before the products: no cache has them.
var<workgroup> w_inverses: array<f32, $TILE_COLS>;

// The column of the tile whose block of weights a lane brings.
fn w_row_of(at: u32) -> u32 {
  //#if WHOLE_BLOCKS
  return row_of_chunk(at);
  //#else
  return at / BLOCKS;
  //#endif
}

// One output of a tile: its sum of hi plus that of lo.
fn sum_at(at: u32) -> f32 {
  var sum = bitcast<f32>(staged[at / 4u][at % 4u]);
  //#if LOW
  sum += bitcast<f32>(staged[at / 4u + $UNIT_Mu * SUM_PITCH][at % 4u]);
  //#endif
  return sum;
}

@compute @workgroup_size($THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //#if epilogue == bias
  own_range = tile.z;
  //#endif
  let rows = arrayLength(&x) / (COLS / 8u * X_VECTORS);
  let row = tile.x * $TILE_ROWSu;
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / $(8 * VEC8S)u / SPLIT_K; // blocks
  let begin = tile.z * range;
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  //#if X_IS_F16
  let x_second = COLS / 8u;
  //#else
  let x_second = 1u; // behind the first of the two vectors of eight numbers
  //#endif
  let multiplies = subgroup < $GRID_Ru * $GRID_Cu;
  let own_row = subgroup % $GRID_Ru * $OWN_Ru * $UNIT_Mu;
  let own_column = subgroup / $GRID_Ru * $OWN_Cu * $UNIT_Nu;

  //#if IN_TURN
  let group = thread / LOADERS;
  //#else
  let group = 0u;
  //#endif
  let loader = thread - group * LOADERS;
  //#for u in W_LOADS
  let w_block$u = loader + $uu * LOADERS;
  let w_column$u = w_row_of(w_block$u);
  let w_pair$u = min(pair + w_column$u / $UNIT_Nu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Nu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / $(8 * VEC8S)u) + begin + w_block$u % BLOCKS;
  //#if JOINED
  let w_line$u = w_column$u / $(2 * UNIT_N)u * $UNIT_Nu + w_column$u % $UNIT_Nu;
  let w_to$u = w_line$u * LINE + w_column$u / $UNIT_Nu % 2u * CHUNKS + w_block$u % BLOCKS * $VEC8Su;
  //#else
  let w_to$u = w_column$u * LINE + w_block$u % BLOCKS * $VEC8Su;
  //#endif
  let w_scale$u = w_scales[w_row$u];
  //#for a in SETS
  var w$a_$u = load_weights(w_from$u + min((group + $au) * BLOCKS, range - BLOCKS));
  //#endfor
  //#endfor
  //#for u in X_LOADS
  let x_chunk$u = loader + $uu * LOADERS;
  let own_x_row$u = row_of_chunk(x_chunk$u);
  let x_row$u = min(row + own_x_row$u, rows - 1u);
  let x_from$u = x_row$u * (COLS / 8u * X_VECTORS) + in_stage(x_chunk$u % CHUNKS) * X_STEP;
  let x_to$u = XS + own_x_row$u * LINE + x_chunk$u % CHUNKS;
  let x_scale$u = x_scales[x_row$u];
  //#for a in SETS
  var xa$a_$u = x[x_from$u + vec8_of(begin + min((group + $au) * BLOCKS, range - BLOCKS)) * X_STEP];
  //#if READS_TWO
  var xb$a_$u = x[x_from$u + vec8_of(begin + min((group + $au) * BLOCKS, range - BLOCKS)) * X_STEP + x_second];
  //#endif
  //#endfor
  //#endfor

  //#for u in COLUMN_LOADS
  let own_c$u = min(thread + $uu * THREADS, $TILE_COLSu - 1u);
  let own_pair$u = min(pair + own_c$u / $UNIT_Nu * $UNIT_HALFu + own_c$u % $UNIT_HALFu, half - 1u);
  let own_w$u = w_scales[own_pair$u + own_c$u % $UNIT_Nu / $UNIT_HALFu * half];
  if (thread + $uu * THREADS < $TILE_COLSu) {
    w_inverses[own_c$u] = inverse(own_w$u);
  }
  //#endfor

  //#for r in OWN_R
  //#for c in OWN_C
  var hi$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //#if LOW
  var lo$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //#endif
  //#endfor
  //#endfor

  for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {
    //#for a in AHEAD
    //#if RAGGED
    if (k + $au * BLOCKS < range)
    //#endif
    {
      //#if IN_TURN
      if (group == $au)
      //#endif
      {
        //#for u in W_LOADS
        if (w_block$u < $TILE_COLSu * BLOCKS) {
          //#for p in VEC8S
          staged[w_to$u + $pu] = halves_$p(w$(a * SET)_$u, w_scale$u);
          //#endfor
        }
        //#endfor
        //#for u in X_LOADS
        if (x_chunk$u < $TILE_ROWSu * CHUNKS) {
          //#if X_IS_F16
          //#if LOW
          staged[x_to$u] = xa$(a * SET)_$u;
          //#else
          staged[x_to$u] = in_order(xa$(a * SET)_$u);
          //#endif
          //#if LOW
          staged[x_to$u + LO] = xb$(a * SET)_$u;
          //#endif
          //#else
          let a = xa$(a * SET)_$u * x_scale$u;
          let b = xb$(a * SET)_$u * x_scale$u;
          //#if LOW
          staged[x_to$u] = eight_of_x(hi_of(a), hi_of(b));
          staged[x_to$u + LO] = eight_of_x(a - hi_of(a), b - hi_of(b));
          //#else
          staged[x_to$u] = eight_of_x(a, b);
          //#endif
          //#endif
        }
        //#endfor
      }
      let next = k + ($au + $AHEADu) * BLOCKS;
      //#if !EARLY
      workgroupBarrier();
      //#endif
      // Clamped loads outside of a branch would be moved behind the products and take a fifth longer.
      //#if IN_TURN
      if (group == $au && next < range)
      //#else
      if (next < range)
      //#endif
      {
        //#for u in W_LOADS
        w$(a * SET)_$u = load_weights(w_from$u + next);
        //#endfor
        //#for u in X_LOADS
        xa$(a * SET)_$u = x[x_from$u + vec8_of(begin + next) * X_STEP];
        //#if READS_TWO
        xb$(a * SET)_$u = x[x_from$u + vec8_of(begin + next) * X_STEP + x_second];
        //#endif
        //#endfor
      }
      //#if EARLY
      workgroupBarrier();
      //#endif
      if (multiplies) {
        for (var s = 0u; s < $STEPSu; s++) {
          //#for r in OWN_R
          let at$r = XS + (own_row + $ru * $UNIT_Mu) * LINE + s * $UNIT_Ku / 8u;
          let xh$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&staged, at$r, LINE);
          //#if LOW
          let xl$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&staged, at$r + LO, LINE);
          //#endif
          //#endfor
          //#for c in OWN_C
          // This is not a function of the column: a driver would compute every address anew and take 1.4 times as long.
          //#if JOINED
          let tile_column$c = own_column / $UNIT_Nu + $cu;
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &staged, tile_column$c / 2u * $UNIT_Nu * LINE + tile_column$c % 2u * CHUNKS + s * $UNIT_Ku / 8u, LINE);
          //#else
          let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
            &staged, (own_column + $cu * $UNIT_Nu) * LINE + s * $UNIT_Ku / 8u, LINE);
          //#endif
          //#for r in OWN_R
          hi$r_$c = subgroupMatrixMultiplyAccumulate(xh$r, w_tile$c, hi$r_$c);
          //#if LOW
          lo$r_$c = subgroupMatrixMultiplyAccumulate(xl$r, w_tile$c, lo$r_$c);
          //#endif
          //#endfor
          //#endfor
        }
      }
      workgroupBarrier();
    }
    //#endfor
  }

  // Tile by tile: stores the sums of hi and of lo, then makes the outputs from them.
  let sums = subgroup * $TILE_SUMSu;
  //#for r in OWN_R
  //#for q in PARTS
  let x_inverse$r_$q = inverse(
    x_scales[min(row + own_row + $ru * $UNIT_Mu + (lane + $qu * $LANESu) / $UNIT_HALFu, rows - 1u)]);
  //#endfor
  //#endfor
  //#for q in PARTS
  var peak$q = 0.0;
  //#endfor
  for (var t = 0u; t < $(OWN_R * OWN_C)u; t++) {
    if (multiplies) {
      switch t {
        //#for r in OWN_R
        //#for c in OWN_C
        case $(r * OWN_C + c)u: {
          subgroupMatrixStore<row_major>(&staged, sums, hi$r_$c, SUM_PITCH);
          //#if LOW
          subgroupMatrixStore<row_major>(&staged, sums + $UNIT_Mu * SUM_PITCH, lo$r_$c, SUM_PITCH);
          //#endif
        }
        //#endfor
        //#endfor
        default: {}
      }
    }
    workgroupBarrier();
    if (multiplies) {
      let tile_r = t / $OWN_Cu;
      let tile_c = t % $OWN_Cu;
      // Makes the outputs from the sums of a subgroup's tile (tile_r, tile_c), which lie in workgroup memory from
      // `sums` on. Neighbouring lanes have neighbouring outputs: with four outputs per lane, 16 bytes apart, a small
      // matrix takes half as long again.

      //#if PREPARED
      //#for q in PARTS
      let prepared$q = prepare(
        min(row + own_row + tile_r * $UNIT_Mu + (lane + $qu * $LANESu) / $UNIT_HALFu, rows - 1u),
        min(pair + own_column / 2u + tile_c * $UNIT_HALFu + (lane + $qu * $LANESu) % $UNIT_HALFu, half - 1u),
      );
      //#endfor
      //#endif
      //#for q in PARTS
      {
        let i = lane + $qu * $LANESu;
        let own_r = own_row + tile_r * $UNIT_Mu + i / $UNIT_HALFu;
        let own_c = own_column + tile_c * $UNIT_Nu + i % $UNIT_HALFu;
        let r = row + own_r;
        let c = pair + own_column / 2u + tile_c * $UNIT_HALFu + i % $UNIT_HALFu;
        let at = (sums + i / $UNIT_HALFu * SUM_PITCH) * 4u + i % $UNIT_HALFu;
        if (r < rows && c < half) {
          var x_inverse = x_inverse0_$q;
          //#for r in OWN_R
          x_inverse = select(x_inverse, x_inverse$r_$q, tile_r == $ru);
          //#endfor
          let w = vec2(w_inverses[own_c], w_inverses[own_c + $UNIT_HALFu]);
          let y = vec2(sum_at(at), sum_at(at + $UNIT_HALFu)) * x_inverse * w;
          //#if PREPARED
          finish(prepared$q, c, y);
          //#else
          epilogue(tile.z * rows + r, c, half, y);
          //#endif
        }
        peak$q = max(peak$q, taken());
      }
      //#endfor
      if (tile_c + 1u == $OWN_Cu) {
        //#for q in PARTS
        gather(own_row + tile_r * $UNIT_Mu + (lane + $qu * $LANESu) / $UNIT_HALFu, peak$q, $UNIT_HALFu, lane % $UNIT_HALFu == 0u);
        peak$q = 0.0;
        //#endfor
      }
    }
    workgroupBarrier();
  }
  for (var i = thread; i < $TILE_ROWSu; i += THREADS) {
    if (row + i < rows) {
      end_row(row + i, i);
    }
  }
}

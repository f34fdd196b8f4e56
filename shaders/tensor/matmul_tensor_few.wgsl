// y[r, n] = sum_k x[r, k] * W[n, k] as matmul_tensor.wgsl, to the bit, for few rows, which wait for weights.
//
// A workgroup makes up to $X_ROWS rows and $TILE_COLS columns, each of its first $GRID subgroups $OWN_C tiles
// of columns, over one of SPLIT_K ranges of k. All lanes bring $STAGE of k at a time through one of $BUFFERS
// buffers in workgroup memory, 16 bytes each, $AHEAD stages ahead. Workgroups are small, one subgroup where
// columns are many: a barrier of one costs nothing, and many of them have more loads on their way.
// Where rows are at most half of a unit's, hi and lo lie in one tile, lo in its second half ($APART is 0):
// half the products. Their sums are apart in either case. Outputs come in pairs as in matmul_tensor.wgsl.
// COLS / SPLIT_K is a multiple of $STAGE. Slots:
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
//use tensor/eight_halves

// [MATRIX_ROWS, COLS / 8]: eight bf16, or where $HALVED is 1 eight f16 that halve_weights.wgsl made of them
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
// [rows, COLS / 4]: its size gives the rows
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
// [MATRIX_ROWS]
@group(0) @binding(14) var<storage, read> w_scales: array<f32>;
// [rows]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;

const THREADS = $THREADSu;
const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank

// Eight f16: [BUFFERS, TILE_COLS, PITCH], later the sums of the subgroups' tiles.
var<workgroup> ws: array<vec4<u32>, $WEIGHT_WORDS>;
// [BUFFERS]: hi [$LO_ROW, PITCH], then lo; rows beyond X_ROWS stay zero.
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;

// x with the 11 bits that f16 has.
fn cut(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4(0xffffe000u));
}

fn packed(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(
    pack2x16float(a.xy),
    pack2x16float(a.zw),
    pack2x16float(b.xy),
    pack2x16float(b.zw),
  );
}

// 1 / scale, exactly.
fn inverse(scale: f32) -> f32 {
  return bitcast<f32>(0x7f000000u - bitcast<u32>(scale));
}

// Four sums of hi and of lo.
fn sum_at(at: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(ws[at]) + bitcast<vec4<f32>>(ws[at + $LO_WORDSu]);
}

@compute @workgroup_size($THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let rows = arrayLength(&x) / (COLS / 4u);
  let row = tile.x * $X_ROWSu;
  let half = MATRIX_ROWS / 2u;
  let pair = tile.y * ($TILE_COLSu / 2u);
  let range = COLS / 8u / SPLIT_K;
  let begin = tile.z * range;
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  let own_column = subgroup * $OWN_Cu * $UNIT_Nu;
  let multiplies = subgroup < $GRIDu;

  //for u in W_LOADS
  let w_chunk$u = thread + $uu * THREADS;
  let w_column$u = w_chunk$u / CHUNKS;
  let w_pair$u = min(pair + w_column$u / $UNIT_Nu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Nu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / 8u) + begin + w_chunk$u % CHUNKS;
  let w_to$u = w_column$u * PITCH + w_chunk$u % CHUNKS;
  let w_scale$u = w_scales[w_row$u];
  //for a in AHEAD
  var w$a_$u = weights[w_from$u + min($au * CHUNKS, range - CHUNKS)];
  //end
  //end
  //for u in X_LOADS
  let x_chunk$u = thread + $uu * THREADS;
  let x_row$u = min(row + x_chunk$u / CHUNKS, rows - 1u);
  let x_from$u = (x_row$u * (COLS / 8u) + begin + x_chunk$u % CHUNKS) * 2u;
  let x_to$u = x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;
  let x_scale$u = x_scales[x_row$u];
  //for a in AHEAD
  var xa$a_$u = x[x_from$u + min($au * CHUNKS, range - CHUNKS) * 2u];
  var xb$a_$u = x[x_from$u + min($au * CHUNKS, range - CHUNKS) * 2u + 1u];
  //end
  //end

  //for r in OWN_R
  //for c in OWN_C
  var hi$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //for l in APART
  var lo$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end
  //end
  //end

  var w_side = 0u;
  var x_side = 0u;
  for (var k = 0u; k < range; k += $AHEADu * CHUNKS) {
    //for a in AHEAD
    if (k + $au * CHUNKS < range) {
      //for u in W_LOADS
      if (w_chunk$u < $TILE_COLSu * CHUNKS) {
        ws[w_side + w_to$u] = eight_halves(w$a_$u, w_scale$u);
      }
      //end
      //for u in X_LOADS
      if (x_chunk$u < $X_ROWSu * CHUNKS) {
        let a = xa$a_$u * x_scale$u;
        let b = xb$a_$u * x_scale$u;
        xs[x_side + x_to$u] = packed(cut(a), cut(b));
        xs[x_side + x_to$u + $LO_ROWu * PITCH] = packed(a - cut(a), b - cut(b));
      }
      //end
      workgroupBarrier();
      let next = k + ($au + $AHEADu) * CHUNKS;
      if (next < range) {
        //for u in W_LOADS
        w$a_$u = weights[w_from$u + next];
        //end
        //for u in X_LOADS
        xa$a_$u = x[x_from$u + next * 2u];
        xb$a_$u = x[x_from$u + next * 2u + 1u];
        //end
      }
      if (multiplies) {
      for (var s = 0u; s < $STEPSu; s++) {
        //for r in OWN_R
        let x_at$r = x_side + $ru * $UNIT_Mu * PITCH + s * $UNIT_Ku / 8u;
        let xh$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&xs, x_at$r, PITCH);
        //for l in APART
        let xl$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&xs, x_at$r + $LO_ROWu * PITCH, PITCH);
        //end
        //end
        //for c in OWN_C
        let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
          &ws, w_side + (own_column + $cu * $UNIT_Nu) * PITCH + s * $UNIT_Ku / 8u, PITCH);
        //for r in OWN_R
        hi$r_$c = subgroupMatrixMultiplyAccumulate(xh$r, w_tile$c, hi$r_$c);
        //for l in APART
        lo$r_$c = subgroupMatrixMultiplyAccumulate(xl$r, w_tile$c, lo$r_$c);
        //end
        //end
        //end
      }
      }
      //for b in SINGLE
      workgroupBarrier();
      //end
      //for b in DOUBLE
      w_side = $TILE_COLSu * PITCH - w_side;
      x_side = 2u * $LO_ROWu * PITCH - x_side;
      //end
    }
    //end
  }
  //for b in DOUBLE
  workgroupBarrier();
  //end

  // The sums of hi and of lo, then what they make.
  let sums = subgroup * $OWN_Ru * $OWN_Cu * $TILE_WORDSu;
  if (multiplies) {
  //for r in OWN_R
  //for c in OWN_C
  {
    let to = sums + ($ru * $OWN_Cu + $cu) * $TILE_WORDSu;
    subgroupMatrixStore<row_major>(&ws, to, hi$r_$c, $UNIT_Nu / 4u);
    //for l in APART
    subgroupMatrixStore<row_major>(&ws, to + $LO_WORDSu, lo$r_$c, $UNIT_Nu / 4u);
    //end
  }
  //end
  //end
  }
  workgroupBarrier();
  if (!multiplies) {
    return;
  }
  for (var i = lane; i < min($X_ROWSu, rows - row) * $HALF_WORDSu; i += $LANESu) {
    let own = i / $HALF_WORDSu;
    let r = row + own;
    let x_scale = inverse(x_scales[r]);
    for (var c = 0u; c < $OWN_Cu; c++) {
      let first_column = pair + own_column / 2u + c * $UNIT_HALFu + i % $HALF_WORDSu * 4u;
      let at = sums + (own / $UNIT_Mu * $OWN_Cu + c) * $TILE_WORDSu
        + own % $UNIT_Mu * $HALF_WORDSu * 2u + i % $HALF_WORDSu;
      let first = sum_at(at);
      let second = sum_at(at + $HALF_WORDSu);
      for (var e = 0u; e < 4u; e++) {
        let column = first_column + e;
        if (column < half) {
          let w = vec2(inverse(w_scales[column]), inverse(w_scales[column + half]));
          epilogue(tile.z * rows + r, column, half, vec2(first[e], second[e]) * x_scale * w);
        }
      }
    }
    end_row(r);
  }
}

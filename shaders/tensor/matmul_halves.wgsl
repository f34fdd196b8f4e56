// y[r, n] = sum_k x[r, k] * W[n, k] as matmul_tensor.wgsl, to the bit, for many rows: x comes as
// row_halves.wgsl has split it, so that no workgroup repeats that.
//
// A workgroup makes $TILE_ROWS rows and $TILE_COLS columns, subgroup g of it $OWN_R tiles of rows and
// $OWN_C of columns. While its subgroups multiply $STAGE of k from one of $BUFFERS buffers in workgroup
// memory, the next $STAGE are on their way through registers: with two buffers there is one barrier a stage.
// COLS / SPLIT_K is a multiple of $STAGE. Slots:
//   out: as of matmul/matmul.wgsl.
//   epilogue: the same.

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

// [MATRIX_ROWS, COLS / 8]: eight bf16
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
// [rows, COLS / $UNIT_K, (hi, lo), $UNIT_EIGHTS]: eight f16; its size gives the rows
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
// [MATRIX_ROWS]
@group(0) @binding(14) var<storage, read> w_scales: array<f32>;
// [rows]
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;

const THREADS = $THREADSu;
const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const PITCH = $CHUNKSu + 1u; // rows do not begin in the same bank
const EIGHTS = $UNIT_EIGHTSu; // of a unit's k
const X_AT = $TILE_COLSu * PITCH;
const LO_AT = X_AT + $TILE_ROWSu * PITCH;
const BUFFER = LO_AT + $TILE_ROWSu * PITCH;

// Eight f16. A buffer: weights [TILE_COLS, PITCH], then hi and lo of x [TILE_ROWS, PITCH]. Later the sums of a
// tile for each subgroup.
var<workgroup> pool: array<vec4<u32>, $POOL>;

// Two bf16 as two f16.
fn halves(pair: u32, scale: f32) -> u32 {
  return pack2x16float(bitcast<vec2<f32>>(vec2(pair << 16u, pair & 0xffff0000u)) * scale);
}

fn eight_halves(bf16: vec4<u32>, scale: f32) -> vec4<u32> {
  return vec4(
    halves(bf16.x, scale),
    halves(bf16.y, scale),
    halves(bf16.z, scale),
    halves(bf16.w, scale),
  );
}

// 1 / scale, exactly.
fn inverse(scale: f32) -> f32 {
  return bitcast<f32>(0x7f000000u - bitcast<u32>(scale));
}

// A sum of hi and of lo.
fn sum_at(at: u32) -> f32 {
  return bitcast<f32>(pool[at / 4u][at % 4u]) + bitcast<f32>(pool[at / 4u + $SUM_WORDSu][at % 4u]);
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
  let range = COLS / 8u / SPLIT_K;
  let begin = tile.z * range;
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  let own_row = subgroup % $GRID_Ru * $OWN_Ru * $UNIT_Mu;
  let own_column = subgroup / $GRID_Ru * $OWN_Cu * $UNIT_Nu;

  //for u in W_LOADS
  let w_chunk$u = thread + $uu * THREADS;
  let w_column$u = w_chunk$u / CHUNKS;
  let w_pair$u = min(pair + w_column$u / $UNIT_Nu * $UNIT_HALFu + w_column$u % $UNIT_HALFu, half - 1u);
  let w_row$u = w_pair$u + w_column$u % $UNIT_Nu / $UNIT_HALFu * half;
  let w_from$u = w_row$u * (COLS / 8u) + begin + w_chunk$u % CHUNKS;
  let w_to$u = w_column$u * PITCH + w_chunk$u % CHUNKS;
  let w_scale$u = w_scales[w_row$u];
  var w$u = weights[w_from$u];
  //end
  //for u in X_LOADS
  let x_chunk$u = thread + $uu * THREADS;
  let x_at$u = begin + x_chunk$u % CHUNKS;
  let x_from$u = min(row + x_chunk$u / CHUNKS, rows - 1u) * (COLS / 4u)
    + x_at$u / EIGHTS * (2u * EIGHTS) + x_at$u % EIGHTS;
  let x_to$u = X_AT + x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;
  var hi$u = x[x_from$u];
  var lo$u = x[x_from$u + EIGHTS];
  //end

  //for r in OWN_R
  //for c in OWN_C
  var hi$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  var lo$r_$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end
  //end

  //for u in W_LOADS
  if (w_chunk$u < $TILE_COLSu * CHUNKS) {
    pool[w_to$u] = eight_halves(w$u, w_scale$u);
  }
  //end
  //for u in X_LOADS
  if (x_chunk$u < $TILE_ROWSu * CHUNKS) {
    pool[x_to$u] = hi$u;
    pool[x_to$u + $TILE_ROWSu * PITCH] = lo$u;
  }
  //end
  workgroupBarrier();
  var side = 0u;
  for (var k = 0u; k < range; k += CHUNKS) {
    // The last stage brings itself again.
    let next = min(k + CHUNKS, range - CHUNKS);
    //for u in W_LOADS
    w$u = weights[w_from$u + next];
    //end
    //for u in X_LOADS
    hi$u = x[x_from$u + next * 2u];
    lo$u = x[x_from$u + next * 2u + EIGHTS];
    //end
    //for s in STEPS
    {
      //for r in OWN_R
      let at$r = side + X_AT + (own_row + $ru * $UNIT_Mu) * PITCH + $su * EIGHTS;
      let xh$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&pool, at$r, PITCH);
      let xl$r = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&pool, at$r + $TILE_ROWSu * PITCH, PITCH);
      //end
      //for c in OWN_C
      let w_tile$c = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(
        &pool, side + (own_column + $cu * $UNIT_Nu) * PITCH + $su * EIGHTS, PITCH);
      //for r in OWN_R
      hi$r_$c = subgroupMatrixMultiplyAccumulate(xh$r, w_tile$c, hi$r_$c);
      lo$r_$c = subgroupMatrixMultiplyAccumulate(xl$r, w_tile$c, lo$r_$c);
      //end
      //end
    }
    //end
    let to = ($BUFFERSu - 1u) * BUFFER - side;
    //for b in SINGLE
    workgroupBarrier();
    //end
    //for u in W_LOADS
    if (w_chunk$u < $TILE_COLSu * CHUNKS) {
      pool[to + w_to$u] = eight_halves(w$u, w_scale$u);
    }
    //end
    //for u in X_LOADS
    if (x_chunk$u < $TILE_ROWSu * CHUNKS) {
      pool[to + x_to$u] = hi$u;
      pool[to + x_to$u + $TILE_ROWSu * PITCH] = lo$u;
    }
    //end
    workgroupBarrier();
    side = to;
  }

  // Tile by tile: the sums of hi and of lo, then what they make.
  let sums = subgroup * 2u * $SUM_WORDSu;
  //for r in OWN_R
  //for c in OWN_C
  subgroupMatrixStore<row_major>(&pool, sums, hi$r_$c, $UNIT_Nu / 4u);
  subgroupMatrixStore<row_major>(&pool, sums + $SUM_WORDSu, lo$r_$c, $UNIT_Nu / 4u);
  workgroupBarrier();
  for (var i = lane; i < $SUM_WORDSu * 2u; i += $LANESu) {
    let r = row + own_row + $ru * $UNIT_Mu + i / $UNIT_HALFu;
    let c = pair + own_column / 2u + $cu * $UNIT_HALFu + i % $UNIT_HALFu;
    let at = sums * 4u + i / $UNIT_HALFu * $UNIT_Nu + i % $UNIT_HALFu;
    if (r < rows && c < half) {
      let w = vec2(inverse(w_scales[c]), inverse(w_scales[c + half]));
      let y = vec2(sum_at(at), sum_at(at + $UNIT_HALFu)) * inverse(x_scales[r]) * w;
      epilogue(tile.z * rows + r, c, half, y);
    }
  }
  workgroupBarrier();
  //end
  //end
}

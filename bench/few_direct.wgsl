enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
override COLS: u32;
override MATRIX_ROWS: u32;
override SPLIT_K: u32;
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(15) var<storage, read> x_scales: array<f32>;
const THREADS = $THREADSu;
// 1 row: blocks of 4 k-tiles, 8 vec4 hi then 8 vec4 lo. else [k-tile][16 rows][2]
var<workgroup> xs: array<vec4<u32>, $X_WORDS>;
var<workgroup> outs: array<vec4<f32>, $OUT_WORDS>;
fn cut(x: vec4<f32>) -> vec4<f32> { return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4(0xffffe000u)); }
fn packed(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
}
@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let rows = arrayLength(&x) / (COLS / 4u);
  let range = COLS / 8u / SPLIT_K; // vec4s
  let begin = tile.z * range;
  let subgroup = thread / $LANESu;
  let lane = thread % $LANESu;
  let column = (tile.y * $GROUPSu + subgroup) * $OWN_Cu; // tiles
  let steps = range / 2u;
  //for t in TILED
  let w_step = 32u;
  let w_stride = 2u;
  //end
  //for t in ROWMAJOR
  let w_step = 2u;
  let w_stride = COLS / 8u;
  //end
  //for c in OWN_C
  //for t in TILED
  let w_from$c = (column + $cu) * COLS * 2u + begin * 16u;
  //end
  //for t in ROWMAJOR
  let w_from$c = (column + $cu) * 16u * (COLS / 8u) + begin;
  //end
  //for s in AHEAD
  var w$c_$s = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&weights, w_from$c + $su * w_step, w_stride);
  //end
  var sums$c = subgroup_matrix_result<f32, 16, 16>();
  //end
  for (var k0 = 0u; k0 < range; k0 += $XSTAGEu) {
    workgroupBarrier();
    //for o in ONE
    for (var i = thread; i < $XSTAGEu; i += THREADS) {
      let s = x_scales[0];
      let a = x[(begin + k0 + i) * 2u] * s;
      let b = x[(begin + k0 + i) * 2u + 1u] * s;
      let at = i / 16u * 32u + i % 16u;
      xs[at] = packed(cut(a), cut(b));
      xs[at + 16u] = packed(a - cut(a), b - cut(b));
    }
    //end
    //for o in MORE
    for (var i = thread; i < $XSTAGEu * $X_ROWSu; i += THREADS) {
      let r = i / $XSTAGEu;
      let j = i % $XSTAGEu;
      let row = min(r, rows - 1u);
      let s = x_scales[row];
      let a = x[(row * (COLS / 8u) + begin + k0 + j) * 2u] * s;
      let b = x[(row * (COLS / 8u) + begin + k0 + j) * 2u + 1u] * s;
      let at = j / 2u * 32u + r * 2u + j % 2u;
      xs[at] = packed(cut(a), cut(b));
      xs[at + 16u] = packed(a - cut(a), b - cut(b));
    }
    //end
    workgroupBarrier();
    for (var k = 0u; k < $XSTAGEu / 2u; k += $AHEADu) {
      let next = min(k0 / 2u + k + $AHEADu, steps - $AHEADu);
      //for s in AHEAD
      {
        let kk = k + $su;
        //for o in ONE
        let x_tile = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&xs, kk / 8u * 32u + kk % 8u * 2u, x_stride);
        //end
        //for o in MORE
        let x_tile = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&xs, kk * 32u, 2u);
        //end
        //for c in OWN_C
        sums$c = subgroupMatrixMultiplyAccumulate(x_tile, w$c_$s, sums$c);
        w$c_$s = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&weights, w_from$c + (next + $su) * w_step, w_stride);
        //end
      }
      //end
    }
  }
  //for c in OWN_C
  subgroupMatrixStore<row_major>(&outs, (subgroup * $OWN_Cu + $cu) * 64u, sums$c, 4u);
  //end
  workgroupBarrier();
  for (var i = lane; i < $X_ROWSu * 4u; i += $LANESu) {
    let r = i / 4u;
    //for c in OWN_C
    let at$c = (subgroup * $OWN_Cu + $cu) * 64u + i;
    let y$c = (outs[at$c] + outs[at$c + 32u]) / x_scales[r];
    if (r < rows) {
      for (var e = 0u; e < 4u; e++) {
        out[(tile.z * rows + r) * MATRIX_ROWS + (column + $cu) * 16u + i % 4u * 4u + e] = y$c[e];
      }
    }
    //end
  }
}
override x_stride: u32 = 2u;

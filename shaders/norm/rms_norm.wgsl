// out[r, OUT_FIRST + c] = v[c] / sqrt(mean(v^2) + EPS) * norm_weight[c], v the row that `source(r, lane)` names.
//
// One workgroup per row. Lane l holds $EACH vec8s of v in registers, columns 8 (l + j LANES) .. + 7
// in order of j; the lanes' sums are added in the order of workgroup_sum.wgsl. No other row enters.
//
// Slots:
//   from: `fn source(row, lane)`, the row of the input or NO_ROW; `fn load(source, i)`, its vec8 i; binding 0
//     and, where it needs others, 3 and on (norm_from_*.wgsl).
//   put: `out`, and `fn put(at, y)`, how y is stored at vector `at` of it (norm_put_*.wgsl). Where $PAIRED is 1
//     `fn put_pair(row, i, a, b)` instead, once the row's scale is known.
//   keep: `fn keep(row, i, v, y)`, a second output (norm_keep_*.wgsl).
//   note: `fn seen(peak, y)`, the largest of peak and of a lane's numbers; `fn note(row, lane, peak)`, what is
//     noted of the row, its scale (norm_note_*.wgsl).

//use from
//use put
//use keep
//use note
//use fragments/workgroup_sum

override COLS: u32; // a multiple of 8
override EPS: f32;
override OUT_COLS: u32; // row stride of out, a multiple of 4
override OUT_FIRST: u32; // first column written, a multiple of 4
override LANES: u32;

alias Sum = f32;

const NO_ROW = 0xffffffffu;

@group(0) @binding(1) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = source(tile.x, lane);
  if (row == NO_ROW) {
    return;
  }
  var sum = 0.0;
  //for j in EACH
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var g$j = Vec8();
  if (i$j < COLS / 8u) {
    v$j = load(row, i$j);
    g$j = Vec8(norm_weight[2u * i$j], norm_weight[2u * i$j + 1u]); // here, to be there when the sum is
  }
  sum = add_squares(add_squares(sum, v$j.lo), v$j.hi);
  //end
  let scale = 1.0 / sqrt(total(sum, lane) / f32(COLS) + EPS);
  let first = (tile.x * OUT_COLS + OUT_FIRST) / 4u;
  var peak = 0.0;
  //for j in EACH
  if (i$j < COLS / 8u) {
    let y = Vec8(v$j.lo * scale * g$j.lo, v$j.hi * scale * g$j.hi);
    //for u in UNPAIRED
    put(first + 2u * i$j, y.lo);
    put(first + 2u * i$j + 1u, y.hi);
    //end
    keep(tile.x, i$j, v$j, y);
    peak = seen(peak, y);
  }
  //end
  let y_scale = note(tile.x, lane, peak);
  //for p in PAIRED
  //for j in EACH
  if (i$j < COLS / 8u) {
    put_pair(tile.x, i$j, v$j.lo * scale * g$j.lo * y_scale, v$j.hi * scale * g$j.hi * y_scale);
  }
  //end
  //end
}

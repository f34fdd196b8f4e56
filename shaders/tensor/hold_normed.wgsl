// How matmul_tensor_held.wgsl brings x to workgroup memory: normed as matmul/hold/normed.wgsl does, then times the
// scale of its largest number. The first workgroup makes the scales largest that norm_note_scale.wgsl does.
let row = 0u;
let rows = 1u;
//use matmul/hold/normed_squares
var total = 0.0;
//for e in REST
total += squares[$e];
//end
let norm_scale = 1.0 / sqrt(total / f32(COLS) + EPS);
var largest = 0.0;
//for u in NORM_TURNS
//for j in NORM_EACH
let y_lo$u_$j = v_lo$u_$j_0 * norm_scale * gain_lo$u_$j;
let y_hi$u_$j = v_hi$u_$j_0 * norm_scale * gain_hi$u_$j;
if (mine$u_$j) {
  largest = max(largest, size_of(y_lo$u_$j, y_hi$u_$j));
}
//end
//end
let x_scale = scale_of(subgroupMax(largest));
//for u in NORM_TURNS
//for j in NORM_EACH
if (mine$u_$j) {
  put_chunk(i$u_$j, y_lo$u_$j * x_scale, y_hi$u_$j * x_scale);
}
//end
//end
//for l in LOWERS
if (tile.y == 0u && lane < 2u) {
  lowered[lane * LOWERED_ROWS] = bitcast<f32>(LARGEST_SCALE);
}
//end
workgroupBarrier();

// The two RMSNorms that an EAGLE-3 draft begins with, each with the same bits as rms_norm.wgsl:
//   out[r] = [norm(E[rows[r].token]) token_weight, norm(h) hidden_weight], kept[r] = h, or norm(h) with KEEPS_NORMED
// h is hidden row r, or index[r] with INDEXED, summed over the SPLIT_K ranges of k of the matmul that made it. If the
// token of a row is not in E, or its hidden row is NO_ROW, that half is not written. `put` is that of rms_norm.wgsl.
//
// One workgroup per (row, half), or per row. Lane l holds $EACH vec8s of either half in registers, l, l + LANES, ...;
// the lanes' sums are added in the order of workgroup_sum.wgsl.

//#import lib/weights_$weights
//#import lib/store_scales
//#import lib/add_squares
//#import lib/rows
//#import lib/workgroup_sum

override COLS: u32; // a multiple of 8
override EPS: f32;
override LANES: u32;
override TOKENS: u32; // rows of the embedding matrix
override SPLIT_K: u32; // hidden rows that are added

const HALVES = $HALVESu; // workgroups of a row: 2, or 1 for both halves, which knows the scale of the row

alias Sum = vec2<f32>;

@group(0) @binding(1) var<storage, read> token_weight: array<vec4<f32>>; // [COLS / 4]
//#if put != store
//#import lib/hi_of
//#if put == half
// Eight f16 each: [rows, 2 COLS / 8].
//#else
// Eight f16 each, hi and then lo: [rows, 2, 2 COLS / 8].
//#endif
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;
//#else
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, 2, COLS / 4]
//#endif
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> x: array<vec4<f32>>; // [SPLIT_K, .., COLS / 4]: hidden rows
@group(0) @binding(5) var<storage, read> hidden_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(6) var<storage, read_write> kept: array<vec4<f32>>; // [rows, COLS / 4]
//#if INDEXED
@group(0) @binding(7) var<storage, read> index: array<u32>; // [rows]: the hidden row of each
//#endif

fn hidden_at(at: u32) -> Vec8 {
  var v = Vec8(x[at], x[at + 1u]);
  for (var s = 1u; s < SPLIT_K; s++) {
    let other = s * (arrayLength(&x) / SPLIT_K) + at;
    v = Vec8(v.lo + x[other], v.hi + x[other + 1u]);
  }
  return v;
}

fn times(v: Vec8, scale: f32, gain: Vec8) -> Vec8 {
  return Vec8(v.lo * scale * gain.lo, v.hi * scale * gain.hi);
}

fn put(row: u32, i: u32, y: Vec8, y_scale: f32) {
  //#if put == half
  out[row * (COLS / 4u) + i] = packed(y.lo * y_scale, y.hi * y_scale);
  //#else if put == pair
  let at = row * (COLS / 2u) + i;
  let a = y.lo * y_scale;
  let b = y.hi * y_scale;
  out[at] = packed(hi_of(a), hi_of(b));
  out[at + COLS / 4u] = packed(a - hi_of(a), b - hi_of(b));
  //#else
  let at = row * (COLS / 2u) + 2u * i;
  out[at] = y.lo;
  out[at + 1u] = y.hi;
  //#endif
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x;
  let token = rows[row].token;
  //#if INDEXED
  let own = index[row];
  //#else
  let own = row;
  //#endif
  let makes_token = HALVES == 1u || tile.y == 0u;
  let makes_hidden = HALVES == 1u || tile.y == 1u;
  var sum = Sum();
  //#for j in EACH
  let i$j = min(lane + $ju * LANES, COLS / 8u - 1u);
  let has_token$j = makes_token && lane + $ju * LANES < COLS / 8u && token < TOKENS;
  let has_hidden$j = makes_hidden && lane + $ju * LANES < COLS / 8u && own != NO_ROW;
  var t$j = Vec8();
  var h$j = Vec8();
  var t_gain$j = Vec8();
  var h_gain$j = Vec8();
  if (makes_hidden) {
    h$j = hidden_at(select(0u, own, has_hidden$j) * (COLS / 4u) + 2u * i$j);
    h_gain$j = Vec8(hidden_weight[2u * i$j], hidden_weight[2u * i$j + 1u]);
  }
  if (makes_token) {
    t$j = vec8_0(load_block(select(0u, token, has_token$j) * (COLS / 8u) + i$j));
    t_gain$j = Vec8(token_weight[2u * i$j], token_weight[2u * i$j + 1u]);
  }
  if (!has_token$j) {
    t$j = Vec8();
  }
  if (!has_hidden$j) {
    h$j = Vec8();
  }
  sum = Sum(
    add_squares(add_squares(sum.x, t$j.lo), t$j.hi),
    add_squares(add_squares(sum.y, h$j.lo), h$j.hi),
  );
  //#endfor
  let square = total(sum, lane) / f32(COLS);
  let t_scale = 1.0 / sqrt(square.x + EPS);
  let h_scale = 1.0 / sqrt(square.y + EPS);
  var peak = 0.0;
  //#for j in EACH
  let y$j = times(t$j, t_scale, t_gain$j);
  let z$j = times(h$j, h_scale, h_gain$j);
  peak = peak_of(peak_of(peak, y$j), z$j);
  //#endfor
  let y_scale = store_scales(row, lane, peak);
  //#for j in EACH
  if (has_token$j) {
    put(row, i$j, y$j, y_scale);
  }
  if (has_hidden$j) {
    put(row, COLS / 8u + i$j, z$j, y_scale);
    let keep = row * (COLS / 4u) + 2u * i$j;
    //#if KEEPS_NORMED
    kept[keep] = z$j.lo;
    kept[keep + 1u] = z$j.hi;
    //#else
    kept[keep] = h$j.lo;
    kept[keep + 1u] = h$j.hi;
    //#endif
  }
  //#endfor
}

// RMSNorm: y = v / sqrt(mean(v^2) + EPS) * norm_weight, and out[r, OUT_FIRST + c] = y[c] as `put` says.
//
// v is, by `from`,
//   rows     row r of x
//   index    row index[r] of x; rows with index 0xffffffff are not written
//   sums     the sums of a split-K matmul over its ranges of k, added in order: with RESIDUAL added to row r of x, the
//            residual stream, where the result is stored too; else alone, the output of a branch that is normed before
//            it is added to the stream
//   normed   row r of x, the residual stream, plus those sums after an RMSNorm of their own with branch_weight; with
//            SCALED times scalar[0]. The result is stored in x. With EXPERTS the branch that is normed is the sum that
//            norm_sum.wgsl makes: of those sums and the weighted outputs of the row's experts, each normed by itself
//   experts  row r of x, the residual stream, to which the outputs of the row's experts are added one after the other,
//            each times its share, with BIASED after adding its expert's bias; the result is stored in x. The products
//            are not summed before they are added to x: some drivers would reassociate that
//   tokens   SCALE times the embedding of row r's token; rows whose token is in another shard of the embedding are not
//            written. With VERIFIED the rows are those of a verify forward of chains, and are written here; the
//            embedding is then one shard
// `put`: store writes y; add adds it to what `out` holds (the residual connection after a normed branch); pair writes
// each number times the row's scale as two f16 numbers, so that no workgroup on matrix units has to split it; half
// writes one. `keep` is a second output: input is v, output is y, slot is v at row slot[r] (0xffffffff: nowhere),
// nothing is none.
//
// One workgroup per row. Lane l holds $EACH vec8s of v in registers, columns 8 (l + j LANES) .. + 7
// in order of j; the lanes' sums are added in the order of workgroup_sum.wgsl. No other row enters.

//#if from == tokens
//#import lib/weights_$weights
//#if VERIFIED
//#import lib/verify_row
//#else
//#import lib/rows
//#endif
//#endif
//#import lib/constants
//#import lib/vec8
//#import lib/store_scales
//#import lib/workgroup_sum
//#if F16
//#import lib/put_f16
//#endif

override COLS: u32; // a multiple of 8
override EPS: f32;
override OUT_COLS: u32; // row stride of out, a multiple of 4
override OUT_FIRST: u32; // first column written, a multiple of 4
override LANES: u32;

//#if TWO_SUMS
// Two sums are reduced at a time; a single sum takes the first place.
alias Sum = vec2<f32>;

fn total_of(x: f32, lane: u32) -> f32 {
  return total(Sum(x, 0.0), lane).x;
}
//#else
alias Sum = f32;

fn total_of(x: f32, lane: u32) -> f32 {
  return total(x, lane);
}
//#endif

@group(0) @binding(1) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]

// `source` returns the row of the input that output row `row` is normed from, or NO_ROW; `load` returns vec8 i of it.
//#if from == rows
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]

fn source(row: u32, lane: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  return Vec8(x[at], x[at + 1u]);
}
//#else if from == index
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [.., COLS / 4]
@group(0) @binding(3) var<storage, read> index: array<u32>; // [rows]

fn source(row: u32, lane: u32) -> u32 {
  return index[row];
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  return Vec8(x[at], x[at + 1u]);
}
//#else if from == experts
@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]
//#if BIASED
@group(0) @binding(5) var<storage, read> bias: array<vec4<f32>>; // [experts, COLS / 4]
@group(0) @binding(6) var<storage, read> experts: array<u32>; // [rows, $EXPERTS]
//#endif

fn source(row: u32, lane: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  let first = row * $EXPERTSu * (COLS / 4u) + 2u * i;
  var v = Vec8(x[at], x[at + 1u]);
  //#for k in EXPERTS
  {
    let from_expert = first + $ku * (COLS / 4u);
    let share = vec4<f32>(shares[row * $EXPERTSu + $ku]);
    //#if BIASED
    let from_bias = experts[row * $EXPERTSu + $ku] * (COLS / 4u) + 2u * i;
    v.lo = fma(share, outputs[from_expert] + bias[from_bias], v.lo);
    v.hi = fma(share, outputs[from_expert + 1u] + bias[from_bias + 1u], v.hi);
    //#else
    v.lo = fma(share, outputs[from_expert], v.lo);
    v.hi = fma(share, outputs[from_expert + 1u], v.hi);
    //#endif
  }
  //#endfor
  x[at] = v.lo;
  x[at + 1u] = v.hi;
  return v;
}
//#else if from == tokens
override SHARD_FIRST: u32; // first token of the shard
override SHARD_ROWS: u32;
override SCALE: f32;

//#if VERIFIED
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(5) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(6) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl

fn token_of(row: u32, lane: u32) -> u32 {
  let verified = verify_row(row);
  if (lane == 0u) {
    rows[row] = verified;
  }
  return verified.token;
}
//#else
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]

fn token_of(row: u32, lane: u32) -> u32 {
  return rows[row].token;
}
//#endif

fn source(row: u32, lane: u32) -> u32 {
  let token = token_of(row, lane) - SHARD_FIRST; // wraps below the shard
  return select(NO_ROW, token, token < SHARD_ROWS);
}

fn load(token: u32, i: u32) -> Vec8 {
  let e = vec8_0(load_block(token * (COLS / 8u) + i));
  return Vec8(e.lo * SCALE, e.hi * SCALE);
}
//#else
override SPLIT_K: u32; // ranges of k

//#if RESIDUAL
@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> sums: array<vec4<f32>>; // [SPLIT_K, rows, COLS / 4]
//#else
@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [SPLIT_K, rows, COLS / 4]
//#endif

//#import lib/split_sum

fn source(row: u32, lane: u32) -> u32 {
  return row;
}

//#if from == normed
override BRANCH_EPS: f32;

@group(0) @binding(4) var<storage, read> branch_weight: array<vec4<f32>>; // [COLS / 4]

//#if EXPERTS
@group(0) @binding(5) var<storage, read> sums_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(6) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(7) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]
@group(0) @binding(8) var<storage, read> experts_weight: array<vec4<f32>>; // [COLS / 4]

//#import lib/weighted_experts
//#endif
//#if SCALED
@group(0) @binding($SCALAR) var<storage, read> scalar: array<f32>; // [1]

fn scaled(v: vec4<f32>) -> vec4<f32> {
  return v * scalar[0];
}
//#else
fn scaled(v: vec4<f32>) -> vec4<f32> {
  return v;
}
//#endif

// Adds the vec8 of the normed branch, branch times gain, to the stream's: with one rounding, as `put` adds it.
fn join(row: u32, i: u32, stream: Vec8, branch: Vec8, gain: Vec8) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  let lo = fma(branch.lo, gain.lo, stream.lo);
  let hi = fma(branch.hi, gain.hi, stream.hi);
  let v = Vec8(scaled(lo), scaled(hi));
  x[at] = v.lo;
  x[at + 1u] = v.hi;
  return v;
}
//#else if RESIDUAL
fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  let sum = split_sum(at);
  let v = Vec8(x[at] + sum.lo, x[at + 1u] + sum.hi);
  x[at] = v.lo;
  x[at + 1u] = v.hi;
  return v;
}
//#else
fn load(row: u32, i: u32) -> Vec8 {
  return split_sum(row * (COLS / 4u) + 2u * i);
}
//#endif
//#endif

//#if F16
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>; // see lib/put_f16.wgsl
//#else
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, OUT_COLS / 4]

fn put(at: u32, v: vec4<f32>, gain: vec4<f32>) {
  //#if put == add
  out[at] = fma(v, gain, out[at]); // one rounding, whether a driver contracts products or not
  //#else
  out[at] = v * gain;
  //#endif
}
//#endif

//#if keep == slot
@group(0) @binding($KEPT) var<storage, read_write> kept: array<vec4<f32>>; // [.., COLS / 4]
@group(0) @binding($SLOT) var<storage, read> slot: array<u32>; // [rows]

fn keep(row: u32, i: u32, v: Vec8, y: Vec8) {
  let to = slot[row];
  if (to != NO_ROW) {
    let at = to * (COLS / 4u) + 2u * i;
    kept[at] = v.lo;
    kept[at + 1u] = v.hi;
  }
}
//#else if keep == nothing
fn keep(row: u32, i: u32, v: Vec8, y: Vec8) {}
//#else
override KEPT_COLS: u32; // row stride of kept, a multiple of 4
override KEPT_FIRST: u32; // first column written, a multiple of 4

@group(0) @binding($KEPT) var<storage, read_write> kept: array<vec4<f32>>; // [rows, KEPT_COLS / 4]

fn keep(row: u32, i: u32, v: Vec8, y: Vec8) {
  let at = (row * KEPT_COLS + KEPT_FIRST) / 4u + 2u * i;
  //#if keep == input
  kept[at] = v.lo;
  kept[at + 1u] = v.hi;
  //#else
  kept[at] = y.lo;
  kept[at + 1u] = y.hi;
  //#endif
}
//#endif

//#import lib/add_squares

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = source(tile.x, lane);
  if (row == NO_ROW) {
    return;
  }
  //#for j in EACH
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var g$j = Vec8();
  //#endfor
  //#if from == normed
  //#if EXPERTS
  //#import lib/branch_sum_statements
  //#endif
  var branch_squares = 0.0;
  //#for j in EACH
  var branch$j = Vec8();
  var branch_gain$j = Vec8();
  if (i$j < COLS / 8u) {
    let at = row * (COLS / 4u) + 2u * i$j;
    //#if EXPERTS
    branch$j = branch_sum$j;
    //#else
    branch$j = split_sum(at);
    //#endif
    branch_gain$j = Vec8(branch_weight[2u * i$j], branch_weight[2u * i$j + 1u]);
    v$j = Vec8(x[at], x[at + 1u]);
  }
  branch_squares = add_squares(add_squares(branch_squares, branch$j.lo), branch$j.hi);
  //#endfor
  let branch_scale = 1.0 / sqrt(total_of(branch_squares, lane) / f32(COLS) + BRANCH_EPS);
  //#endif
  var sum = 0.0;
  //#for j in EACH
  if (i$j < COLS / 8u) {
    //#if from == normed
    let normed$j = Vec8(branch$j.lo * branch_scale, branch$j.hi * branch_scale);
    v$j = join(row, i$j, v$j, normed$j, branch_gain$j);
    //#else
    v$j = load(row, i$j);
    //#endif
    g$j = Vec8(norm_weight[2u * i$j], norm_weight[2u * i$j + 1u]); // loaded here so that it is there when the sum is
  }
  sum = add_squares(add_squares(sum, v$j.lo), v$j.hi);
  //#endfor
  let scale = 1.0 / sqrt(total_of(sum, lane) / f32(COLS) + EPS);
  let first = (tile.x * OUT_COLS + OUT_FIRST) / 4u;
  var peak = 0.0;
  //#for j in EACH
  if (i$j < COLS / 8u) {
    let y = Vec8(v$j.lo * scale * g$j.lo, v$j.hi * scale * g$j.hi);
    //#if !F16
    put(first + 2u * i$j, v$j.lo * scale, g$j.lo);
    put(first + 2u * i$j + 1u, v$j.hi * scale, g$j.hi);
    //#endif
    keep(tile.x, i$j, v$j, y);
    peak = peak_of(peak, y);
  }
  //#endfor
  let y_scale = store_scales(tile.x, lane, peak);
  //#if F16
  //#for j in EACH
  if (i$j < COLS / 8u) {
    put_f16(tile.x, i$j, v$j.lo * scale * g$j.lo * y_scale, v$j.hi * scale * g$j.hi * y_scale);
  }
  //#endfor
  //#endif
}

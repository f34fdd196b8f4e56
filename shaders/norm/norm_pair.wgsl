// Two norms side by side, each as rms_norm.wgsl makes it, to the bit: out[r] = [norm(E[rows[r].token]) token_weight,
// norm(h) hidden_weight], h the hidden row that belongs to r; kept[r] is h, or as out has it. Rows whose token is not
// in E, or whose hidden row is NO_ROW, have no such half.
//
// One workgroup per (row, half). Lane l holds $EACH vec8s of v in registers, l, l + LANES, ...; the lanes' sums are
// added in the order of workgroup_sum.wgsl. Slots:
//   weights: `load_block` and `vec8_0` of a float format (weights/weights_*.wgsl).

//use weights
//use fragments/rows
//use fragments/workgroup_sum

override COLS: u32; // a multiple of 8
override EPS: f32;
override LANES: u32;
override TOKENS: u32; // rows of the embedding matrix

alias Sum = f32;

const NO_ROW = 0xffffffffu;

@group(0) @binding(1) var<storage, read> token_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, 2, COLS / 4]
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> x: array<vec4<f32>>; // [.., COLS / 4]: hidden rows
@group(0) @binding(5) var<storage, read> hidden_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(6) var<storage, read_write> kept: array<vec4<f32>>; // [rows, COLS / 4]
//for i in INDEXED
@group(0) @binding(7) var<storage, read> index: array<u32>; // [rows]: the hidden row of each
//end

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}

fn source(row: u32, of_token: bool) -> u32 {
  if (of_token) {
    let token = rows[row].token;
    return select(NO_ROW, token, token < TOKENS);
  }
  //for i in INDEXED
  return index[row];
  //end
  //for i in ALL
  return row;
  //end
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let of_token = tile.y == 0u;
  let own = source(tile.x, of_token);
  if (own == NO_ROW) {
    return;
  }
  var sum = 0.0;
  //for j in EACH
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var g$j = Vec8();
  if (i$j < COLS / 8u) {
    if (of_token) {
      v$j = vec8_0(load_block(own * (COLS / 8u) + i$j));
      g$j = Vec8(token_weight[2u * i$j], token_weight[2u * i$j + 1u]);
    } else {
      let at = own * (COLS / 4u) + 2u * i$j;
      v$j = Vec8(x[at], x[at + 1u]);
      g$j = Vec8(hidden_weight[2u * i$j], hidden_weight[2u * i$j + 1u]);
    }
  }
  sum = add_squares(add_squares(sum, v$j.lo), v$j.hi);
  //end
  let scale = 1.0 / sqrt(total(sum, lane) / f32(COLS) + EPS);
  //for j in EACH
  if (i$j < COLS / 8u) {
    let y = Vec8(v$j.lo * scale * g$j.lo, v$j.hi * scale * g$j.hi);
    let to = (2u * tile.x + tile.y) * (COLS / 4u) + 2u * i$j;
    out[to] = y.lo;
    out[to + 1u] = y.hi;
    if (!of_token) {
      let keep = tile.x * (COLS / 4u) + 2u * i$j;
      //for n in KEEPS_NORMED
      kept[keep] = y.lo;
      kept[keep + 1u] = y.hi;
      //end
      //for n in KEEPS_INPUT
      kept[keep] = v$j.lo;
      kept[keep + 1u] = v$j.hi;
      //end
    }
  }
  //end
}

// Statements: `branch_sum<j>`, vec8 i<j> of norm(v) * sums_weight + norm(w) * experts_weight, v being the row of a
// matmul's sums (`split_sum`) and w the weighted outputs of the row's experts (`combined`), each with a mean square of
// its own.
var squares = Sum();
//#for j in EACH
var own$j = Vec8();
var expert$j = Vec8();
var own_gain$j = Vec8();
var expert_gain$j = Vec8();
if (i$j < COLS / 8u) {
  own$j = split_sum(row * (COLS / 4u) + 2u * i$j);
  expert$j = combined(row, i$j);
  own_gain$j = Vec8(sums_weight[2u * i$j], sums_weight[2u * i$j + 1u]);
  expert_gain$j = Vec8(experts_weight[2u * i$j], experts_weight[2u * i$j + 1u]);
}
squares = Sum(
  add_squares(add_squares(squares.x, own$j.lo), own$j.hi),
  add_squares(add_squares(squares.y, expert$j.lo), expert$j.hi),
);
//#endfor
let mean_square = total(squares, lane) / f32(COLS);
let own_scale = 1.0 / sqrt(mean_square.x + EPS);
let expert_scale = 1.0 / sqrt(mean_square.y + EPS);
//#for j in EACH
let branch_sum$j = Vec8(
  fma(expert$j.lo * expert_scale, expert_gain$j.lo, own$j.lo * own_scale * own_gain$j.lo),
  fma(expert$j.hi * expert_scale, expert_gain$j.hi, own$j.hi * own_scale * own_gain$j.hi),
);
//#endfor

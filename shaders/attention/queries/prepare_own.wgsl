// Statements of attention.wgsl's `main` that make the head vectors of queries/own.wgsl, while keys and values of
// older cells are on their way.
//for s in STEPS
//for p in PASSES
let asked$s_$p = load_key(key$p, min(lane + $su * LANES, VEC8S - 1u));
//end
//end
//for c in EARLY
let packed$c = load_value(value$c, i);
//end

let newest = rows[FIRST_ROW + row].cell;
let has_new = newest / SPLIT_CELLS == split;
let norm_lane = thread % NORM_LANES;
//for p in PAIRS
let w$p = norm_lane + $pu * NORM_LANES;
let at$p = min(w$p, HALF - 1u);
let turn$p = rope[rows[FIRST_ROW + row].position * HALF + at$p];
//end
//for u in TURNS_OF_HEADS
let head$u = thread / NORM_LANES + $uu * (THREADS / NORM_LANES);
let is_query$u = head$u < GROUP;
let is_made$u = is_query$u || has_new && head$u <= VALUE;
let gain_at$u = select(2u * HALF, 0u, is_query$u);
let from_head$u = row * (heads + 2u * KV_HEADS) +
  select(heads + (head$u - KEY) * KV_HEADS + kv_head, tile.y * GROUP + head$u, is_query$u);
//for p in PAIRS
var pair$u_$p = vec2<f32>();
var gain$u_$p = vec2<f32>();
//end
if (is_made$u) {
  var square = 0.0;
  //for p in PAIRS
  pair$u_$p = vec2<f32>(qkv[from_head$u * 2u * HALF + at$p], qkv[from_head$u * 2u * HALF + HALF + at$p]);
  gain$u_$p = vec2<f32>(norm_weight[gain_at$u + at$p], norm_weight[gain_at$u + HALF + at$p]);
  if (w$p < HALF) {
    square = squares_of(square, pair$u_$p);
  }
  //end
  squares[head$u * NORM_LANES + norm_lane] = square;
}
//end
workgroupBarrier();
//for u in TURNS_OF_HEADS
if (is_made$u) {
  var sum = 0.0;
  //for l in NORM_LANES
  sum += squares[head$u * NORM_LANES + $lu];
  //end
  let scale = norm_scale(sum, 2u * HALF);
  //for p in PAIRS
  if (w$p < HALF) {
    let normed = turned(pair$u_$p * scale * gain$u_$p, turn$p);
    let pair = select(normed, pair$u_$p, head$u == VALUE);
    let to = head$u * 2u * VEC8S + w$p / 4u;
    made[to][w$p % 4u] = pair.x;
    made[to + VEC8S][w$p % 4u] = pair.y;
  }
  //end
}
//end
workgroupBarrier();
if (has_new && tile.y % HEAD_TILES == 0u && thread < 2u * VEC8S) {
  let to = stored(slot, kv_head, newest);
  if (thread < VEC8S) {
    put_key(to, thread, packed_of(made_vec8(KEY, thread)));
  } else {
    put_value(to, thread - VEC8S, packed_of(made_vec8(VALUE, thread - VEC8S)));
  }
}

// Statements of attention.wgsl's `main` that make `queries` and `new_heads` of queries_own.wgsl, while keys and
// values of older cells are on their way.
//for s in STEPS
//for p in PASSES
let asked$s_$p = load_key(key$p, min(lane + $su * LANES, VEC8S - 1u));
//end
//end
//for c in EARLY
let packed$c = load_value(value$c, i);
//end

let slot_row = tile.x / tiles * PER_SLOT;
let newest = rows[FIRST_ROW + slot_row].cell;
let has_new = first + SPLIT_CELLS > newest && first < newest + PER_SLOT;
let line = heads + 2u * KV_HEADS; // head vectors of a row of qkv
let norm_lane = thread % NORM_LANES;
let norm_head = thread / NORM_LANES;
let query_row = row + min(norm_head / GROUP, count - 1u);
let query_from = (query_row * line + tile.y * GROUP + norm_head % GROUP) * 2u * HALF;
let query_turn = rows[FIRST_ROW + query_row].position * HALF;
var query_square = 0.0;
//for p in PAIRS
let w$p = norm_lane + $pu * NORM_LANES;
let at$p = min(w$p, HALF - 1u);
let query_pair$p = vec2<f32>(qkv[query_from + at$p], qkv[query_from + HALF + at$p]);
let query_gain$p = vec2<f32>(norm_weight[at$p], norm_weight[HALF + at$p]);
let query_place$p = rope[query_turn + at$p];
if (w$p < HALF) {
  query_square = squares_of(query_square, query_pair$p);
}
//end
//for n in NEW_TURNS
let new$n = norm_head + $nu * NORM_HEADS; // a row's key and its value
let new_row$n = slot_row + min(new$n / 2u, PER_SLOT - 1u);
let new_from$n = (new_row$n * line + heads + new$n % 2u * KV_HEADS + kv_head) * 2u * HALF;
//for p in PAIRS
var new_pair$n_$p = vec2<f32>();
var new_gain$n_$p = vec2<f32>();
var new_turn$n_$p = vec2<f32>();
//end
if (has_new) {
  //for p in PAIRS
  new_pair$n_$p = vec2<f32>(qkv[new_from$n + at$p], qkv[new_from$n + HALF + at$p]);
  new_gain$n_$p = vec2<f32>(norm_weight[2u * HALF + at$p], norm_weight[3u * HALF + at$p]);
  new_turn$n_$p = rope[rows[FIRST_ROW + new_row$n].position * HALF + at$p];
  //end
}
//end
squares[thread] = query_square;
//for n in NEW_TURNS
if (has_new && new$n < 2u * PER_SLOT && new$n % 2u == 0u) {
  var square = 0.0;
  //for p in PAIRS
  if (w$p < HALF) {
    square = squares_of(square, new_pair$n_$p);
  }
  //end
  squares[THREADS + new$n / 2u * NORM_LANES + norm_lane] = square;
}
//end
workgroupBarrier();
let query_scale = norm_of(norm_head * NORM_LANES);
//for p in PAIRS
if (w$p < HALF) {
  let pair = turned(query_pair$p * query_scale * query_gain$p, query_place$p);
  queries[place_of(norm_head, w$p)][w$p % 4u] = pair.x;
  queries[place_of(norm_head, w$p + HALF)][w$p % 4u] = pair.y;
}
//end
//for n in NEW_TURNS
if (has_new && new$n < 2u * PER_SLOT) {
  let is_key = new$n % 2u == 0u;
  let scale = norm_of(THREADS + new$n / 2u * NORM_LANES);
  //for p in PAIRS
  if (w$p < HALF) {
    let key = turned(new_pair$n_$p * scale * new_gain$n_$p, new_turn$n_$p);
    let pair = select(new_pair$n_$p, key, is_key);
    new_heads[place_of(new$n, w$p)][w$p % 4u] = pair.x;
    new_heads[place_of(new$n, w$p + HALF)][w$p % 4u] = pair.y;
  }
  //end
}
//end
workgroupBarrier();
if (has_new && tile.y % HEAD_TILES == 0u) {
  for (var v = thread; v < 2u * count * VEC8S; v += THREADS) {
    let own = rows[FIRST_ROW + row + v / (2u * VEC8S)];
    if (own.live == 1u && own.cell / SPLIT_CELLS == split) {
      let head = 2u * (own.cell - newest) + v / VEC8S % 2u;
      let to = stored(own.slot, kv_head, own.cell);
      if (head % 2u == 0u) {
        put_key(to, v % VEC8S, new_vec8(head, v % VEC8S));
      } else {
        put_value(to, v % VEC8S, new_vec8(head, v % VEC8S));
      }
    }
  }
}

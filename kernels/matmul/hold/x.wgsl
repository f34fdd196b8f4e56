//#if HALVES
// The output of attention, as below, for x as floats: a vector of four of them an invocation, half of a vec8.
//#for s in HALF_LOADS
{
  let i = thread + $su * THREADS;
  if (i < 2u * $ROWSu * $STAGEu) {
    let r = min(row + i / (2u * $STAGEu), rows - 1u);
    let own = row_list[r];
    let first = select(visible_begin(own) / SPLIT_CELLS, 0u, WINDOW == 0xffffffffu);
    let splits = (visible_end(own) + SPLIT_CELLS - 1u) / SPLIT_CELLS - min(first, visible_end(own));
    let quad = tile.z * 2u * $STAGEu + i % (2u * $STAGEu);
    let at = (r * HEADS + quad / HEAD) * KV_SPLITS + first;
    // Nobody waits for the row, or for the splits' peaks, before the first of their sums are asked for.
    //#for c in HALF
    let from$c = at + min($cu, KV_SPLITS - 1u);
    let early$c = parts[from$c * HEAD + quad % HEAD];
    let known$c = stats[from$c];
    //#endfor
    //#for c in HALF
    let part$c = select(vec4<f32>(0.0), early$c, $cu < splits);
    let stat$c = select(vec2<f32>(NEGATIVE, 0.0), known$c, $cu < splits);
    var stat$(HALF + c) = vec2<f32>(NEGATIVE, 0.0);
    if ($(HALF + c)u < splits) {
      stat$(HALF + c) = stats[at + $(HALF + c)u];
    }
    //#endfor
    var top = NEGATIVE;
    //#for c in SPLITS
    top = max(top, stat$c.x);
    //#endfor
    var total = 0.0;
    var sum = vec4<f32>(0.0);
    //#for c in HALF
    {
      let share = exp(stat$c.x - top);
      total = fma(stat$c.y, share, total);
      sum = fma(part$c, vec4<f32>(share), sum);
    }
    //#endfor
    if ($HALFu < splits) {
      //#for c in HALF
      let part$(HALF + c) = parts[(at + min($(HALF + c)u, splits - 1u)) * HEAD + quad % HEAD];
      //#endfor
      //#for c in HALF
      {
        let share = exp(stat$(HALF + c).x - top);
        total = fma(stat$(HALF + c).y, share, total);
        sum = fma(part$(HALF + c), vec4<f32>(share), sum);
      }
      //#endfor
    }
    put_half(i / (2u * $STAGEu), i % (2u * $STAGEu), select(vec4<f32>(0.0), sum / total, splits > 0u));
  }
}
//#endfor
//#else if hold == normed
// How matmul_resident.wgsl brings x to workgroup memory: normed, v / sqrt(mean(v^2) + EPS) * norm_weight with
// v = x + the sums of a split-K matmul, or the weighted outputs of experts, which the first workgroup of a row also
// stores; where a draft reads v too ($KEPT), a second time. Every sum has the order of norm/rms_norm.wgsl with
// $NORM_LANES lanes: vec8 i belongs to lane i % $NORM_LANES, an invocation has the lanes thread, thread + THREADS, ...
//#for u in NORM_TURNS
//#for j in NORM_EACH
let i$u_$j = thread + $(u * THREADS + j * NORM_LANES)u;
let mine$u_$j = thread + $(u * THREADS)u < $NORM_LANESu && i$u_$j < COLS / 8u;
let vec$u_$j = select(0u, i$u_$j, mine$u_$j);
let gain_lo$u_$j = norm_weight[2u * vec$u_$j];
let gain_hi$u_$j = norm_weight[2u * vec$u_$j + 1u];
//#for r in ROWS
let v_at$u_$j_$r = min(row + $ru, rows - 1u) * (COLS / 4u) + 2u * vec$u_$j;
var v_lo$u_$j_$r = x[v_at$u_$j_$r];
var v_hi$u_$j_$r = x[v_at$u_$j_$r + 1u];
//#endfor
//#endfor
//#endfor
//#if RELAYED
//#import matmul/hold/relay
//#endif
//#for u in NORM_TURNS
//#for j in NORM_EACH
//#for r in ROWS
//#if ADDED
var s_lo$u_$j_$r = sums[v_at$u_$j_$r];
var s_hi$u_$j_$r = sums[v_at$u_$j_$r + 1u];
//#for q in MORE_ADDENDS
s_lo$u_$j_$r += sums[($qu + 1u) * rows * (COLS / 4u) + v_at$u_$j_$r];
s_hi$u_$j_$r += sums[($qu + 1u) * rows * (COLS / 4u) + v_at$u_$j_$r + 1u];
//#endfor
v_lo$u_$j_$r += s_lo$u_$j_$r;
v_hi$u_$j_$r += s_hi$u_$j_$r;
//#endif
//#if WEIGHED
//#for k in EXPERTS
{
  let of_expert = min(row + $ru, rows - 1u) * $EXPERTSu + $ku;
  let share = vec4<f32>(shares[of_expert]);
  v_lo$u_$j_$r = fma(share, outputs[of_expert * (COLS / 4u) + 2u * vec$u_$j], v_lo$u_$j_$r);
  v_hi$u_$j_$r = fma(share, outputs[of_expert * (COLS / 4u) + 2u * vec$u_$j + 1u], v_hi$u_$j_$r);
}
//#endfor
//#endif
//#endfor
//#endfor
//#endfor
//#for r in ROWS
//#for u in NORM_TURNS
{
  var square = 0.0;
  //#for j in NORM_EACH
  if (mine$u_$j) {
    square = add_squares(add_squares(square, v_lo$u_$j_$r), v_hi$u_$j_$r);
    //#if STREAMED
    if (tile.y == 0u && row + $ru < rows) {
      stream[v_at$u_$j_$r] = v_lo$u_$j_$r;
      stream[v_at$u_$j_$r + 1u] = v_hi$u_$j_$r;
    }
    //#endif
    //#if KEPT
    if (tile.y == 0u && row + $ru < rows) {
      let to = ((row + $ru) * KEPT_COLS + KEPT_FIRST) / 4u + 2u * vec$u_$j;
      kept[to] = v_lo$u_$j_$r;
      kept[to + 1u] = v_hi$u_$j_$r;
    }
    //#endif
  }
  //#endfor
  if (thread + $(u * THREADS)u < $NORM_LANESu) {
    squares[$(r * NORM_LANES)u + thread + $(u * THREADS)u] = square;
  }
}
//#endfor
//#endfor
workgroupBarrier();
//#for s in STAGES
{
  let left = $NORM_LANESu >> (3u * $su + 3u);
  for (var i = thread; i < $ROWSu * left; i += THREADS) {
    let at = i / left * $NORM_LANESu + i % left;
    var sum = 0.0;
    //#for e in 8
    sum += squares[at + $eu * left];
    //#endfor
    squares[at] = sum;
  }
  workgroupBarrier();
}
//#endfor
//#for r in ROWS
{
  var sum = 0.0;
  //#for e in REST
  sum += squares[$(r * NORM_LANES + e)u];
  //#endfor
  let scale = 1.0 / sqrt(sum / f32(COLS) + EPS);
  //#for u in NORM_TURNS
  //#for j in NORM_EACH
  if (mine$u_$j) {
    put_vec8($ru, i$u_$j, v_lo$u_$j_$r * scale * gain_lo$u_$j, v_hi$u_$j_$r * scale * gain_hi$u_$j);
  }
  //#endfor
  //#endfor
}
//#endfor
//#else if hold == combined
// How matmul_resident.wgsl brings the output of attention to workgroup memory: its splits are added on the way, as
// attention_combine.wgsl does where each lane has a split at most.
//#for s in LOADS
{
  let i = thread + $su * THREADS;
  if (i < $ROWSu * $STAGEu) {
    let r = min(row + i / $STAGEu, rows - 1u);
    let own = row_list[r];
    let first = visible_begin(own) / SPLIT_CELLS;
    let splits = (visible_end(own) + SPLIT_CELLS - 1u) / SPLIT_CELLS - min(first, visible_end(own));
    let quad = (tile.z * $STAGEu + i % $STAGEu) * 2u;
    let at = (r * HEADS + quad / HEAD) * KV_SPLITS + first;
    // Nobody waits for the splits' peaks before the first of their sums are asked for.
    //#for c in HALF
    let at$c = (at + min($cu, splits - 1u)) * HEAD + quad % HEAD;
    let lo$c = parts[at$c];
    let hi$c = parts[at$c + 1u];
    //#endfor
    //#for c in SPLITS
    var stat$c = vec2<f32>(NEGATIVE, 0.0);
    if ($cu < splits) {
      stat$c = stats[at + $cu];
    }
    //#endfor
    var top = NEGATIVE;
    //#for c in SPLITS
    top = max(top, stat$c.x);
    //#endfor
    var total = 0.0;
    var lo = vec4<f32>(0.0);
    var hi = vec4<f32>(0.0);
    //#for c in HALF
    {
      let share = exp(stat$c.x - top);
      total = fma(stat$c.y, share, total);
      lo = fma(lo$c, vec4<f32>(share), lo);
      hi = fma(hi$c, vec4<f32>(share), hi);
    }
    //#endfor
    if ($HALFu < splits) {
      //#for c in HALF
      let at$(HALF + c) = (at + min($(HALF + c)u, splits - 1u)) * HEAD + quad % HEAD;
      let lo$(HALF + c) = parts[at$(HALF + c)];
      let hi$(HALF + c) = parts[at$(HALF + c) + 1u];
      //#endfor
      //#for c in HALF
      {
        let share = exp(stat$(HALF + c).x - top);
        total = fma(stat$(HALF + c).y, share, total);
        lo = fma(lo$(HALF + c), vec4<f32>(share), lo);
        hi = fma(hi$(HALF + c), vec4<f32>(share), hi);
      }
      //#endfor
    }
    let seen = splits > 0u;
    put_vec8(i / $STAGEu, i % $STAGEu, select(vec4<f32>(0.0), lo / total, seen), select(vec4<f32>(0.0), hi / total, seen));
  }
}
//#endfor
//#else if hold == relay
//#import matmul/hold/relay
//#else
// How matmul_resident.wgsl brings x to workgroup memory: as it is.
//#for s in LOADS
let i$s = thread + $su * THREADS;
let from$s = min(row + min(i$s / $STAGEu, $ROWSu - 1u), rows - 1u) * (COLS / 4u) +
  (tile.z * $STAGEu + i$s % $STAGEu) * 2u;
let lo$s = x[from$s];
let hi$s = x[from$s + 1u];
//#endfor
//#for s in LOADS
if (i$s < $ROWSu * $STAGEu) {
  put_vec8(i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
}
//#endfor
//#endif

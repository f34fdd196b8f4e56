// Statements of matmul_resident.wgsl that add the partial sums of attention.
//#if HALVES
// Adds attention's splits as below, for x as floats: each invocation makes four numbers, half of a vec8.
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
    // The loads of the first splits' sums wait neither for the row nor for the splits' peaks.
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
    //#if SINKS
    total += exp(min(sinks[quad / HEAD] - top, 80.0));
    //#endif
    let y = gated(r, quad, sum / total);
    put_half(i / (2u * $STAGEu), i % (2u * $STAGEu), select(vec4<f32>(0.0), y, splits > 0u));
  }
}
//#endfor
//#else
// Attention's splits are added on the way, as attention_combine.wgsl does where each lane has a split at most.
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
    // The loads of the first splits' sums do not wait for the splits' peaks.
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
    //#if SINKS
    total += exp(min(sinks[quad / HEAD] - top, 80.0));
    //#endif
    let seen = splits > 0u;
    let y_lo = gated(r, quad, lo / total);
    let y_hi = gated(r, quad + 1u, hi / total);
    put_vec8(i / $STAGEu, i % $STAGEu, select(vec4<f32>(0.0), y_lo, seen), select(vec4<f32>(0.0), y_hi, seen));
  }
}
//#endfor
//#endif

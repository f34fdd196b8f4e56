// combined.wgsl for x as floats: a vector of four of them an invocation, half of a vec8.
//for s in HALF_LOADS
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
    //for c in HALF
    let from$c = at + min($cu, KV_SPLITS - 1u);
    let early$c = parts[from$c * HEAD + quad % HEAD];
    let known$c = stats[from$c];
    //end
    //for c in HALF
    let part$c = select(vec4<f32>(0.0), early$c, $cu < splits);
    let stat$c = select(vec2<f32>(NEGATIVE, 0.0), known$c, $cu < splits);
    var stat$(HALF + c) = vec2<f32>(NEGATIVE, 0.0);
    if ($(HALF + c)u < splits) {
      stat$(HALF + c) = stats[at + $(HALF + c)u];
    }
    //end
    var top = NEGATIVE;
    //for c in SPLITS
    top = max(top, stat$c.x);
    //end
    var total = 0.0;
    var sum = vec4<f32>(0.0);
    //for c in HALF
    {
      let share = exp(stat$c.x - top);
      total = fma(stat$c.y, share, total);
      sum = fma(part$c, vec4<f32>(share), sum);
    }
    //end
    if ($HALFu < splits) {
      //for c in HALF
      let part$(HALF + c) = parts[(at + min($(HALF + c)u, splits - 1u)) * HEAD + quad % HEAD];
      //end
      //for c in HALF
      {
        let share = exp(stat$(HALF + c).x - top);
        total = fma(stat$(HALF + c).y, share, total);
        sum = fma(part$(HALF + c), vec4<f32>(share), sum);
      }
      //end
    }
    put_half(i / (2u * $STAGEu), i % (2u * $STAGEu), select(vec4<f32>(0.0), sum / total, splits > 0u));
  }
}
//end

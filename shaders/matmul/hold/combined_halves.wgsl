// combined.wgsl for x as floats: a vector of four of them an invocation, half of a vec8.
//for s in HALF_LOADS
{
  let i = thread + $su * THREADS;
  if (i < 2u * $ROWSu * $STAGEu) {
    let r = min(row + i / (2u * $STAGEu), rows - 1u);
    let own = row_list[r];
    let first = visible_begin(own) / SPLIT_CELLS;
    let splits = (visible_end(own) + SPLIT_CELLS - 1u) / SPLIT_CELLS - min(first, visible_end(own));
    let quad = tile.z * 2u * $STAGEu + i % (2u * $STAGEu);
    let at = (r * HEADS + quad / HEAD) * KV_SPLITS + first;
    // Nobody waits for the splits' peaks before the first of their sums are asked for.
    //for c in HALF
    let part$c = parts[(at + min($cu, splits - 1u)) * HEAD + quad % HEAD];
    //end
    //for c in SPLITS
    var stat$c = vec2<f32>(NEGATIVE, 0.0);
    if ($cu < splits) {
      stat$c = stats[at + $cu];
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

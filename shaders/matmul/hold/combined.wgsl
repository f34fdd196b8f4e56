// How matmul_resident.wgsl brings the output of attention to workgroup memory: its splits are added on the way, as
// attention_combine.wgsl does where each lane has a split at most.
//for s in LOADS
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
    //for c in HALF
    let at$c = (at + min($cu, splits - 1u)) * HEAD + quad % HEAD;
    let lo$c = parts[at$c];
    let hi$c = parts[at$c + 1u];
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
    var lo = vec4<f32>(0.0);
    var hi = vec4<f32>(0.0);
    //for c in HALF
    {
      let share = exp(stat$c.x - top);
      total = fma(stat$c.y, share, total);
      lo = fma(lo$c, vec4<f32>(share), lo);
      hi = fma(hi$c, vec4<f32>(share), hi);
    }
    //end
    if ($HALFu < splits) {
      //for c in HALF
      let at$(HALF + c) = (at + min($(HALF + c)u, splits - 1u)) * HEAD + quad % HEAD;
      let lo$(HALF + c) = parts[at$(HALF + c)];
      let hi$(HALF + c) = parts[at$(HALF + c) + 1u];
      //end
      //for c in HALF
      {
        let share = exp(stat$(HALF + c).x - top);
        total = fma(stat$(HALF + c).y, share, total);
        lo = fma(lo$(HALF + c), vec4<f32>(share), lo);
        hi = fma(hi$(HALF + c), vec4<f32>(share), hi);
      }
      //end
    }
    let seen = splits > 0u;
    put_vec8(i / $STAGEu, i % $STAGEu, select(vec4<f32>(0.0), lo / total, seen), select(vec4<f32>(0.0), hi / total, seen));
  }
}
//end

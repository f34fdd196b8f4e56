// Adds runs that are segments.

//use latent/latent_lanes

fn weigh(query: u32, row: Row, thread: u32) {}

// Four elements of the weighted sum of latents; zeros for padding.
fn combined(query: u32, row: Row, quad: u32) -> vec4<f32> {
  let range = segments_of(row);
  if (visible_end(row) == 0u) {
    return vec4<f32>(0.0);
  }
  //for l in LANES
  var peak$l = NEGATIVE;
  var total$l = 0.0;
  var sum$l = vec4<f32>(0.0);
  //end
  for (var s = range.x; s < range.y; s += LANES * $TURNSu) {
    //for t in TURNS
    //for l in LANES
    let at$t_$l = query * RUNS + min(s + $(t * LANES + l)u, range.y - 1u);
    let stat$t_$l = stats[at$t_$l];
    let part$t_$l = sums[at$t_$l * RANK4 + quad];
    //end
    //end
    //for t in TURNS
    //for l in LANES
    if (s + $(t * LANES + l)u < range.y) {
      let fold = fold_one(peak$l, stat$t_$l.x);
      peak$l = fold.z;
      total$l = fma(stat$t_$l.y, fold.y, total$l * fold.x);
      sum$l = fma(part$t_$l, vec4<f32>(fold.y), sum$l * fold.x);
    }
    //end
    //end
  }
  var top = NEGATIVE;
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  //for l in LANES
  {
    let fold = fold_one(top, peak$l);
    top = fold.z;
    total = fma(total$l, fold.y, total * fold.x);
    sum = fma(sum$l, vec4<f32>(fold.y), sum * fold.x);
  }
  //end
  return sum / total;
}

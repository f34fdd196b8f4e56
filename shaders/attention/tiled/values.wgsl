// Of attention_tiled.wgsl: the weighted values of a split, added to those of the splits before. Expects the
// weights in `pool`, `shares` written by invocations of this workgroup, and `value<stage>`, the first vec8s of values.

//for h in SUMMED
var sum_lo$h = vec4<f32>(0.0);
var sum_hi$h = vec4<f32>(0.0);
var lo$h = vec4<f32>(0.0);
var hi$h = vec4<f32>(0.0);
//end
for (var done = 0u; done < SPLIT_CELLS; done += $AHEADu * BROUGHT) {
  //for u in AHEAD
  {
    let n = done + $uu * BROUGHT;
    if (thread < BROUGHT * VEC8S) {
      let v = vec8_of(value$u);
      brought[brings][i] = v.lo;
      brought[brings][VEC8S + i] = v.hi;
    }
    workgroupBarrier();
    value$u = load_value(places[cell_at(min(n + $AHEADu * BROUGHT, SPLIT_CELLS - BROUGHT) + brings)], i);
    //for p in BROUGHT_PARTS
    //for c in BROUGHT_CELLS
    {
      let line = cell_at(n + $(p * BROUGHT_CELLS + c)u);
      let v = Vec8(brought[$(p * BROUGHT_CELLS + c)][i], brought[$(p * BROUGHT_CELLS + c)][VEC8S + i]);
      //for f in SUMMED_QUADS
      let weight$f = pool[line][summed * ($SUMMEDu / 4u) + $fu];
      //for h in FOUR
      lo$(f * FOUR + h) = fma(vec4<f32>(weight$f[$h]), v.lo, lo$(f * FOUR + h));
      hi$(f * FOUR + h) = fma(vec4<f32>(weight$f[$h]), v.hi, hi$(f * FOUR + h));
      //end
      //end
    }
    //end
    if ((n + $(p * BROUGHT_CELLS + BROUGHT_CELLS)u) % CELLS == 0u) {
      //for h in SUMMED
      sum_lo$h += lo$h;
      sum_hi$h += hi$h;
      lo$h = vec4<f32>(0.0);
      hi$h = vec4<f32>(0.0);
      //end
    }
    //end
    workgroupBarrier();
  }
  //end
}

//for h in SUMMED
{
  let query = summed * $SUMMEDu + $hu;
  let share = shares[query];
  if (share.y >= 0.0) {
    let at = (((row + query / GROUP) * heads + tile.y * GROUP + query % GROUP) * KEPT + z) * (2u * VEC8S) + i;
    if (share.x != 0.0) {
      sum_lo$h = fma(sum_lo$h, vec4<f32>(share.y), sums[at] * share.x);
      sum_hi$h = fma(sum_hi$h, vec4<f32>(share.y), sums[at + VEC8S] * share.x);
    } else {
      sum_lo$h *= share.y;
      sum_hi$h *= share.y;
    }
    sums[at] = sum_lo$h;
    sums[at + VEC8S] = sum_hi$h;
  }
}
//end

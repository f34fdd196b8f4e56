// Statements of long.wgsl: the weighted sums of latents of a segment, stored.

let turns = (chunks + 1u) / 2u;
var handed = 0u; // the place in `pool` that is written next
//for d in SPANS
{
  //for x in QUERIES
  var part$x = vec4<f32>(0.0);
  //end
  //for x in HALF
  var sum$x = vec4<f32>(0.0); // of query team * HALF + $x
  //end
  for (var f = 0u; f < STEPS * turns; f++) {
    let chunk = min(2u * (f / STEPS) + team, CHUNKS - 1u);
    let next = min(2u * ((f + 1u) / STEPS) + team, CHUNKS - 1u);
    let place = places[next];
    let most = last_of(next, first, end);
    //for c in AT_ONCE
    {
      let value = four_of(packed$d_$c, four$d);
      //for a in QUADS
      let weight$a = weights[4u * chunk + f % STEPS * (AT_ONCE / 4u) + $cu / 4u][$cu % 4u][$a];
      //for h in FOUR
      part$(4 * a + h) = fma(vec4<f32>(weight$a[$h]), value, part$(4 * a + h));
      //end
      //end
    }
    packed$d_$c = load_four(place + min((f + 1u) % STEPS * AT_ONCE + $cu, most), four$d);
    //end
    if (f % STEPS == STEPS - 1u) {
      let at = handed * DIMS + dim;
      if (team == 0u) {
        //for x in HALF
        pool[$(HALF + x)][at] = part$(HALF + x);
        //end
      } else {
        //for x in HALF
        pool[$x][at] = part$x;
        //end
      }
      workgroupBarrier();
      if (team == 0u) {
        //for x in HALF
        sum$x = fma(part$x, vec4<f32>(shares[chunk][$x]), sum$x * shrinks[chunk][$x]);
        //end
        if (chunk + 1u < chunks) {
          //for x in HALF
          sum$x = fma(
            pool[$x][at],
            vec4<f32>(shares[chunk + 1u][$x]),
            sum$x * shrinks[chunk + 1u][$x],
          );
          //end
        }
      } else {
        //for x in HALF
        sum$x = fma(
          pool[$(HALF + x)][at],
          vec4<f32>(shares[chunk - 1u][$(HALF + x)]),
          sum$x * shrinks[chunk - 1u][$(HALF + x)],
        );
        //end
        if (chunk < chunks) {
          //for x in HALF
          sum$x = fma(
            part$(HALF + x),
            vec4<f32>(shares[chunk][$(HALF + x)]),
            sum$x * shrinks[chunk][$(HALF + x)],
          );
          //end
        }
      }
      handed = 1u - handed;
      //for x in QUERIES
      part$x = vec4<f32>(0.0);
      //end
    }
  }
  if (($du + 1u) * DIMS <= RANK4 || dim + $du * DIMS < RANK4) {
    let kept = team * HALF;
    let to = ((query + kept) * RUNS + tile.z) * RANK4 + dim + $du * DIMS;
    //for x in HALF
    if (kept + $xu < count) {
      sums[to + $xu * RUNS * RANK4] = sum$x;
    }
    //end
  }
}
//end

// What the runs of cells that a row sees come to, see latent_attention.wgsl: the runs of a segment of
// 128 cells, $SHARES of them, are added one after the other; of LANES sums each has every LANES-th
// segment, and these are added in order.

//use fragments/rows
//use attention/visible
//use attention/latent_fold

override RUNS: u32; // places for runs of a query in `sums`
override FIRST_ROW: u32; // of `rows`

const SEGMENT = 128u; // cells
const RUN = SEGMENT / $SHARESu;
const RANK4 = $RANK4u; // vec4 of a latent
const LANES = $LANESu;

@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]

// Four elements of the weighted sum of latents; zeros for padding.
fn combined(query: u32, row: Row, quad: u32) -> vec4<f32> {
  let begin = visible_begin(row) / RUN;
  let end = (visible_end(row) + RUN - 1u) / RUN;
  if (end == 0u) {
    return vec4<f32>(0.0);
  }
  //for l in LANES
  var peak$l = vec4<f32>(NEGATIVE); // all alike
  var total$l = 0.0;
  var sum$l = vec4<f32>(0.0);
  //end
  for (var s = begin / $SHARESu; s * $SHARESu < end; s += LANES * $TURNSu) {
    //for t in TURNS
    //for l in LANES
    let first$t_$l = (s + $(t * LANES + l)u) * $SHARESu;
    //for j in SHARES
    let at$t_$l_$j = query * RUNS + min(first$t_$l + $ju, end - 1u);
    let stat$t_$l_$j = stats[at$t_$l_$j];
    let part$t_$l_$j = sums[at$t_$l_$j * RANK4 + quad];
    //end
    //end
    //end
    //for t in TURNS
    //for l in LANES
    {
      var peak = vec4<f32>(NEGATIVE);
      var total = 0.0;
      var sum = vec4<f32>(0.0);
      //for j in SHARES
      if (first$t_$l + $ju >= begin && first$t_$l + $ju < end) {
        let fold = fold_of(peak, vec4<f32>(stat$t_$l_$j.x));
        peak = fold.peak;
        total = fma(stat$t_$l_$j.y, fold.share.x, total * fold.shrink.x);
        sum = fma(part$t_$l_$j, fold.share, sum * fold.shrink);
      }
      //end
      let fold = fold_of(peak$l, peak);
      peak$l = fold.peak;
      total$l = fma(total, fold.share.x, total$l * fold.shrink.x);
      sum$l = fma(sum, fold.share, sum$l * fold.shrink);
    }
    //end
    //end
  }
  var top = vec4<f32>(NEGATIVE);
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  //for l in LANES
  {
    let fold = fold_of(top, peak$l);
    top = fold.peak;
    total = fma(total$l, fold.share.x, total * fold.shrink.x);
    sum = fma(sum$l, fold.share, sum * fold.shrink);
  }
  //end
  return sum / total;
}

// The best of the argmaxes of the lanes of a workgroup, returned to every lane; see workgroup_sum.wgsl for the
// stages and for what the file that uses this declares.

//use fragments/argmax

var<workgroup> candidates: array<Argmax, LANES>;

fn best_of(x: Argmax, lane: u32) -> Argmax {
  candidates[lane] = x;
  workgroupBarrier();
  //for s in STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var best = candidates[lane];
      //for j in EIGHT
      best = better(best, candidates[lane + $ju * left]);
      //end
      candidates[lane] = best;
    }
    workgroupBarrier();
  }
  //end
  var best = candidates[0];
  //for j in REST
  best = better(best, candidates[$j]);
  //end
  workgroupBarrier(); // before the next call writes
  return best;
}

// The best peak over the lanes of a workgroup, known to every lane; see workgroup_sum.wgsl for the
// stages. `Peak` and `better` come from peak.wgsl.

var<workgroup> candidates: array<Peak, LANES>;

fn best_of(x: Peak, lane: u32) -> Peak {
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

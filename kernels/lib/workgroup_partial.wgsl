// The lanes' partial results of a workgroup joined, returned to every lane; see workgroup_sum.wgsl for the
// stages and for what the file that uses this declares, and partial_softmax.wgsl for `Partial` and `joined`.

var<workgroup> candidates: array<Partial, LANES>;

fn joined_lanes(x: Partial, lane: u32) -> Partial {
  candidates[lane] = x;
  workgroupBarrier();
  //#for s in STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var all = NO_PARTIAL;
      //#for j in 8
      all = joined(all, candidates[lane + $ju * left]);
      //#endfor
      candidates[lane] = all;
    }
    workgroupBarrier();
  }
  //#endfor
  var all = NO_PARTIAL;
  //#for j in REST
  all = joined(all, candidates[$j]);
  //#endfor
  workgroupBarrier(); // before the next call writes
  return all;
}

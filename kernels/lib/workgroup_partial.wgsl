// The partial results of all lanes of a workgroup joined into one, which every lane gets. `Partial` and `joined` are
// those of partial_argmax.wgsl or partial_softmax.wgsl.
//
// The lanes are joined in stages as in workgroup_sum.wgsl. The kernel declares LANES, a power of two. Parameters:
// STAGES and REST (`foldCounts`).

var<workgroup> candidates: array<Partial, LANES>;

fn workgroup_joined(x: Partial, lane: u32) -> Partial {
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

// The choices of accept_commit.wgsl where each is the token of the largest logit: what choose.wgsl chooses at
// temperature 0. Every row has $WIDTH lanes, a power of two, which join its partial argmaxes as
// partial/workgroup_partial.wgsl does. A logit that is no number gives NOT_A_TOKEN, as there.

//use fragments/argmax

override PARTIALS: u32; // partial argmaxes of a row

@group(0) @binding(2) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]

var<workgroup> candidates: array<Argmax, $LANES>;
var<workgroup> choices: array<u32, $ROWS>;
var<private> first_choice: u32; // row

fn make_choices(first: u32, lane: u32) {
  first_choice = first;
  let own = min(lane / $WIDTHu, $ROWSu - 1u); // row of the sequence
  let at = lane % $WIDTHu;
  let row = (first + own) * PARTIALS;
  var best = NO_ARGMAX;
  for (var i = at; i < PARTIALS; i += $EIGHTu * $WIDTHu) {
    //for j in EIGHT
    let partial$j = partials[row + min(i + $ju * $WIDTHu, PARTIALS - 1u)];
    //end
    //for j in EIGHT
    best = better(best, partial$j); // one of them twice changes nothing
    //end
  }
  candidates[lane] = best;
  workgroupBarrier();
  //for s in STAGES
  {
    let left = $WIDTHu >> (3u * $su + 3u);
    if (at < left) {
      var all = NO_ARGMAX;
      //for j in EIGHT
      all = better(all, candidates[lane + $ju * left]);
      //end
      candidates[lane] = all;
    }
    workgroupBarrier();
  }
  //end
  if (at == 0u) {
    var all = NO_ARGMAX;
    //for j in REST
    all = better(all, candidates[lane + $ju]);
    //end
    choices[own] = select(all.y, NOT_A_TOKEN, all.x == BROKEN || all.x <= NOTHING);
  }
  workgroupBarrier();
}

fn choice(row: u32) -> u32 {
  return choices[row - first_choice];
}

// Jobs alone, as expert_jobs_chosen.wgsl has them: each subgroup, of $SUBGROUP lanes, finds the expert of its workgroup's
// job by itself, a lane having $EACH logits, by taking the best one away as often as others are better. Workgroups
// are whole subgroups.

//use experts/few/row_choice

var<workgroup> tile_expert: u32;

fn expert_of(tile: u32, thread: u32) -> u32 {
  if (tile >= JOBS) {
    store_choice(tile - JOBS, thread);
    return NOTHING;
  }
  let row = tile / ROW_JOBS;
  let rank = tile % ROW_JOBS;
  if (rank >= TOP_K) {
    return EXPERTS + rank - TOP_K;
  }
  //for j in EACH
  let e$j = thread % $SUBGROUPu + $(j * SUBGROUP)u;
  var key$j = select(0u, key_of(logit_of(row, e$j)), e$j < EXPERTS);
  //end
  var found = 0u;
  for (var above = 0u; above <= rank; above++) {
    var largest = 0u;
    //for j in EACH
    largest = max(largest, key$j);
    //end
    let best = subgroupMax(largest);
    var first = EXPERTS; // of equals the lower number is better
    //for j in EACH
    first = min(first, select(EXPERTS, e$j, key$j == best));
    //end
    found = subgroupMin(first);
    //for j in EACH
    key$j = select(key$j, 0u, e$j == found);
    //end
  }
  if (thread == 0u) {
    tile_expert = found;
  }
  return workgroupUniformLoad(&tile_expert);
}

fn job_of(tile: u32, r: u32) -> u32 {
  return tile;
}

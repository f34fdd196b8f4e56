// Jobs of expert_matmul.wgsl of few rows, each a tile of its own, whose experts nobody has chosen yet: a workgroup
// finds that of its job by the router's logits, experts being better by their logits alone. Tiles behind
// the jobs have a row's choice stored for what comes next (row_choice.wgsl).
// CHOICE_LANES are the workgroup's.

//use experts/few/row_choice

override VECTORS: u32; // of the experts by four, a multiple of $RANKED

var<workgroup> ranked: array<vec4<u32>, VECTORS>; // keys of the logits
var<workgroup> tile_expert: u32;

// Experts that are better than e: larger ones, and of those before it, equal ones.
fn rank_of(e: u32) -> u32 {
  let own = ranked[e / 4u][e % 4u];
  let mates = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(e % 4u);
  var rank = select(vec4<u32>(0u), vec4<u32>(1u), mates & (ranked[e / 4u] == vec4<u32>(own)));
  for (var i = 0u; i < VECTORS; i += $RANKEDu) {
    //for u in RANKED
    {
      let least = vec4<u32>(select(own, own - 1u, i + $uu < e / 4u));
      rank += select(vec4<u32>(0u), vec4<u32>(1u), ranked[i + $uu] > least);
    }
    //end
  }
  return rank.x + rank.y + rank.z + rank.w;
}

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
  for (var i = thread; i < VECTORS; i += CHOICE_LANES) {
    ranked[i] = vec4<u32>(
      key_of(logit_of(row, 4u * i)),
      key_of(logit_of(row, 4u * i + 1u)),
      key_of(logit_of(row, 4u * i + 2u)),
      key_of(logit_of(row, 4u * i + 3u)),
    );
  }
  workgroupBarrier();
  for (var e = thread; e < EXPERTS; e += CHOICE_LANES) {
    if (rank_of(e) == rank) {
      tile_expert = e;
    }
  }
  return workgroupUniformLoad(&tile_expert);
}

fn job_of(tile: u32, r: u32) -> u32 {
  return tile;
}

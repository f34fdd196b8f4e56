// The jobs of a workgroup of an experts' matmul. Job j is row j / ROW_JOBS of x at expert number j % ROW_JOBS of the
// row. A tile is an expert and at most $TILE of its jobs, which share the reads of its weights:
//   place_of(workgroup)      the workgroup's tile, and its range of outputs
//   expert_of(tile, thread)  the tile's expert, NOTHING if the tile is unused; called by all invocations, before job_of
//   job_of(tile, r)          job r of the tile, NOTHING past the last
//
// By `jobs`,
//   alone   each job is a tile of its own
//   found   jobs are few enough for a workgroup to look at all of them: tile t belongs to job t, and is in use where
//           the expert's jobs before it fill whole tiles
//   tiled   tiles are those of job_lists.wgsl
//   chosen  each job is a tile of its own, and experts are not chosen yet: a workgroup finds the expert of its job from
//           the router's logits, which alone rank the experts. The first workgroups store each row's choice
//           (expert_choice.wgsl) for the kernels that follow. CHOICE_LANES are the workgroup's
//   picked  as chosen, but each subgroup, of $SUBGROUP lanes, finds the expert by itself: a lane has $EACH logits, and
//           the best remaining one is removed until the job's rank is reached. Workgroups are whole subgroups

//#if CHOOSES
//#import lib/expert_choice
//#endif

const NOTHING = 0xffffffffu;

//#if jobs == alone
@group(0) @binding(3) var<storage, read> experts: array<u32>; // [jobs]

fn expert_of(tile: u32, thread: u32) -> u32 {
  return experts[tile];
}
//#else if jobs == found
override JOBS: u32; // at most LANES * GROUPS, and 128

@group(0) @binding(3) var<storage, read> experts: array<u32>; // [jobs]

var<workgroup> same: array<atomic<u32>, 4>; // a bit for each job: whether it is of the tile's expert
var<workgroup> tile_expert: u32;
var<workgroup> tile_jobs: array<u32, $TILE>;

// Jobs of the expert before job j.
fn jobs_before(j: u32) -> u32 {
  var count = 0u;
  for (var w = 0u; w < 4u; w++) {
    let first = 32u * w;
    if (j >= first + 32u) {
      count += countOneBits(atomicLoad(&same[w]));
    } else if (j > first) {
      count += countOneBits(atomicLoad(&same[w]) & ((1u << (j - first)) - 1u));
    }
  }
  return count;
}

fn expert_of(tile: u32, thread: u32) -> u32 {
  let expert = experts[tile];
  let mate = thread < JOBS && experts[min(thread, JOBS - 1u)] == expert;
  if (mate) {
    atomicOr(&same[thread / 32u], 1u << (thread % 32u));
  }
  if (thread < $TILEu) {
    tile_jobs[thread] = NOTHING;
  }
  workgroupBarrier();
  if (mate) {
    let own = jobs_before(thread);
    let first = jobs_before(tile);
    if (thread == tile) {
      tile_expert = select(NOTHING, expert, first % $TILEu == 0u);
    }
    if (own >= first && own < first + $TILEu) {
      tile_jobs[own - first] = thread;
    }
  }
  return workgroupUniformLoad(&tile_expert);
}
//#else if jobs == tiled
@group(0) @binding(3) var<storage, read> tiles: array<u32>; // [tiles, 1 + TILE]

fn expert_of(tile: u32, thread: u32) -> u32 {
  return tiles[tile * (1u + $TILEu)];
}
//#else
override JOBS: u32;
override STRIDE: u32; // of a row of logits

@group(0) @binding(3) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(4) var<storage, read_write> experts: array<u32>; // [rows, ROW_JOBS]
@group(0) @binding(5) var<storage, read_write> shares: array<f32>; // [rows, ROW_JOBS]

fn logit_of(row: u32, e: u32) -> f32 {
  return select(NEGATIVE, logits[row * STRIDE + min(e, EXPERTS - 1u)], e < EXPERTS);
}

fn store_choice(row: u32, thread: u32) {
  for (var e = thread; e < EXPERTS; e += CHOICE_LANES) {
    choices[e] = logit_of(row, e);
  }
  workgroupBarrier();
  choose_experts(row, thread);
}

// A key in the order of the logits. Integers are compared in one instruction, and a key less 1 is a bound for >=.
fn key_of(logit: f32) -> u32 {
  let bits = bitcast<u32>(select(logit, 0.0, logit == 0.0)); // zeros are equal
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

//#if jobs == chosen
override VECTORS: u32; // of the experts by four, a multiple of $RANKED

var<workgroup> ranked: array<vec4<u32>, VECTORS>; // keys of the logits
var<workgroup> tile_expert: u32;

// Number of experts that are better than e: those with a larger key, and those before e with an equal key.
fn rank_of(e: u32) -> u32 {
  let own = ranked[e / 4u][e % 4u];
  let mates = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(e % 4u);
  var rank = select(vec4<u32>(0u), vec4<u32>(1u), mates & (ranked[e / 4u] == vec4<u32>(own)));
  for (var i = 0u; i < VECTORS; i += $RANKEDu) {
    //#for u in RANKED
    {
      let least = vec4<u32>(select(own, own - 1u, i + $uu < e / 4u));
      rank += select(vec4<u32>(0u), vec4<u32>(1u), ranked[i + $uu] > least);
    }
    //#endfor
  }
  return rank.x + rank.y + rank.z + rank.w;
}

// The expert of a row that `rank` others are better than.
fn ranked_expert(row: u32, rank: u32, thread: u32) -> u32 {
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
//#else
var<workgroup> tile_expert: u32;

// The expert of a row that `rank` others are better than.
fn ranked_expert(row: u32, rank: u32, thread: u32) -> u32 {
  //#for j in EACH
  let e$j = thread % $SUBGROUPu + $(j * SUBGROUP)u;
  var key$j = select(0u, key_of(logit_of(row, e$j)), e$j < EXPERTS);
  //#endfor
  var found = 0u;
  for (var above = 0u; above <= rank; above++) {
    var largest = 0u;
    //#for j in EACH
    largest = max(largest, key$j);
    //#endfor
    let best = subgroupMax(largest);
    var first = EXPERTS; // of equals the lower number is better
    //#for j in EACH
    first = min(first, select(EXPERTS, e$j, key$j == best));
    //#endfor
    found = subgroupMin(first);
    //#for j in EACH
    key$j = select(key$j, 0u, e$j == found);
    //#endfor
  }
  if (thread == 0u) {
    tile_expert = found;
  }
  return workgroupUniformLoad(&tile_expert);
}
//#endif

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
  return ranked_expert(row, rank, thread);
}
//#endif

fn place_of(workgroup: vec2<u32>) -> vec2<u32> {
  //#if CHOOSES
  // The first workgroups each store the choice of a row, which takes longest. Those of the jobs follow, all jobs of a
  // range of outputs side by side. None is idle: where multiprocessors have three workgroups each, one more is a third.
  let rows = JOBS / ROW_JOBS;
  if (workgroup.x < rows) {
    return vec2<u32>(JOBS + workgroup.x, 0u);
  }
  let job = workgroup.x - rows;
  return vec2<u32>(job % JOBS, job / JOBS);
  //#else
  return workgroup;
  //#endif
}

fn job_of(tile: u32, r: u32) -> u32 {
  //#if jobs == found
  return tile_jobs[r];
  //#else if jobs == tiled
  return tiles[tile * (1u + $TILEu) + 1u + r];
  //#else
  return tile;
  //#endif
}

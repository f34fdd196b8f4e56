// Jobs of expert_matmul.wgsl, few enough for a workgroup to look at all of them, in tiles of at most $TILE
// jobs of one expert: tile t belongs to job t, and is in use where the expert's jobs before it fill tiles.

override JOBS: u32; // at most LANES * GROUPS, and 128

const NOTHING = 0xffffffffu;

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

fn place_of(workgroup: vec2<u32>) -> vec2<u32> {
  return workgroup;
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

fn job_of(tile: u32, r: u32) -> u32 {
  return tile_jobs[r];
}

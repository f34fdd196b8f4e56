// Jobs sorted by expert into tiles, so that an expert's weights are read once for a tile: job j is
// row j / top_k of x at the row's expert j % top_k. A tile is the expert and TILE of its jobs, NOTHING
// past the last; tiles left over have NOTHING for an expert.
//
// One workgroup counts the jobs of each expert, gives the experts their tiles in order, and places the
// jobs, of which a lane loads eight at once: hardware waits for the loads together. Which job of an expert comes first
// is left to the atomics: no bit depends on it, since a job's sums are the same at any place of any tile.

override EXPERTS: u32;
override TILES: u32; // of the list
override TILE: u32;
override LANES: u32; // a power of two

const NOTHING = 0xffffffffu;

@group(0) @binding(0) var<storage, read> experts: array<u32>; // [jobs], each below EXPERTS
@group(0) @binding(1) var<storage, read_write> tiles: array<u32>; // [TILES, 1 + TILE]

var<workgroup> counts: array<atomic<u32>, EXPERTS>; // of jobs
var<workgroup> firsts: array<u32, EXPERTS>; // tile of the expert's first job
var<workgroup> ends: array<u32, LANES>; // tiles of the lanes' experts, and of those before

fn tiles_of(jobs: u32) -> u32 {
  return (jobs + TILE - 1u) / TILE;
}

// The tiles of an expert, with NOTHING where no job will be placed; returns how many.
fn open_tiles(e: u32, first: u32) -> u32 {
  let jobs = atomicLoad(&counts[e]);
  let used = tiles_of(jobs);
  for (var t = first; t < first + used; t++) {
    tiles[t * (1u + TILE)] = e;
  }
  let end = (first + used) * (1u + TILE);
  for (var at = end - (used * TILE - jobs); at < end; at++) {
    tiles[at] = NOTHING;
  }
  firsts[e] = first;
  atomicStore(&counts[e], 0u);
  return used;
}

fn place(e: u32, job: u32) {
  let n = atomicAdd(&counts[e], 1u);
  tiles[(firsts[e] + n / TILE) * (1u + TILE) + 1u + n % TILE] = job;
}

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
  let jobs = arrayLength(&experts);
  for (var e = lane; e < EXPERTS; e += LANES) {
    atomicStore(&counts[e], 0u);
  }
  workgroupBarrier();
  for (var first = lane; first < jobs; first += 8u * LANES) {
    //#for u in 8
    let e$u = experts[min(first + $uu * LANES, jobs - 1u)];
    //#endfor
    //#for u in 8
    if (first + $uu * LANES < jobs) {
      atomicAdd(&counts[e$u], 1u);
    }
    //#endfor
  }
  workgroupBarrier();

  // Each lane has consecutive experts.
  let each = (EXPERTS + LANES - 1u) / LANES;
  let begin = min(lane * each, EXPERTS);
  let end = min(begin + each, EXPERTS);
  var own = 0u;
  for (var e = begin; e < end; e++) {
    own += tiles_of(atomicLoad(&counts[e]));
  }
  ends[lane] = own;
  workgroupBarrier();
  for (var step = 1u; step < LANES; step *= 2u) {
    var before = 0u;
    if (lane >= step) {
      before = ends[lane - step];
    }
    workgroupBarrier();
    ends[lane] += before;
    workgroupBarrier();
  }
  var own_first = ends[lane] - own;
  for (var e = begin; e < end; e++) {
    own_first += open_tiles(e, own_first);
  }
  workgroupBarrier();

  for (var first = lane; first < jobs; first += 8u * LANES) {
    //#for u in 8
    let e$u = experts[min(first + $uu * LANES, jobs - 1u)];
    //#endfor
    //#for u in 8
    if (first + $uu * LANES < jobs) {
      place(e$u, first + $uu * LANES);
    }
    //#endfor
  }
  for (var t = ends[LANES - 1u] + lane; t < TILES; t += LANES) {
    tiles[t * (1u + TILE)] = NOTHING;
  }
}

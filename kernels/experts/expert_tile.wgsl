// What expert_staged.wgsl and expert_prefetch.wgsl have in common: the tile's jobs and the end of their sums.
//
// Imports are those of matmul_staged.wgsl, the epilogue one that stores numbers; besides, jobs.wgsl, as in
// expert_matmul.wgsl.

//#import matmul/epilogue
//#import matmul/common
//#import lib/weights_$weights
//#import matmul/dot
//#import experts/jobs
//#import experts/expert_rows

override FIRST_EXPERT: u32; // of the shard
override SHARD_EXPERTS: u32;
override ROW_JOBS: u32; // jobs that a row of x has

const FIRST = 0u;
const THREADS = $THREADSu; // LANES * GROUPS

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [jobs, OUT_COLS]

var<workgroup> staged: array<vec4<f32>, $VECTORS>; // of x, and then the lanes' sums
var<workgroup> x_rows: array<u32, $ROWS>; // the first vector of each job's row of x

// Known after the next barrier.
fn find_rows(tile: u32, thread: u32) {
  if (thread < $ROWSu) {
    let job = job_of(tile, thread);
    x_rows[thread] = select(job, job_of(tile, 0u), job == NOTHING) / ROW_JOBS * (COLS / 4u);
  }
}

// Adds what the lanes of each group summed, in the order of the lanes, for $SUMS jobs of the tile at a
// time, each a vector (a0, b0, a1, b1) of two pairs; see matmul/outputs.wgsl.
fn add_lanes(
  thread: u32,
  tile: u32,
  first: u32, // job of the tile
  column: u32, // pair of the workgroup's first group
  //#for s in SUMS
  sums$s: vec4<f32>,
  //#endfor
) {
  let half = MATRIX_ROWS / 2u;
  let stride = GROUPS * (LANES + 1u);
  workgroupBarrier();
  //#for s in SUMS
  staged[$su * stride + thread + thread / LANES] = sums$s;
  //#endfor
  workgroupBarrier();
  for (var i = thread; i < GROUPS * $SUMSu; i += THREADS) {
    let group = i % GROUPS;
    let s = i / GROUPS;
    let at = s * stride + group * (LANES + 1u);
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l += $UNROLLu) {
      //#for l in UNROLL
      sum += staged[at + l + $lu];
      //#endfor
    }
    let job = job_of(tile, first + s);
    let c = column + group * $PAIRSu;
    if (job != NOTHING && c < half) {
      epilogue(job, c, half, sum.xy);
    }
    if ($PAIRSu > 1u && job != NOTHING && c + 1u < half) {
      epilogue(job, c + 1u, half, sum.zw);
    }
  }
}

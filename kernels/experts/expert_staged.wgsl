// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] of every job j, e its expert, to the bit as in expert_matmul.wgsl, on
// hardware. x passes through workgroup memory $STAGE vec8s of k at a time, and the weights of a stage are loaded before
// it is there, as in matmul_staged.wgsl. With PREFETCH, for tiles of many jobs, the next stage of x and of the weights
// is loaded while one is multiplied, x into the other of two buffers in workgroup memory, as in matmul_prefetch.wgsl:
// one barrier a stage.
//
// One workgroup per tile of at most $ROWS jobs of one expert and range of outputs (lib/expert_jobs.wgsl). COLS / 8 is a
// multiple of $STAGE. y goes to an epilogue that stores numbers (lib/epilogue.wgsl).

//#import lib/epilogue
//#import lib/matmul_sizes
//#import lib/weights_$weights
//#import lib/staged_x
//#import lib/expert_jobs
//#import lib/expert_rows

override FIRST_EXPERT: u32; // of the shard
override SHARD_EXPERTS: u32;
override ROW_JOBS: u32; // jobs that a row of x has

const FIRST = 0u;
const THREADS = $THREADSu; // LANES * GROUPS

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [jobs, OUT_COLS]

var<workgroup> staged: array<vec4<f32>, $VECTORS>; // of x, and then the lanes' sums
//#if PACKED_FEW
// Where vec8 e of a stage lies: lanes read vec8s that are 8 apart, which would all begin in the same banks.
fn place_in_stage(e: u32) -> u32 {
  return e ^ ((e >> 3u) & 7u);
}
//#endif

var<workgroup> x_rows: array<u32, $ROWS>; // the first vector of each job's row of x

// Puts the rows of the tile's jobs into `x_rows`, which is there after the next barrier.
fn find_rows(tile: u32, thread: u32) {
  if (thread < $ROWSu) {
    let job = job_of(tile, thread);
    x_rows[thread] = select(job, job_of(tile, 0u), job == NOTHING) / ROW_JOBS * (COLS / 4u);
  }
}

// Adds what the lanes of each group summed, in the order of the lanes, for $SUMS jobs of the tile at a
// time, each a vector (a0, b0, a1, b1) of two pairs.
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

@compute @workgroup_size(LANES * GROUPS)
fn main(
  //#if PREFETCH
  @builtin(workgroup_id) tile: vec3<u32>,
  //#else
  @builtin(workgroup_id) workgroup: vec3<u32>,
  //#endif
  @builtin(local_invocation_index) thread: u32,
) {
  //#if !PREFETCH
  let tile = place_of(workgroup.xy);
  //#endif
  let expert = expert_of(tile.x, thread) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  //#if epilogue == clamped
  own_expert = expert + FIRST_EXPERT;
  //#endif
  // The invocation shares the outputs from pair `pair` on with the other lanes of its group.
  let half = MATRIX_ROWS / 2u; // output pairs of the matrix
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
  //#if PACKED_FEW
  let packed = lane / packed_lanes() * packed_lanes() * $BLOCK_VEC8Su + lane % packed_lanes();
  //#endif
  //#if PREFETCH
  let step = $STAGEu / $BLOCK_VEC8Su;
  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //#for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  //#for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#for j in STEPS
  var block_a$p_$j = load_block(at$p + $ju * LANES);
  var block_b$p_$j = load_block(at$p + other + $ju * LANES);
  //#endfor
  //#endfor
  find_rows(tile.x, thread);
  workgroupBarrier();
  //#for s in LOADS
  let i$s = thread + $su * THREADS;
  let source$s = x_rows[min(i$s / $STAGEu, $ROWSu - 1u)] + i$s % $STAGEu * 2u;
  if (i$s < $ROWSu * $STAGEu) {
    put_vec8(i$s / $STAGEu, i$s % $STAGEu, x[source$s], x[source$s + 1u]);
  }
  //#endfor
  var buffer = 0u; // first row of the one that is multiplied
  for (var first = 0u; first < blocks; first += step) {
    let next = min(first + step, blocks - step);
    workgroupBarrier();
    //#for s in LOADS
    let lo$s = x[source$s + next * $BLOCK_VEC8Su * 2u];
    let hi$s = x[source$s + next * $BLOCK_VEC8Su * 2u + 1u];
    //#endfor
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    {
      let k = ($ju * $BLOCK_VEC8Su + $cu) * LANES + lane;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
      if ($cu == $BLOCK_VEC8Su - 1u) {
        //#for p in PAIRS
        block_a$p_$j = load_block(at$p + next + $ju * LANES);
        block_b$p_$j = load_block(at$p + other + next + $ju * LANES);
        //#endfor
      }
      //#for r in ROWS
      {
        let own = get_vec8(buffer + $ru, k);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
    //#endfor
    buffer = $ROWSu - buffer;
    //#for s in LOADS
    if (i$s < $ROWSu * $STAGEu) {
      put_vec8(buffer + i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
    }
    //#endfor
  }
  //#else
  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //#for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  //#for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#endfor
  find_rows(tile.x, thread);
  for (var first = 0u; first < blocks; first += $STAGEu / $BLOCK_VEC8Su) {
    //#for j in STEPS
    //#for p in PAIRS
    let block_a$p_$j = load_block(at$p + first + $ju * LANES);
    let block_b$p_$j = load_block(at$p + other + first + $ju * LANES);
    //#endfor
    //#endfor
    workgroupBarrier();
    //#for s in LOADS
    {
      let i = thread + $su * THREADS;
      let r = i / ($PARTSu * $STAGEu);
      let part = i % ($PARTSu * $STAGEu);
      if (r < $ROWSu) {
        let at = x_rows[r] + first * $BLOCK_VEC8Su * 2u;
        //#if dots == floats
        // x as floats is stored by halves of vec8s, so that even one row keeps every
        // invocation busy. Not in a function, which made one row of a [6144, 4096] a tenth slower on an H200.
        //#if PACKED_FEW
        // The last stage may go beyond the row, whose weights there are another's.
        let is_there = first * $BLOCK_VEC8Su + part / 2u < COLS / 8u;
        let to = (r * 2u + part % 2u) * $STAGEu + place_in_stage(part / 2u);
        staged[to] = select(vec4<f32>(0.0), x[at + part], is_there);
        //#else
        staged[(r * 2u + part % 2u) * $STAGEu + part / 2u] = x[at + part];
        //#endif
        //#else
        // x that is rounded is stored by whole vec8s.
        put_vec8(r, part, x[at + 2u * part], x[at + 2u * part + 1u]);
        //#endif
      }
    }
    //#endfor
    workgroupBarrier();
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    {
      //#if PACKED_FEW
      let k = place_in_stage($(j * BLOCK_VEC8S)u * LANES + $cu * packed_lanes() + packed);
      //#else
      let k = ($ju * $BLOCK_VEC8Su + $cu) * LANES + lane;
      //#endif
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
      //#for r in ROWS
      {
        let own = get_vec8($ru, k);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
    //#endfor
  }
  //#endif
  // The sums of two pairs of a group at a time, or of its only one.
  //#for h in PAIR_HALVES
  //#for t in SUM_TILES
  add_lanes(
    thread,
    tile.x,
    $(t * SUMS)u,
    tile.y * GROUPS * $PAIRSu + $(2 * h)u,
    //#for s in SUMS
    vec4<f32>(
      a$(2 * h)_$(t * SUMS + s),
      b$(2 * h)_$(t * SUMS + s),
      a$(2 * h + 1)_$(t * SUMS + s),
      b$(2 * h + 1)_$(t * SUMS + s),
    ),
    //#endfor
  );
  //#endfor
  //#endfor
  //#if ONE_PAIR
  //#for t in SUM_TILES
  add_lanes(
    thread,
    tile.x,
    $(t * SUMS)u,
    tile.y * GROUPS,
    //#for s in SUMS
    vec4<f32>(a0_$(t * SUMS + s), b0_$(t * SUMS + s), 0.0, 0.0),
    //#endfor
  );
  //#endfor
  //#endif
}

// y[j, n] = sum_k normed[j / ROW_JOBS, k] * W[e, n, k] of every job j, e its expert, for few rows of the residual
// stream, all that leads to it in one dispatch: the rows are normed as by router/row_logits.wgsl, their experts are
// chosen by the logits, and what is multiplied is what expert_staged.wgsl multiplies, in the same order.
//
// The first workgroups, MAKERS of each row, make $PART logits each and post them and their share of the normed
// row in `posted`; one more a row stores the choice; the others, one per job and range of outputs, wait for
// the logits of their row. WGSL neither orders stores to different places nor lets workgroups rely on each other's
// progress. So a word of `posted` is its own flag, 0 before it is posted, and whoever has looked for the makers of
// its row PATIENCE times in vain does their work itself: the same bits, posted again. Who comes next clears
// `posted`. Slots:
//   `weights`, `dot`, `epilogue`: those of expert_staged.wgsl.
//   scores: that of router/choice.wgsl.
//   router: that of post_logits.wgsl.

//use epilogue
//use matmul/common
//use weights
//use dot
//use experts/expert_rows
//use router/choice
//use experts/few/ranks
//use experts/few/posted
//use experts/few/post_logits

override ROW_JOBS: u32; // jobs that a row has
override JOBS: u32;
override HEAD: u32; // workgroups along y before those of jobs
override PATIENCE: u32;

const FIRST = 0u;

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [jobs, OUT_COLS]
@group(0) @binding(8) var<storage, read_write> experts: array<u32>; // [rows, ROW_JOBS]
@group(0) @binding(9) var<storage, read_write> shares: array<f32>; // [rows, ROW_JOBS]

// A row that is normed: the low halves of its vec8s and then the high ones; later x, and the lanes' sums.
var<workgroup> staged: array<vec4<f32>, $VECTORS>;
var<workgroup> own_expert: u32;
var<workgroup> here: u32;

fn makers_done(row: u32, thread: u32) -> bool {
  if (thread == 0u) {
    var count = 0u;
    for (var i = 0u; i < PATIENCE && count < MAKERS; i++) {
      count = atomicLoad(&posted[row * ROW_POSTED]);
    }
    here = count;
  }
  return workgroupUniformLoad(&here) >= MAKERS;
}

fn store_choice(row: u32, thread: u32) {
  for (var e = thread; e < EXPERTS; e += CHOICE_LANES) {
    choices[e] = logit_of(posted_word(row * ROW_POSTED + KEYS + e));
  }
  workgroupBarrier();
  choose_experts(row, thread);
}

fn expert_of(job: u32, thread: u32) -> u32 {
  let rank = job % ROW_JOBS;
  if (rank >= TOP_K) {
    return EXPERTS + rank - TOP_K;
  }
  for (var e = thread; e < PADDED; e += CHOICE_LANES) {
    var key = 0u;
    if (e < EXPERTS) {
      key = posted_word(job / ROW_JOBS * ROW_POSTED + KEYS + e);
    }
    ranked[e / 4u][e % 4u] = key;
  }
  workgroupBarrier();
  for (var e = thread; e < EXPERTS; e += CHOICE_LANES) {
    if (rank_of(e) == rank) {
      own_expert = e;
    }
  }
  return workgroupUniformLoad(&own_expert);
}

// The sums of a group's lanes, in order.
fn lanes_sum(group: u32) -> vec4<f32> {
  var sum = vec4<f32>(0.0);
  for (var l = 0u; l < LANES; l += $UNROLLu) {
    //for l in UNROLL
    sum += staged[group * (LANES + 1u) + l + $lu];
    //end
  }
  return sum;
}

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let index = group.y * JOBS + group.x;
  let makers = MAKERS * (JOBS / ROW_JOBS);
  let stores = index >= makers && index < makers + JOBS / ROW_JOBS;
  let job = group.x;
  let row = select(job / ROW_JOBS, index - makers, stores);
  var part = index;
  var end = index + 1u;
  if (index >= makers) {
    if (!stores && group.y < HEAD) {
      return;
    }
    part = row * MAKERS;
    end = part + select(MAKERS, 0u, makers_done(row, thread));
  }
  for (; part < end; part++) {
    post_logits(part, thread);
  }
  if (index < makers) {
    return;
  }
  if (stores) {
    store_choice(row, thread);
    return;
  }
  let half = MATRIX_ROWS / 2u;
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let pair = ((group.y - HEAD) * GROUPS + thread / LANES) * $PAIRSu;
  let rows = rows_of(expert_of(job, thread));
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  var a$p = 0.0;
  var b$p = 0.0;
  //for j in AHEAD
  var block_a$p_$j = load_block(at$p + $ju * LANES);
  var block_b$p_$j = load_block(at$p + other + $ju * LANES);
  //end
  //end
  //for s in LOADS
  let own$s = posted_vec8(row, min(thread + $su * LANES * GROUPS, COLS / 8u - 1u));
  //end
  //for s in LOADS
  if (thread + $su * LANES * GROUPS < COLS / 8u) {
    put_vec8(0u, thread + $su * LANES * GROUPS, own$s.lo, own$s.hi);
  }
  //end
  workgroupBarrier();
  for (var first = 0u; first < blocks; first += $AHEADu * LANES) {
    //for j in AHEAD
    //for c in BLOCK_VEC8S
    {
      let k = ((first + $ju * LANES) * $BLOCK_VEC8Su + $cu * LANES) + lane;
      //for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //end
      //for t in TURNS
      if ($cu == $BLOCK_VEC8Su - 1u) {
        let next = min(first + ($AHEADu + $ju) * LANES, blocks - LANES);
        //for p in PAIRS
        block_a$p_$j = load_block(at$p + next);
        block_b$p_$j = load_block(at$p + other + next);
        //end
      }
      //end
      let own = get_vec8(0u, k);
      //for p in PAIRS
      a$p = add_dot(a$p, own, wa$p);
      b$p = add_dot(b$p, own, wb$p);
      //end
    }
    //end
    //end
  }
  //for h in PAIR_HALVES
  workgroupBarrier();
  staged[thread + thread / LANES] = vec4<f32>(a$(2 * h), b$(2 * h), a$(2 * h + 1), b$(2 * h + 1));
  workgroupBarrier();
  if (thread < GROUPS) {
    let sum = lanes_sum(thread);
    let c = ((group.y - HEAD) * GROUPS + thread) * $PAIRSu + $(2 * h)u;
    if (c < half) {
      epilogue(job, c, half, sum.xy);
    }
    if (c + 1u < half) {
      epilogue(job, c + 1u, half, sum.zw);
    }
  }
  //end
  //for o in ONE_PAIR
  workgroupBarrier();
  staged[thread + thread / LANES] = vec4<f32>(a0, b0, 0.0, 0.0);
  workgroupBarrier();
  let c = (group.y - HEAD) * GROUPS + thread;
  if (thread < GROUPS && c < half) {
    epilogue(job, c, half, lanes_sum(thread).xy);
  }
  //end
}

// What workgroups that choose the experts of their jobs themselves share: the logits, and how a row's choice is stored
// (router/choice.wgsl) for what comes next. CHOICE_LANES are the workgroup's.

//use router/choice

const NOTHING = 0xffffffffu;

override JOBS: u32;
override STRIDE: u32; // of a row of logits

@group(0) @binding(3) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(4) var<storage, read_write> experts: array<u32>; // [rows, ROW_JOBS]
@group(0) @binding(5) var<storage, read_write> shares: array<f32>; // [rows, ROW_JOBS]

// The first workgroups are the rows', each of which stores a choice: theirs is the longest way. Those of the jobs follow,
// all jobs of a range of outputs side by side. None is idle: where multiprocessors have three each, one more is a third.
fn place_of(workgroup: vec2<u32>) -> vec2<u32> {
  let rows = JOBS / ROW_JOBS;
  if (workgroup.x < rows) {
    return vec2<u32>(JOBS + workgroup.x, 0u);
  }
  let job = workgroup.x - rows;
  return vec2<u32>(job % JOBS, job / JOBS);
}

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

// As large as the logit: an integer is compared in one instruction, and one less than another is a bound.
fn key_of(logit: f32) -> u32 {
  let bits = bitcast<u32>(select(logit, 0.0, logit == 0.0)); // zeros are equal
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

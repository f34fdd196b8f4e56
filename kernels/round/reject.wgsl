// Rejection sampling of chains (Leviathan et al. 2023): with p the target's law of a row, q the one that its draft x
// was drawn by, x is accepted with probability min(1, p(x) / q(x)), else the token is drawn from
//   (p - q)+ / sum of (p - q)+
// so that it has the law p in all. chosen[r] becomes x where it is accepted, the drawn token where not; rows after that
// one are of no account, and where all are accepted the last row's choice stays: it is drawn from p with noise of its own.
// At temperature 0 nothing is done: the target's choice is the law.
//
// One workgroup per sequence of the batch.

//#import round/two_laws

var<workgroup> rejected: u32;

// The first draft that is rejected, or NONE; those before it are the choices of their rows.
fn first_rejected(slot: u32, first: u32) -> u32 {
  let sampling = slots[slot];
  let most = drafts_of(slot, first);
  for (var j = 0u; j < most; j++) {
    let x = drafts[draft_token(slot, j)];
    let drawn = q(slot, j, sampling.min_p, x);
    if (drawn == 0.0 || coin(sampling.seed, first + j) * drawn >= p(first + j, sampling.min_p, x)) {
      return j;
    }
    chosen[first + j] = x;
  }
  return NONE;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = tile.x * ROWS;
  if (lane == 0u) {
    rejected = first_rejected(rows[first].slot, first);
  }
  let j = workgroupUniformLoad(&rejected);
  if (j == NONE) {
    return;
  }
  let token = draw_rest(first + j, j, 1.0, lane);
  if (lane == 0u && token != NOT_A_TOKEN) {
    chosen[first + j] = token;
  }
}

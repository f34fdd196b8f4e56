// Block verification of chains (Sun et al. 2024, arXiv 2403.10444): drafts are kept or not as a whole, which keeps at
// least as many as one by one. Of drafts x[1] .. x[n], with p[i] and q[i] the laws of x[i] after those before it,
//   share[0] = 1, share[i] = min(1, share[i - 1] * p[i](x[i]) / q[i](x[i]))
//   rest[i] = sum of (share[i] * p[i + 1] - q[i + 1])+ over the tokens
//   keep[i] = rest[i] / (rest[i] + 1 - share[i]) for i < n, keep[n] = share[n]
// The longest i whose coin is below keep[i] is kept, 0 if there is none; then a token is drawn from
//   (share[i] * p[i + 1] - q[i + 1])+, normed.
// chosen as reject.wgsl leaves it: where all are kept the last row's choice stays. At temperature 0 nothing is done.
//
// Coins behind the first draft that is not kept are looked at, and so are the drafts there: noise must not come again in the
// next round. `slots` are those of round_slots.wgsl.
//
// One workgroup per sequence of the batch.

//#import round/two_laws
//#import lib/workgroup_sum

alias Sum = f32;

var<workgroup> count: u32;
var<workgroup> next_share: f32;

fn rest_of(row: u32, j: u32, share: f32, lane: u32) -> f32 {
  let slot = rows[row].slot;
  let min_p = slots[slot].min_p;
  var sum = 0.0;
  for (var i = lane; i < VOCAB; i += LANES) {
    sum += max(share * p(row, min_p, i) - q(slot, j, min_p, i), 0.0);
  }
  return total(sum, lane);
}

// share[j + 1]
fn share_after(row: u32, j: u32, share: f32) -> f32 {
  let slot = rows[row].slot;
  let min_p = slots[slot].min_p;
  let x = drafts[draft_token(slot, j)];
  let drawn = q(slot, j, min_p, x);
  if (drawn == 0.0) {
    return 0.0;
  }
  let wanted = share * p(row, min_p, x);
  return select(wanted / drawn, 1.0, wanted >= drawn);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = tile.x * ROWS;
  let slot = rows[first].slot;
  if (lane == 0u) {
    count = drafts_of(slot, first);
  }
  let most = workgroupUniformLoad(&count);
  var share = 1.0;
  var kept = 0u;
  var kept_share = 1.0;
  for (var j = 0u; j < most; j++) {
    if (lane == 0u) {
      next_share = share_after(first + j, j, share);
    }
    share = workgroupUniformLoad(&next_share);
    var keep = share;
    if (j + 1u < most && share < 1.0) {
      let rest = rest_of(first + j + 1u, j + 1u, share, lane);
      keep = rest / (rest + 1.0 - share);
    }
    if (coin(slots[slot].seed, first + j) < keep) {
      kept = j + 1u;
      kept_share = share;
    }
  }
  if (lane == 0u) {
    for (var j = 0u; j < kept; j++) {
      chosen[first + j] = drafts[draft_token(slot, j)];
    }
    count = kept;
  }
  let end = workgroupUniformLoad(&count);
  if (end >= most) {
    return;
  }
  let token = draw_rest(first + end, end, kept_share, lane);
  if (lane == 0u && token != NOT_A_TOKEN) {
    chosen[first + end] = token;
  }
}

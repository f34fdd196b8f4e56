// Walks each lane's chain while `accepts` says so: accept.wgsl and accept_simulated.wgsl hold that
// rule. Commits the accepted tokens, makes the last choice (the bonus) the new root, writes the rows
// of draft-extend (token one ahead of its hidden row) and the lane's result for the host.
//
// A lane whose rows are padding emits nothing. An emitted token among the slot's stops sets its limit
// to 0, so that all further rounds are padding; NOT_A_TOKEN (broken logits) always stops.
//
// One invocation per lane of the batch.

override NUM_STEPS: u32;

const NOT_A_TOKEN = 0xffffffffu; // of choose.wgsl
const RESULT_WORDS = 20u; // tokens emitted, then NUM_STEPS + 1 choices from word 1, NUM_STEPS drafts from word 11

@group(0) @binding(0) var<storage, read> lanes: array<u32>; // [batch] slot of each lane
@group(0) @binding(1) var<storage, read> rows: array<Row>; // [batch * (NUM_STEPS + 1)] verify rows
@group(0) @binding(2) var<storage, read> chosen: array<u32>; // [batch * (NUM_STEPS + 1)]
@group(0) @binding(3) var<storage, read> drafts: array<u32>; // [slots, MAX_STEPS]
@group(0) @binding(4) var<storage, read_write> slots: array<Slot>; // [slots]
@group(0) @binding(5) var<storage, read_write> extend: array<Row>; // [batch * (NUM_STEPS + 1)]
@group(0) @binding(6) var<storage, read_write> last: array<u32>; // [batch] row of the bonus
@group(0) @binding(7) var<storage, read_write> results: array<u32>; // [batch, RESULT_WORDS]

fn stops(slot: u32, token: u32) -> bool {
  let same = vec4<u32>(token);
  return token == NOT_A_TOKEN || any(slots[slot].stops_lo == same) || any(slots[slot].stops_hi == same);
}

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let lane = tile.x;
  let slot = lanes[lane];
  let first = lane * (NUM_STEPS + 1u);
  let result = lane * RESULT_WORDS;
  if (rows[first].live == 0u) {
    for (var j = 0u; j <= NUM_STEPS; j++) {
      extend[first + j] = rows[first + j];
    }
    last[lane] = first;
    results[result] = 0u;
    return;
  }
  var accepted = 0u;
  while (accepted < NUM_STEPS && accepts(slot, first + accepted, accepted)) {
    accepted++;
  }
  results[result] = accepted + 1u;
  for (var j = 0u; j <= NUM_STEPS; j++) {
    results[result + 1u + j] = chosen[first + j];
    if (j < NUM_STEPS) {
      results[result + 11u + j] = drafts[slot * MAX_STEPS + j];
    }
    extend[first + j] = rows[first + j];
    extend[first + j].token = chosen[first + j];
    extend[first + j].live = u32(j <= accepted);
    if (j <= accepted && stops(slot, chosen[first + j])) {
      slots[slot].limit = 0u;
    }
  }
  last[lane] = first + accepted;
  slots[slot].length += accepted + 1u;
  slots[slot].root = chosen[first + accepted];
}

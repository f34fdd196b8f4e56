// How many drafts of each sequence are verified, VerifyBudget of src/speculate/policy.ts:
//   s_j = product over k <= j of sigmoid(slope logit(c_k) + intercepts[k]), c_k the draft's confidence in draft k
// The drafts with the `drafts` largest s of all sequences are verified, in a tie the first by (sequence, position). s
// falls with j, so those of a sequence are a prefix. Left out are drafts from the first with c < least on, those past
// the sequence's `most`, and all of a sequence whose verify rows would be padding. Confidences are clamped to
// [EPSILON, 1 - EPSILON], and what is no probability counts as 0: no s is NaN.
//
// One workgroup in all. tests/reference/allocation.ts is the same rule in float64.

//#import lib/rows
//#import lib/drafts

override ROWS: u32; // most verify rows of a sequence

const LANES = 128u; // the largest batch
const MAX_STEPS = 16u; // src/speculate/round_shape.ts
const EPSILON = 1e-6;
const MAX_ODDS = 30.0; // |log-odds| beyond make no difference
const LEFT_OUT = -1.0;

// src/engine/device/packed/budget.ts writes it.
struct Budget {
  drafts: u32,
  slope: f32,
  least: f32,
  zero: u32,
  intercepts: array<f32, MAX_STEPS>,
  most: array<u32, LANES>, // drafts of each sequence of the batch
}

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> budget: Budget;
@group(0) @binding(3) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

var<workgroup> survivals: array<f32, LANES * MAX_STEPS>; // s, or LEFT_OUT, [batch, ROWS - 1]
var<workgroup> counts: array<atomic<u32>, LANES>;

// Drafts of the sequence that may be verified.
fn most_of(place: u32, slot: u32) -> u32 {
  if (slot == NO_SLOT || slots[slot].length + ROWS > slots[slot].limit) {
    return 0u;
  }
  return min(ROWS - 1u, budget.most[place]);
}

// Compares bits, since a compiler may assume that nothing is NaN.
fn confidence(slot: u32, k: u32) -> f32 {
  let bits = drafts[draft_confidence(slot, k)];
  return bitcast<f32>(select(0u, bits, bits <= 0x3f800000u));
}

fn chance(confidence: f32, k: u32) -> f32 {
  let c = clamp(confidence, EPSILON, 1.0 - EPSILON);
  let odds = budget.slope * log(c / (1.0 - c)) + budget.intercepts[k];
  return min(1.0, 1.0 / (1.0 + exp(-clamp(odds, -MAX_ODDS, MAX_ODDS))));
}

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
  let batch = arrayLength(&batch_slots);
  let depth = ROWS - 1u;
  var slot = NO_SLOT;
  atomicStore(&counts[lane], 0u);
  if (lane < batch) {
    slot = batch_slots[lane];
    var most = most_of(lane, slot);
    var survival = 1.0;
    for (var k = 0u; k < depth; k++) {
      var s = LEFT_OUT;
      if (k < most) {
        let c = confidence(slot, k);
        if (c < budget.least) {
          most = k;
        } else {
          survival *= chance(c, k);
          s = survival;
        }
      }
      survivals[lane * depth + k] = s;
    }
  }
  workgroupBarrier();
  let count = batch * depth;
  for (var at = lane; at < count; at += LANES) {
    let own = survivals[at];
    if (own < 0.0) {
      continue;
    }
    var rank = 0u;
    for (var other = 0u; other < count && rank < budget.drafts; other++) {
      let its = survivals[other];
      rank += u32(its > own || (its == own && other < at));
    }
    if (rank < budget.drafts) {
      atomicAdd(&counts[at / depth], 1u);
    }
  }
  workgroupBarrier();
  if (slot != NO_SLOT) {
    drafts[draft_count(slot)] = atomicLoad(&counts[lane]);
  }
}

// The draft's top-1 token in the target's vocabulary:
//   draft token STEP of slot batch_slots[b] = i + offsets[i], i = the token of row b's largest logit.
// offsets is d2t of EAGLE-3 (target id minus draft id), zeros where the vocabulary is not reduced.
// Logits that are no numbers give some token: the target will not agree.
//
// Partial softmaxes also give the draft's confidence in its choice, the highest probability of its distribution without
// temperature: 1 / sum of exp(logit - M), M the largest logit; 0 where logits are no numbers. With NEXT, the row that
// feeds the token at the next draft level is written too; a place without a slot keeps its padding.
//
// One workgroup per place in the batch.

//#import lib/rows
//#import lib/drafts
//#import lib/partial_$partial
//#import lib/workgroup_partial
//#if NEXT
//#import lib/draft_row
//#endif

override PARTIALS: u32; // parts of a row's columns
override STEP: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> partials: array<Partial>; // [batch, PARTIALS]
@group(0) @binding(1) var<storage, read> offsets: array<i32>; // [draft vocabulary]
@group(0) @binding(2) var<storage, read> batch_slots: array<u32>; // [batch] slot of each place, or NO_SLOT
@group(0) @binding(3) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl
//#if NEXT
@group(0) @binding(4) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(5) var<storage, read_write> rows: array<Row>; // [batch]
//#endif

//#if partial == softmax
fn store_confidence(slot: u32, all: Partial) {
  let probability = min(1.0, 1.0 / bitcast<f32>(all.z));
  let sound = all.x != BROKEN && all.x > NOTHING;
  drafts[draft_confidence(slot, STEP)] = select(0u, bitcast<u32>(probability), sound);
}
//#else
fn store_confidence(slot: u32, all: Partial) {}
//#endif

//#if NEXT
fn store_next_row(place: u32, slot: u32, token: u32) {
  rows[place] = draft_row(slot, token);
}
//#else
fn store_next_row(place: u32, slot: u32, token: u32) {}
//#endif

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var all = NO_PARTIAL;
  for (var i = lane; i < PARTIALS; i += 4u * LANES) {
    //#for j in 4
    let partial$j = partials[tile.x * PARTIALS + min(i + $ju * LANES, PARTIALS - 1u)];
    //#endfor
    //#for j in 4
    all = joined(all, select(NO_PARTIAL, partial$j, i + $ju * LANES < PARTIALS));
    //#endfor
  }
  all = workgroup_joined(all, lane);
  let slot = batch_slots[tile.x];
  if (lane != 0u || slot == NO_SLOT) {
    return;
  }
  let token = u32(i32(all.y) + offsets[all.y]);
  drafts[draft_token(slot, STEP)] = token;
  store_confidence(slot, all);
  store_next_row(tile.x, slot, token);
}

// The draft's confidence in its choice, the highest probability of its distribution without temperature:
//   1 / sum of exp(logit - M), M the largest logit; 0 where logits are no numbers.

//use partial/partial_softmax

fn tell(slot: u32, all: Partial) {
  let probability = min(1.0, 1.0 / bitcast<f32>(all.z));
  let sound = all.x != BROKEN && all.x > NOTHING;
  drafts[draft_confidence(slot, STEP)] = select(0u, bitcast<u32>(probability), sound);
}

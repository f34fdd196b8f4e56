// Draft `step` of the slot is accepted with probability P<step>, given that the ones before it were:
// u < P<step>, u = 24 bits of hash32(seed, position of the drafted token, PURPOSE) / 2^24. What the
// target chose has no say, so the text is worthless and only the time is true. A rule of
// accept_chain.wgsl; tests/reference/simulated.ts is the same on the host, to the bit.
//
// Overrides and no buffer: accept_commit.wgsl binds the 8 storage buffers that any adapter has.

//use fragments/noise

//for j in STEPS
override P$j: f32;
//end

const PURPOSE = 0xacce97u; // in the place of a token id, which stays below 2^22

fn accepts(slot: u32, row: u32, step: u32) -> bool {
  var probability = array<f32, $STEPS>(
//for j in STEPS
    P$j,
//end
  );
  let bits = hash32(slots[slot].seed, rows[row].position + 1u, PURPOSE);
  return f32(bits >> 8u) * 0x1p-24 < probability[step];
}

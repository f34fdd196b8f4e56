// Draft `step` of the slot is accepted with probability P<step>, given that the ones before it were:
// u < P<step>, u = 24 bits of hash32(seed, position of the drafted token, PURPOSE) / 2^24. What the
// target chose has no say, so the text is worthless and only the time is true. The rule of
// accept_commit.wgsl; src/speculate/simulated.ts is the same on the host, to the bit.
//
// Overrides and no buffer: accept_commit.wgsl binds the 8 storage buffers that any adapter has.

override P0: f32;
override P1: f32;
override P2: f32;
override P3: f32;
override P4: f32;
override P5: f32;
override P6: f32;
override P7: f32;

const PURPOSE = 0xacce97u; // in the place of a token id, which stays below 2^22

fn accepts(slot: u32, row: u32, step: u32) -> bool {
  var probability = array<f32, MAX_STEPS>(P0, P1, P2, P3, P4, P5, P6, P7);
  let bits = hash32(slots[slot].seed, rows[row].position + 1u, PURPOSE);
  return f32(bits >> 8u) * 0x1p-24 < probability[step];
}

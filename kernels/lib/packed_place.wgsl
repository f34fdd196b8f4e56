// Of rows that are packed for a few lanes neighbouring lanes read vec8s that are 8 apart, or pairs of them. As 16 bytes each,
// all would begin in the same banks of workgroup memory.

// Where vec8 e is stored, so that any eight lanes beside each other, of which two are packed together, read eight banks.
fn place_in_stage(e: u32) -> u32 {
  return e ^ (((e >> 3u) & 3u) << 1u);
}

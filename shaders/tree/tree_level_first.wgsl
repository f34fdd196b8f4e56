// The candidates of level 0: what the last forward of the head found most probable for the slot. They all feed the
// slot's own hidden row.

override KEPT: u32; // tokens kept for each slot, WIDTH or more

fn candidate(place: u32, slot: u32, c: u32) -> vec2<u32> {
  return top[slot * KEPT + c];
}

fn hidden_row(place: u32, slot: u32, parent: u32) -> u32 {
  return slot;
}

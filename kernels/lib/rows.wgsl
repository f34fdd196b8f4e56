// What the kernels share about rows and slots; lib/rows.ts and src/model/device_layout.ts mirror the word offsets.

//#import lib/constants

// One row of a forward pass.
struct Row {
  token: u32,
  position: u32, // in the text: for rope and for the noise; the row sees logical cells 0 .. position
  slot: u32,
  cell: u32, // where its key and value go, counted in tokens from the start of the slot's pages
  base: u32, // logical cells below are stored at the cell of the same number, the others on the path
  live: u32, // 0: padding; computes, but stores no key and no value
  zero: vec2<u32>,
  path: vec4<u32>, // byte i: logical cell base + i is stored at cell base + this, for base + i <= position
}

// The row of a token that follows the ones in the cells before its own: its path is empty.
fn chain_row(token: u32, slot: u32, cell: u32) -> Row {
  return Row(token, cell, slot, cell, cell + 1u, 1u, vec2<u32>(), vec4<u32>());
}

// One sequence in flight.
struct Slot {
  length: u32, // tokens whose keys and values are final
  pending: u32, // the newest token; its key and value are not computed yet
  seed: u32,
  top_k: u32, // 0 = off
  temperature: f32, // 0 = greedy
  top_p: f32,
  min_p: f32,
  limit: u32, // cells that it owns; a round that might need more stores nothing; 0 once it has stopped
  stops_lo: vec4<u32>, // token ids that end it, NOT_A_TOKEN where there are fewer than eight
  stops_hi: vec4<u32>,
  most: u32, // tokens that its text may have, prompt included: with the last of them it has stopped
}

const PAGE = 16u; // tokens a KV page

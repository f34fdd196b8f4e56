// What the kernels share about rows and slots; src/model/plan/rows_layout.ts mirrors the word offsets.

// One row of a forward pass.
struct Row {
  token: u32,
  position: u32, // for rope and for the noise
  slot: u32,
  cell: u32, // where its key and value go, counted in tokens from the sequence's start
  base: u32, // cells below are visible; from there on a bit of the mask decides
  mask_lo: u32, // bit j: cell base + j is an ancestor (or the row itself)
  mask_hi: u32,
  live: u32, // 0: padding; computes, but stores no key and no value
}

// One sequence in flight.
struct Slot {
  length: u32, // tokens whose keys and values are final
  root: u32, // the newest token; its key and value are not computed yet
  seed: u32,
  top_k: u32, // 0 = off
  temperature: f32, // 0 = greedy
  top_p: f32,
  min_p: f32,
  limit: u32, // cells that it owns; a round that might need more stores nothing; 0 once it has stopped
  stops_lo: vec4<u32>, // token ids that end it, NOT_A_TOKEN where there are fewer than eight
  stops_hi: vec4<u32>,
}

const PAGE = 16u; // tokens a KV page
const NO_SLOT = 0xffffffffu; // an unused lane of the batch

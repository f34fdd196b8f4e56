// Which tokens adjust.wgsl leaves: those whose bit is set in the row's mask.

override MASK_WORDS: u32; // of a row: ceil(VOCAB / 32)

@group(0) @binding(2) var<storage, read> masks: array<u32>; // [rows, MASK_WORDS] bit t % 32 of word t / 32: token t

fn allowed(row: u32, token: u32) -> bool {
  return ((masks[row * MASK_WORDS + token / 32u] >> (token % 32u)) & 1u) == 1u;
}

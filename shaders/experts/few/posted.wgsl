// What the workgroups of routed_experts.wgsl tell each other: [rows, ROW_POSTED] words, of each row the number of
// makers that are done, from KEYS on the keys of its logits, and from NORMED on the normed row by
// number within a vec8, [8, COLS / 8], the bits turned over. 0: not posted yet.

//use fragments/vec8

override ROW_POSTED: u32; // words: NORMED + COLS
override NORMED: u32; // KEYS + EXPERTS, or more

const KEYS = 32u;

@group(0) @binding(7) var<storage, read_write> posted: array<atomic<u32>>;

// Not one of the NaNs is 0.
fn post(at: u32, word: u32) {
  atomicStore(&posted[at], max(word, 1u));
}

// A word whose maker is done. It is on its way at most.
fn posted_word(at: u32) -> u32 {
  var word = atomicLoad(&posted[at]);
  while (word == 0u) {
    word = atomicLoad(&posted[at]);
  }
  return word;
}

fn float_of(word: vec4<u32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(~word);
}

fn posted_vec8(row: u32, e: u32) -> Vec8 {
  let at = row * ROW_POSTED + NORMED + e;
  //for c in EIGHT
  let word$c = atomicLoad(&posted[at + $cu * (COLS / 8u)]);
  //end
  var lo = vec4<u32>(word0, word1, word2, word3);
  var hi = vec4<u32>(word4, word5, word6, word7);
  if (any(lo == vec4<u32>(0u)) || any(hi == vec4<u32>(0u))) {
    for (var c = 0u; c < 4u; c++) {
      lo[c] = posted_word(at + c * (COLS / 8u));
      hi[c] = posted_word(at + (c + 4u) * (COLS / 8u));
    }
  }
  return Vec8(float_of(lo), float_of(hi));
}

// The logit of a key of ranks.wgsl.
fn logit_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key ^ 0x80000000u, key >= 0x80000000u));
}

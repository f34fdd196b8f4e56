// How relay/read.wgsl stores words that came, for products of integers: eights of them are rounded together, when all are
// there. Ranges of quantized matrices are whole (relay.ts), so nothing is stored behind one, and no barrier is needed for it.
// Neighbours store components of one vec4: WGSL does not promise that those are apart, Vulkan's drivers, the only
// ones with relays, store them alone.

var<workgroup> words_taken: array<vec4<f32>, $(2 * STAGE)>;

fn hold_word(i: u32, word: u32) {
  words_taken[i / 4u][i % 4u] = bitcast<f32>(word);
}

fn take_words(thread: u32) {
  for (var e = thread; e < $STAGEu; e += THREADS) {
    put_vec8(0u, e, words_taken[2u * e], words_taken[2u * e + 1u]);
  }
}

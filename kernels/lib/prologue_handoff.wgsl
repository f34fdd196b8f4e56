// Prologue of matmul_resident.wgsl: other workgroups of the dispatch make x, one row, while this one waits
// (lib/handoff_statements.wgsl); a range of words is one of k. x itself is not read, its size gives the number of rows,
// which is one.

//#import lib/handoff
//#if dots == floats
// Products of floats keep the words as they are.

fn keep_word(i: u32, word: u32) {
  put_float(i, bitcast<f32>(word));
}

fn take_words(thread: u32) {}
//#else
// Products of integers round eight words together, once all are there. Ranges of quantized matrices are whole
// (handoff.ts), so nothing is stored behind a range that would need a barrier. Neighbouring invocations store different
// components of one vec4. WGSL does not promise that such stores are independent; Vulkan's drivers, the only ones with
// handoffs, store each component alone.

var<workgroup> words_taken: array<vec4<f32>, $(2 * STAGE)>;

fn keep_word(i: u32, word: u32) {
  words_taken[i / 4u][i % 4u] = bitcast<f32>(word);
}

fn take_words(thread: u32) {
  for (var e = thread; e < $STAGEu; e += THREADS) {
    put_vec8(0u, e, words_taken[2u * e], words_taken[2u * e + 1u]);
  }
}
//#endif

// Called first, with the workgroups along y and z.
fn handoff_begin(y: u32, z: u32) {
  readers = y;
}

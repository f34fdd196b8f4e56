// What relay/read.wgsl declares; a range of words is one of k. x itself is not read, its size gives the number of rows,
// which is one. Slot:
//   words: how words are put into workgroup memory: `fn hold_word(i, word)` and, when all were, `fn take_words(thread)`
//     (float_words.wgsl, rounded_words.wgsl).

//use matmul/relay/counts
//use words

// Called first, with the workgroups along y and z.
fn relay_begin(y: u32, z: u32) {
  readers = y;
}

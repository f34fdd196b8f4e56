// How relay/read.wgsl stores words that came, for products of floats: as they are.

fn hold_word(i: u32, word: u32) {
  put_float(i, bitcast<f32>(word));
}

fn take_words(thread: u32) {}

// The sums that normed.wgsl adds, where other workgroups of the dispatch make them (read.wgsl): all are one range of words.

//use matmul/relay/counts

var<workgroup> sums: array<vec4<f32>, RANGE / 4u>; // [$ADDENDS, COLS / 4]

// Called first, with the workgroups along y and z.
fn relay_begin(y: u32, z: u32) {
  readers = y * z;
}

// As in rounded_words.wgsl, neighbours store components of one vec4.
fn hold_word(i: u32, word: u32) {
  sums[i / 4u][i % 4u] = bitcast<f32>(word);
}

fn take_words(thread: u32) {}

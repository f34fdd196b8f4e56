// The output of a matmul that other workgroups of the same dispatch wait for, word by word. 0 is no word yet: a number
// that is 0 goes as -0, which sums that begin with 0 cannot tell from it. No order between words is relied on.

@group(0) @binding(2) var<storage, read_write> out: array<atomic<u32>>; // [SPLIT_K, OUT_COLS], and what relay/counts.wgsl counts

fn put_word(at: u32, value: f32) {
  let word = bitcast<u32>(value);
  atomicStore(&out[at], select(word, 0x80000000u, word == 0u));
}

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}

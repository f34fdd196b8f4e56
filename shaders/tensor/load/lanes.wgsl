// Quantized weights of matmuls on matrix units: k goes in the order in which they are stored, and so does x.
// A block of a row has $VEC8S vec8s of it, LANES vec8s apart (weights/quantize.wgsl).

//use matmul/part/packed_all

override LANES: u32;

// Where the first vec8 of a row's block is. Blocks a and b, a power of two above b dividing a:
// vec8_of(a + b) = vec8_of(a) + vec8_of(b).
fn vec8_of(block: u32) -> u32 {
  return block / LANES * LANES * $VEC8Su + block % LANES;
}

// The vec8 in chunk c of a stage whose first block is the row's first.
fn in_stage(chunk: u32) -> u32 {
  return vec8_of(chunk / $VEC8Su) + chunk % $VEC8Su * LANES;
}

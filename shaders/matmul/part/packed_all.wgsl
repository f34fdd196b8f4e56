// Quantized rows that are packed for the invocations that share an output.

fn packed_lanes() -> u32 {
  return LANES;
}

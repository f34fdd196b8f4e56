// How floats.wgsl and whole.wgsl read x: of each row the low halves of its vec8s and then the high
// ones, so that neighbouring lanes read neighbouring vectors.

fn get_vec8(row: u32, e: u32) -> X {
  return X(staged[row * 2u * $STAGEu + e], staged[(row * 2u + 1u) * $STAGEu + e]);
}

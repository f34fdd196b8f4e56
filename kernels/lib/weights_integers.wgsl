// What formats of signed integers have in common: w = q * scale.

//#import lib/vec8

// q as floats.
struct Whole {
  vec8: Vec8,
  scale: f32,
}

// q, or 16 q with a sixteenth of the scale, as signed bytes of the low and the high half.
struct Packed {
  lo: u32,
  hi: u32,
  scale: f32,
}

// Quantized rows of a width that leaves few whole lanes: they are packed for those, and more share an output.

fn packed_lanes() -> u32 {
  return $PACKED_LANESu;
}

// The most probable tokens of row r go to place r.

fn place(row: u32) -> u32 {
  return row;
}

fn first(place: u32, token: u32, probability: f32) {}

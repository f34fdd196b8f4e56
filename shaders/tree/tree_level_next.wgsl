// The candidates of a further level: WIDTH of each row of the forward before.

fn candidate(place: u32, slot: u32, c: u32) -> vec2<u32> {
  return top[place * WIDTH * WIDTH + c];
}

fn hidden_row(place: u32, slot: u32, parent: u32) -> u32 {
  return place * WIDTH + parent;
}

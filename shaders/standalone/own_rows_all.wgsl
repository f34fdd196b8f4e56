// Every row.

fn source(r: u32) -> u32 {
  return r;
}

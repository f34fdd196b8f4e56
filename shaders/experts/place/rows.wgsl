// Where blocks of weights lie that are row after row.

const STEP = 1u; // from a block of a row to the next

fn column_of(at: u32) -> u32 {
  return at / BLOCKS;
}

fn block_of(at: u32) -> u32 {
  return at % BLOCKS;
}

fn begin_of(row: u32, block: u32, range: u32) -> u32 {
  return row * range + block;
}

// Where blocks of weights lie that are in the order of tile_weights.wgsl: GROUP rows together, so that lanes side
// by side read one block of each of them.

const STEP = GROUP; // from a block of a row to the next

fn column_of(at: u32) -> u32 {
  return at / (GROUP * BLOCKS) * GROUP + at % GROUP;
}

fn block_of(at: u32) -> u32 {
  return at / GROUP % BLOCKS;
}

fn begin_of(row: u32, block: u32, range: u32) -> u32 {
  return (row / GROUP * range + block) * GROUP + row % GROUP;
}

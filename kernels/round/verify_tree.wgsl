// The rows of a verify forward of trees: per sequence its pending token and then its drafts, each a
// child of an earlier row. Padding as in verify_rows.wgsl.
//
//   position = length + depth, cell = length + row, base = length + line
//
// where `line` is the first level of the row's path whose row number differs from the level: ancestors before it are
// stored at their logical cells, as in a chain. Path byte i is the number of the row at level line + i, minus line.
//
// One invocation per row; row = b * ROWS + row of the sequence.

//#import lib/rows
//#import lib/drafts

override ROWS: u32; // a sequence

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [batch * ROWS]

fn parent(slot: u32, row: u32) -> u32 {
  return drafts[draft_parent(slot, row - 1u)];
}

fn depth_of(slot: u32, row: u32) -> u32 {
  var depth = 0u;
  for (var at = row; at > 0u; at = parent(slot, at)) {
    depth++;
  }
  return depth;
}

// Returns depth + 1 where all levels are stored at their logical cells.
fn line_of(slot: u32, row: u32, depth: u32) -> u32 {
  var line = depth + 1u;
  var level = depth;
  for (var at = row; at > level; at = parent(slot, at)) {
    line = level;
    level--;
  }
  return line;
}

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let slot = batch_slots[tile.x / ROWS];
  let row = tile.x % ROWS;
  if (slot == NO_SLOT || slots[slot].length + ROWS > slots[slot].limit) {
    rows[tile.x] = Row();
    return;
  }
  let length = slots[slot].length;
  if (row == 0u) {
    rows[tile.x] = chain_row(slots[slot].pending, slot, length);
    return;
  }
  if (row > drafts[draft_count(slot)]) {
    rows[tile.x] = Row();
    return;
  }
  let depth = depth_of(slot, row);
  let line = line_of(slot, row, depth);
  var path = vec4<u32>();
  var at = row;
  for (var level = depth; level >= line; level--) {
    let i = level - line;
    path[i / 4u] |= (at - line) << (8u * (i % 4u));
    at = parent(slot, at);
  }
  var made = chain_row(drafts[draft_token(slot, row - 1u)], slot, length + depth);
  made.cell = length + row;
  made.base = length + line;
  made.path = path;
  rows[tile.x] = made;
}

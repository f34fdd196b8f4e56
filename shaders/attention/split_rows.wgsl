// Statements of attention.wgsl, and of attention_shared.wgsl, whose workgroups are numbered alike: of the workgroup
// `tile`, the `count` rows from `row` on, its `split` and the split's `first` cell, its `kv_head`, the rows' `slot`, the
// cells from `begin` up to `end` that some of them see, and `mine`, a bit for each row that is summed here. `alone`: a
// row's own workgroup, for a split with cells of its path. Returns where no row sees a cell of the split. Slot:
//   row_seen: a statement for each row `own`, the $r-th.

let tiles = (PER_SLOT + TILE - 1u) / TILE;
let within = tile.x % tiles * TILE;
var row = tile.x / tiles * PER_SLOT + within;
var count = min(TILE, PER_SLOT - within);
let before = PATHS * PATH_GROUPS;
var split = tile.z - before;
if (WINDOW != 0xffffffffu) {
  var earliest = 0xffffffffu;
  //for r in TILE
  {
    let own = rows[FIRST_ROW + row + min($ru, count - 1u)];
    earliest = select(earliest, min(earliest, visible_begin(own)), own.live == 1u);
  }
  //end
  split += select(earliest / SPLIT_CELLS, 0u, earliest == 0xffffffffu);
}
let alone = PATHS == 1u && (TILE == 1u || tile.z < before);
if (tile.z < before) {
  if (tile.z / 2u >= count) {
    return;
  }
  row += tile.z / 2u;
  count = 1u;
  split = rows[FIRST_ROW + row].base / SPLIT_CELLS + tile.z % 2u;
}
let kv_head = tile.y / HEAD_TILES;
let first = split * SPLIT_CELLS;

var slot = 0u;
var begin = 0xffffffffu;
var end = 0u;
var mine = 0u; // bit r: row r is summed here
//for r in TILE
{
  let own = rows[FIRST_ROW + row + min($ru, count - 1u)];
  let elsewhere = PATHS == 1u && TILE > 1u && scattered(own, first + SPLIT_CELLS) != alone;
  let here = own.live == 1u && $ru < count && !elsewhere;
  slot = select(slot, own.slot, here);
  begin = select(begin, min(begin, visible_begin(own)), here);
  end = select(end, max(end, visible_end(own)), here);
  mine |= u32(here) << $ru;
  //use row_seen
}
//end
if (first >= end || first + SPLIT_CELLS <= begin) {
  return;
}

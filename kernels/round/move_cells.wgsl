// Moves the keys, values and features of accepted rows to their logical cells, in every buffer: those of the j-th
// accepted row of a sequence from the cell of its verify row to cell length + j. Accepted rows are in order, and each
// is stored at that cell or behind it, so moving them one by one overwrites nothing that is still to be moved.
//
// One invocation per word of a cell and sequence, for all kept rows of it.

//#import lib/rows

override ROWS: u32; // verify rows a sequence
override KEPT_ROWS: u32; // extend rows a sequence
override KEPT: u32; // where the kept rows begin in `last`
override HEADS: u32; // cells of a page are stored together for each of these
override WORDS: u32; // u32 words of a cell and head
override TABLE_PAGES: u32; // pages per slot in the block table

@group(0) @binding(5) var<storage, read> extend: array<Row>; // [batch * KEPT_ROWS], at their logical cells
@group(0) @binding(6) var<storage, read> last: array<u32>; // from KEPT on: verify row of each extend row
@group(0) @binding(7) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
//#for n in BUFFERS
@group(0) @binding($n) var<storage, read_write> cells$n: array<u32>; // [pages, HEADS, PAGE, WORDS]
//#endfor

fn address(slot: u32, cell: u32, head: u32) -> u32 {
  let page = pages[slot * TABLE_PAGES + cell / PAGE];
  return ((page * HEADS + head) * PAGE + cell % PAGE) * WORDS;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= HEADS * WORDS) {
    return;
  }
  let head = id.x / WORDS;
  let word = id.x % WORDS;
  let first = id.y * KEPT_ROWS;
  for (var j = 1u; j < KEPT_ROWS; j++) {
    let row = extend[first + j];
    if (row.live == 0u) {
      return;
    }
    let offset = last[KEPT + first + j] - id.y * ROWS; // from the pending token's cell
    if (offset == j) {
      continue;
    }
    let source = address(row.slot, row.cell - j + offset, head) + word;
    let to = address(row.slot, row.cell, head) + word;
    //#for n in BUFFERS
    cells$n[to] = cells$n[source];
    //#endfor
  }
}

// The rows of a causal draft, which stores each token at its own cell: an EAGLE head's rows, whose tokens
// are one ahead of their cells, one cell further on. Padding where the slot does not own that cell.
//
// One invocation per row.

//#import lib/rows
//#if LAST
// Of each sequence of the batch its last one.

@group(0) @binding(3) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(4) var<storage, read> last: array<u32>; // [batch]

fn source(r: u32) -> u32 {
  return select(last[r], NO_ROW, batch_slots[r] == NO_SLOT);
}
//#else
// Every row.

fn source(r: u32) -> u32 {
  return r;
}
//#endif

const NO_ROW = 0xffffffffu;

@group(0) @binding(0) var<storage, read> rows: array<Row>;
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read_write> own: array<Row>;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let at = source(tile.x);
  if (at == NO_ROW || rows[at].cell + 1u >= slots[rows[at].slot].limit) {
    own[tile.x] = Row();
    return;
  }
  var row = rows[at];
  row.cell++;
  row.position++;
  row.base++;
  own[tile.x] = row;
}

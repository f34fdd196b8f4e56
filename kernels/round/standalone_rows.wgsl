// The rows of a standalone draft model, which stores the key and value of each token at the token's own cell. The rows
// of an EAGLE head have a token that is one ahead of their cell, so each row goes one cell further on:
//   out[r] = rows[source] with cell, position and base one higher, source = r, or with LAST the last row of sequence r
// It is padding where the slot does not own that cell, or where there is no sequence.
//
// One invocation per row.

//#import lib/rows

@group(0) @binding(0) var<storage, read> rows: array<Row>;
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read_write> out: array<Row>;
//#if LAST
@group(0) @binding(3) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(4) var<storage, read> last: array<u32>; // [batch] last row of each sequence
//#endif

fn source(r: u32) -> u32 {
  //#if LAST
  return select(last[r], NO_ROW, batch_slots[r] == NO_SLOT);
  //#else
  return r;
  //#endif
}

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let at = source(tile.x);
  if (at == NO_ROW || rows[at].cell + 1u >= slots[rows[at].slot].limit) {
    out[tile.x] = Row();
    return;
  }
  var row = rows[at];
  row.cell++;
  row.position++;
  row.base++;
  out[tile.x] = row;
}

// Of each sequence of the batch its last one.

@group(0) @binding(3) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(4) var<storage, read> last: array<u32>; // [batch]

fn source(r: u32) -> u32 {
  return select(last[r], NO_ROW, batch_slots[r] == NO_SLOT);
}

// The further level's row after draft_choose. A lane without a slot keeps the padding it has.

//use fragments/draft_row

@group(0) @binding(4) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(5) var<storage, read_write> rows: array<Row>; // [batch]

fn next(lane: u32, slot: u32, token: u32) {
  rows[lane] = draft_row(slot, token);
}

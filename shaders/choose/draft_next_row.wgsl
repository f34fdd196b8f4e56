// The further level's row after draft_choose. A place without a slot keeps its padding.

//use fragments/draft_row

@group(0) @binding(4) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(5) var<storage, read_write> rows: array<Row>; // [batch]

fn next(place: u32, slot: u32, token: u32) {
  rows[place] = draft_row(slot, token);
}

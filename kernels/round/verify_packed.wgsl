// The rows of a verify forward of chains, those of a sequence right after those of the one before:
//   rows of sequence b  = 1 + min(ROWS - 1, drafts to be verified), 0 where there is no slot
//   its first row       = sum of the rows of the sequences before it
// They are its pending token and the drafts, or padding as in verify_rows.wgsl. Rows behind the last sequence's
// are padding, and so are the rows of draft-extend at the same places (accept_commit.wgsl).
//
// One invocation per row; each workgroup adds up the rows of all sequences itself.

//#import lib/rows
//#import lib/drafts

override ROWS: u32; // most of a sequence
override FIRST_ROWS: u32; // word of `last` from which the first row of each sequence goes

const LANES = 128u; // src/engine/device/buffers.ts: KEPT_ROWS_AT, the largest batch

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [rows of the round]
@group(0) @binding(4) var<storage, read_write> extend: array<Row>; // [rows of the round]
@group(0) @binding(5) var<storage, read_write> last: array<u32>; // first rows from FIRST_ROWS on, [batch]

var<workgroup> ends: array<u32, LANES>; // where the rows of each sequence end

// How many sequences end at or before the row, which is before the last one's end.
fn place_of(row: u32) -> u32 {
  var place = 0u;
  for (var step = LANES / 2u; step > 0u; step /= 2u) {
    if (ends[place + step - 1u] <= row) {
      place += step;
    }
  }
  return place;
}

fn verify_row_at(slot: u32, depth: u32) -> Row {
  if (slots[slot].length + ROWS > slots[slot].limit) {
    return Row();
  }
  var token = slots[slot].pending;
  if (depth > 0u) {
    token = drafts[draft_token(slot, depth - 1u)];
  }
  return chain_row(token, slot, slots[slot].length + depth);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let batch = arrayLength(&batch_slots);
  var own = 0u;
  if (lane < batch && batch_slots[lane] != NO_SLOT) {
    own = 1u + min(ROWS - 1u, drafts[draft_count(batch_slots[lane])]);
  }
  var end = own;
  ends[lane] = end;
  workgroupBarrier();
  for (var reach = 1u; reach < LANES; reach *= 2u) {
    if (lane >= reach) {
      end += ends[lane - reach];
    }
    workgroupBarrier();
    ends[lane] = end;
    workgroupBarrier();
  }
  if (tile.x == 0u && lane < batch) {
    last[FIRST_ROWS + lane] = select(end - own, 0u, own == 0u);
  }
  let row = tile.x * LANES + lane;
  if (row >= arrayLength(&rows)) {
    return;
  }
  if (row >= ends[LANES - 1u]) {
    rows[row] = Row();
    extend[row] = Row();
    return;
  }
  let place = place_of(row);
  let first = select(0u, ends[max(place, 1u) - 1u], place > 0u);
  rows[row] = verify_row_at(batch_slots[place], row - first);
}

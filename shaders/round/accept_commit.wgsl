// Walks each sequence's drafts by the rule of the slot `walk`. Commits the accepted
// tokens, makes the last choice (the bonus) the new pending token, writes the rows of draft-extend (token one
// ahead of its hidden row, at its logical cell) and the sequence's result for the host.
//
// A sequence whose rows are padding emits nothing. An emitted token among the slot's stops sets its limit
// to 0, so that all further rounds are padding; NOT_A_TOKEN (broken logits) always stops.
//
// One workgroup per sequence of the batch, whose first lane does all of this.
// Slots:
//   choices: the target's choices, at binding 2: `fn make_choices(first, lane)`, which all lanes call once, and
//     `fn choice(row)` (round/choices/*.wgsl);
//   walk: `fn walk(slot, first)`, how many drafts are accepted; `fn row_at(j)`, the row at level j;
//     `fn keep(at, row)`, what else is stored of it (accept_chain.wgsl, accept_tree.wgsl);
//   places: `fn first_row(b)` and `fn first_extend(b)`, the sequence's first row of verify and of draft-extend;
//     `fn extend_rows(slot)`, how many it has of the latter (packed/places_*.wgsl);
//   tell: `fn result_words()`, what a sequence's result takes; `fn tell(result, slot)`, what is in it beside the
//     tokens (confidence/tell_*.wgsl).

//use fragments/rows
//use fragments/drafts
//use choices
//use walk
//use places
//use tell

override ROWS: u32; // verify rows a sequence
override DEPTH: u32; // most drafts that may be accepted; draft-extend has DEPTH + 1 rows a sequence

const NO_ROW = 0xffffffffu; // of gather_rows.wgsl

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> rows: array<Row>; // verify rows, [batch * ROWS] where they are not packed
@group(0) @binding(3) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(4) var<storage, read_write> slots: array<Slot>; // [slots]
@group(0) @binding(5) var<storage, read_write> extend: array<Row>; // [batch * (DEPTH + 1)] where they are not packed
@group(0) @binding(6) var<storage, read_write> last: array<u32>; // [batch] extend row of the bonus; what `keep` keeps
@group(0) @binding(7) var<storage, read_write> results: array<u32>; // [batch]: tokens emitted, ROWS choices, ROWS - 1 drafts, what `tell` tells

fn stops(slot: u32, token: u32) -> bool {
  let same = vec4<u32>(token);
  return token == NOT_A_TOKEN || any(slots[slot].stops_lo == same) || any(slots[slot].stops_hi == same);
}

@compute @workgroup_size($LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let b = tile.x;
  let slot = batch_slots[b];
  let first = first_row(b);
  make_choices(first, lane);
  if (lane != 0u) {
    return;
  }
  let out = first_extend(b);
  let out_rows = extend_rows(slot);
  let result = b * result_words();
  if (slot == NO_SLOT || rows[first].live == 0u) {
    for (var j = 0u; j < out_rows; j++) {
      extend[out + j] = Row();
      keep(out + j, NO_ROW);
    }
    last[b] = out;
    results[result] = 0u;
    return;
  }
  let accepted = walk(slot, first);
  results[result] = accepted + 1u;
  for (var j = 0u; j < out_rows; j++) {
    let row = first + row_at(j);
    let token = choice(row);
    results[result + 1u + j] = token;
    extend[out + j] = chain_row(token, slot, rows[first].cell + j);
    extend[out + j].live = u32(j <= accepted);
    keep(out + j, select(NO_ROW, row, j <= accepted));
    if (j <= accepted && stops(slot, token)) {
      slots[slot].limit = 0u;
    }
  }
  for (var j = 0u; j + 1u < ROWS; j++) {
    results[result + 1u + ROWS + j] = drafts[draft_token(slot, j)];
  }
  tell(result, slot);
  last[b] = out + accepted;
  slots[slot].length += accepted + 1u;
  slots[slot].pending = choice(first + row_at(accepted));
}

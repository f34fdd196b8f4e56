// Accepts drafts and commits them. Walks each sequence's drafts, a chain or with TREE a tree, while they agree with the
// target's choices (or, with SIMULATED, while drawn numbers say so); commits the accepted tokens; makes the last choice
// (the bonus) the new pending token; writes the rows of draft-extend (each token one ahead of its hidden row, at its
// logical cell) and the sequence's result for the host.
//
// The choices are those of choose.wgsl in `chosen`, or with GREEDY the largest logits, found here in `partials`.
//
// A sequence whose rows are padding emits nothing. An emitted token among the slot's stops, or the last one that its
// text may have, sets its limit to 0, so that all further rounds are padding; NOT_A_TOKEN (broken logits) always stops.
//
// One workgroup per sequence of the batch. Its first lane does everything but finding choices.

//#import lib/rows
//#import lib/drafts
//#if GREEDY
//#import lib/argmax
//#endif
//#if SIMULATED
//#import lib/noise
//#endif

override ROWS: u32; // verify rows a sequence
override DEPTH: u32; // most drafts that may be accepted; draft-extend has DEPTH + 1 rows a sequence

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> rows: array<Row>; // verify rows, [batch * ROWS] where they are not packed
@group(0) @binding(3) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(4) var<storage, read_write> slots: array<Slot>; // [slots]
@group(0) @binding(5) var<storage, read_write> extend: array<Row>; // [batch * (DEPTH + 1)] where they are not packed
// [batch] extend row of the bonus; from KEPT on kept rows
@group(0) @binding(6) var<storage, read_write> last: array<u32>;
// [batch]: tokens emitted, ROWS choices, ROWS - 1 drafts; with CONFIDENCES drafts verified, ROWS - 1 confidences
@group(0) @binding(7) var<storage, read_write> results: array<u32>;

//#if GREEDY
// The target's choice at temperature 0 is the token of the largest logit. Every row has $WIDTH lanes, a power of two,
// which join its partial argmaxes as lib/workgroup_partial.wgsl does.

override PARTIALS: u32; // partial argmaxes of a row

@group(0) @binding(2) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]

var<workgroup> candidates: array<Argmax, $LANES>;
var<workgroup> choices: array<u32, $ROWS>;
var<private> first_choice: u32; // row

fn find_choices(first: u32, lane: u32) {
  first_choice = first;
  let own = min(lane / $WIDTHu, $ROWSu - 1u); // row of the sequence
  let at = lane % $WIDTHu;
  let row = (first + own) * PARTIALS;
  var best = NO_ARGMAX;
  for (var i = at; i < PARTIALS; i += 8u * $WIDTHu) {
    //#for j in 8
    let partial$j = partials[row + min(i + $ju * $WIDTHu, PARTIALS - 1u)];
    //#endfor
    //#for j in 8
    best = better(best, partial$j); // one of them twice changes nothing
    //#endfor
  }
  candidates[lane] = best;
  workgroupBarrier();
  //#for s in STAGES
  {
    let left = $WIDTHu >> (3u * $su + 3u);
    if (at < left) {
      var all = NO_ARGMAX;
      //#for j in 8
      all = better(all, candidates[lane + $ju * left]);
      //#endfor
      candidates[lane] = all;
    }
    workgroupBarrier();
  }
  //#endfor
  if (at == 0u) {
    var all = NO_ARGMAX;
    //#for j in REST
    all = better(all, candidates[lane + $ju]);
    //#endfor
    choices[own] = select(all.y, NOT_A_TOKEN, all.x == BROKEN || all.x <= NOTHING);
  }
  workgroupBarrier();
}

fn choice(row: u32) -> u32 {
  return choices[row - first_choice];
}
//#else
@group(0) @binding(2) var<storage, read> chosen: array<u32>; // of each verify row

fn find_choices(first: u32, lane: u32) {}

fn choice(row: u32) -> u32 {
  return chosen[row];
}
//#endif

//#if TREE
// From a row the walk goes to its first child whose token is the target's choice at the row. Children come after their
// parents, so one pass over the rows finds them all.

override KEPT: u32; // where the rows on the walk begin in `last`

var<private> path: array<u32, 64>; // rows on the walk; src/speculate/round_shape.ts: MAX_ROWS

// Drafts of the sequence that are accepted; its rows begin at `first`.
fn walk(slot: u32, first: u32) -> u32 {
  let rows_drafted = min(ROWS - 1u, drafts[draft_count(slot)]);
  var accepted = 0u;
  path[0] = 0u;
  for (var i = 0u; i < rows_drafted && accepted < DEPTH; i++) {
    let at = path[accepted];
    if (drafts[draft_parent(slot, i)] == at && drafts[draft_token(slot, i)] == choice(first + at)) {
      accepted++;
      path[accepted] = i + 1u;
    }
  }
  for (var j = accepted + 1u; j <= DEPTH; j++) {
    path[j] = 0u;
  }
  return accepted;
}

// The row of the sequence at level j of the walk.
fn row_at(j: u32) -> u32 {
  return path[j];
}

// Stores the verify row that extend row `at` comes from, for move_cells.wgsl.
fn keep_row(at: u32, row: u32) {
  last[KEPT + at] = row;
}
//#else
//#if SIMULATED
// Draft `step` of the slot is accepted with probability P<step>, given that the ones before it were: where
// u < P<step>, u = 24 bits of hash32(seed, position of the drafted token, PURPOSE) / 2^24. The target's choice is
// ignored, so the text is meaningless and only the timing is real. tests/reference/simulated.ts is the same on the
// host, to the bit. P<step> are overrides, not a buffer: the kernel already binds the 8 storage buffers that
// any adapter has.

//#for j in STEPS
override P$j: f32;
//#endfor

const PURPOSE = 0xacce97u; // in the place of a token id, which stays below 2^22

fn accepts(slot: u32, row: u32, step: u32) -> bool {
  var probability = array<f32, $STEPS>(
//#for j in STEPS
    P$j,
//#endfor
  );
  let bits = hash32(slots[slot].seed, rows[row].position + 1u, PURPOSE);
  return f32(bits >> 8u) * 0x1p-24 < probability[step];
}
//#else
// Draft `step` of the slot is accepted where it is the target's own choice at the verify row before it.
fn accepts(slot: u32, row: u32, step: u32) -> bool {
  return drafts[draft_token(slot, step)] == choice(row);
}
//#endif

// Drafts of the sequence that are accepted; its rows begin at `first`.
fn walk(slot: u32, first: u32) -> u32 {
  let most = min(DEPTH, drafts[draft_count(slot)]);
  var accepted = 0u;
  while (accepted < most && accepts(slot, first + accepted, accepted)) {
    accepted++;
  }
  return accepted;
}

// The row of the sequence at level j of the walk.
fn row_at(j: u32) -> u32 {
  return j;
}

fn keep_row(at: u32, row: u32) {}
//#endif

//#if PACKED
// In packed rounds (verify_packed.wgsl) a sequence has as many rows as it has drafts to verify. Its rows of
// draft-extend are at the places of its verify rows, whose features are theirs.

override FIRST_ROWS: u32; // word of `last` from which the first row of each sequence is

fn first_row(b: u32) -> u32 {
  return last[FIRST_ROWS + b];
}

fn first_extend(b: u32) -> u32 {
  return first_row(b);
}

fn extend_rows(slot: u32) -> u32 {
  if (slot == NO_SLOT) {
    return 0u;
  }
  return 1u + min(ROWS - 1u, drafts[draft_count(slot)]);
}
//#else
// The first verify row of sequence b.
fn first_row(b: u32) -> u32 {
  return b * ROWS;
}

// The first row of draft-extend of sequence b.
fn first_extend(b: u32) -> u32 {
  return b * (DEPTH + 1u);
}

// Rows of draft-extend that the sequence has.
fn extend_rows(slot: u32) -> u32 {
  return DEPTH + 1u;
}
//#endif

//#if CONFIDENCES
// Words of a sequence's result.
fn result_words() -> u32 {
  return 3u * ROWS;
}

// Stores how many drafts of the sequence were verified, and the draft's confidence in each that it drafted.
fn store_confidences(result: u32, slot: u32) {
  let verified = result + 2u * ROWS;
  results[verified] = min(ROWS - 1u, drafts[draft_count(slot)]);
  for (var j = 0u; j + 1u < ROWS; j++) {
    results[verified + 1u + j] = drafts[draft_confidence(slot, j)];
  }
}
//#else
// Words of a sequence's result.
fn result_words() -> u32 {
  return 2u * ROWS;
}

fn store_confidences(result: u32, slot: u32) {}
//#endif

fn stops(slot: u32, token: u32) -> bool {
  let same = vec4<u32>(token);
  return token == NOT_A_TOKEN || any(slots[slot].stops_lo == same) || any(slots[slot].stops_hi == same);
}

@compute @workgroup_size($LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let b = tile.x;
  let slot = batch_slots[b];
  let first = first_row(b);
  find_choices(first, lane);
  if (lane != 0u) {
    return;
  }
  let out = first_extend(b);
  let out_rows = extend_rows(slot);
  let result = b * result_words();
  if (slot == NO_SLOT || rows[first].live == 0u) {
    for (var j = 0u; j < out_rows; j++) {
      extend[out + j] = Row();
      keep_row(out + j, NO_ROW);
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
    keep_row(out + j, select(NO_ROW, row, j <= accepted));
    if (j <= accepted && stops(slot, token)) {
      slots[slot].limit = 0u;
    }
  }
  for (var j = 0u; j + 1u < ROWS; j++) {
    results[result + 1u + ROWS + j] = drafts[draft_token(slot, j)];
  }
  store_confidences(result, slot);
  last[b] = out + accepted;
  slots[slot].length += accepted + 1u;
  if (slots[slot].length + 1u >= slots[slot].most) { // its pending token is one of them
    slots[slot].limit = 0u;
  }
  slots[slot].pending = choice(first + row_at(accepted));
}

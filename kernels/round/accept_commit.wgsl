// Walks each sequence's drafts by a rule: the target's own choices, or drawn counts, along a chain or a
// tree (`walk`). Commits the accepted
// tokens, makes the last choice (the bonus) the new pending token, writes the rows of draft-extend (token one
// ahead of its hidden row, at its logical cell) and the sequence's result for the host.
//
// A sequence whose rows are padding emits nothing. An emitted token among the slot's stops sets its limit
// to 0, so that all further rounds are padding; NOT_A_TOKEN (broken logits) always stops.
//
// One workgroup per sequence of the batch, whose first lane does all of this.

//#import lib/rows
//#import lib/drafts
//#if GREEDY
// The choices of accept_commit.wgsl where each is the token of the largest logit: what choose.wgsl chooses at
// temperature 0. Every row has $WIDTH lanes, a power of two, which join its partial argmaxes as
// lib/workgroup_partial.wgsl does. A logit that is no number gives NOT_A_TOKEN, as there.

//#import lib/argmax

override PARTIALS: u32; // partial argmaxes of a row

@group(0) @binding(2) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]

var<workgroup> candidates: array<Argmax, $LANES>;
var<workgroup> choices: array<u32, $ROWS>;
var<private> first_choice: u32; // row

fn make_choices(first: u32, lane: u32) {
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
// The choices of accept_commit.wgsl where kernels before it have stored them.

const NOT_A_TOKEN = 0xffffffffu; // of choose.wgsl

@group(0) @binding(2) var<storage, read> chosen: array<u32>; // of each verify row

fn make_choices(first: u32, lane: u32) {}

fn choice(row: u32) -> u32 {
  return chosen[row];
}
//#endif
//#if TREE
// How accept_commit.wgsl walks a tree: from a row to its first child whose token is the target's choice
// at the row. Children come after their parents, so one pass over the rows finds them all.

override KEPT: u32; // where the rows that were kept begin in `last`

var<private> path: array<u32, 64>; // rows on the walk; src/speculate/round_shape.ts: MOST_ROWS

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

fn row_at(j: u32) -> u32 {
  return path[j];
}

fn keep(at: u32, row: u32) {
  last[KEPT + at] = row;
}
//#else
// How accept_commit.wgsl walks a chain: on while drafts are accepted.

//#if SIMULATED
// Draft `step` of the slot is accepted with probability P<step>, given that the ones before it were:
// u < P<step>, u = 24 bits of hash32(seed, position of the drafted token, PURPOSE) / 2^24. What the
// target chose has no say, so the text is worthless and only the time is true. A rule of
// accept_commit.wgsl; tests/reference/simulated.ts is the same on the host, to the bit.
//
// Overrides and no buffer: accept_commit.wgsl binds the 8 storage buffers that any adapter has.

//#import lib/noise

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
// Draft `step` of the slot is accepted when it is the target's own choice at the verify row before
// it. A rule of accept_commit.wgsl.

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

fn keep(at: u32, row: u32) {}
//#endif
//#if PACKED
// Where the rows of a sequence are in packed rounds of chains (verify_packed.wgsl): for accept_commit.wgsl.
// Its rows of draft-extend are at the places of its verify rows, whose features are theirs.

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
// Where the rows of a sequence are in rounds in which each has ROWS verify rows and DEPTH + 1 rows of
// draft-extend: for accept_commit.wgsl.

fn first_row(b: u32) -> u32 {
  return b * ROWS;
}

fn first_extend(b: u32) -> u32 {
  return b * (DEPTH + 1u);
}

// Rows of draft-extend that the sequence has.
fn extend_rows(slot: u32) -> u32 {
  return DEPTH + 1u;
}
//#endif
//#if CONFIDENCES
// How many drafts of the sequence were verified and the draft's confidence in each that it drafted, in the
// results of accept_commit.wgsl.

fn result_words() -> u32 {
  return 3u * ROWS;
}

fn tell(result: u32, slot: u32) {
  let verified = result + 2u * ROWS;
  results[verified] = min(ROWS - 1u, drafts[draft_count(slot)]);
  for (var j = 0u; j + 1u < ROWS; j++) {
    results[verified + 1u + j] = drafts[draft_confidence(slot, j)];
  }
}
//#else
// Nothing more in the results of accept_commit.wgsl.

fn result_words() -> u32 {
  return 2u * ROWS;
}

fn tell(result: u32, slot: u32) {}
//#endif

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

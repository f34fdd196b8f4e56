// A logit of adjust.wgsl after bias and penalties, in this order:
//   x  = logit + bias[t]
//   x  = x / repetition where x > 0, x repetition elsewhere       if t is in the row's text, prompt or output
//   x -= n frequency + presence                                   if it is n > 0 times in the output
// The row's text is what is committed, its pending token included (`counts`), and the drafts from the root's
// first child to the row's own token, which its path names (fragments/rows.wgsl).

//use fragments/rows

override ROWS: u32; // a sequence

struct Penalties {
  repetition: f32,
  frequency: f32,
  presence: f32,
  on: u32, // 0: the sequence has none, and no bias
}

const OUTPUT = 0x7fffffffu; // bits of a count: times in the output; the highest bit: in the prompt
const MOST_DRAFTS = 63u; // src/speculate/round_shape.ts: MOST_ROWS less the root

@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> penalties: array<Penalties>; // [slots]
@group(0) @binding(5) var<storage, read> counts: array<u32>; // [slots, VOCAB]
@group(0) @binding(6) var<storage, read> bias: array<f32>; // [slots, VOCAB]

var<workgroup> drafted: array<u32, MOST_DRAFTS>; // the row's drafts, its own last
var<private> depth: u32; // how many
var<private> own: Penalties;
var<private> table: u32; // where the slot's tokens begin

fn begin_row(row: u32, lane: u32) {
  var at = rows[row];
  let root = row - row % ROWS;
  own = penalties[at.slot];
  table = at.slot * VOCAB;
  depth = select(0u, min(at.position - rows[root].position, MOST_DRAFTS), at.live == 1u);
  for (var level = 1u + lane; level <= depth; level += LANES) {
    let cell = rows[root].position + level;
    var stored = cell;
    if (cell >= at.base) {
      let i = cell - at.base;
      stored = at.base + ((at.path[i / 4u] >> (8u * (i % 4u))) & 255u);
    }
    drafted[level - 1u] = rows[root + stored - rows[root].cell].token;
  }
  workgroupBarrier();
}

fn penalized(token: u32, logit: f32) -> f32 {
  if (own.on == 0u) {
    return logit;
  }
  var seen = counts[table + token];
  for (var i = 0u; i < depth; i++) {
    seen += u32(drafted[i] == token);
  }
  let n = seen & OUTPUT;
  var x = logit + bias[table + token];
  if (seen > 0u) {
    x = select(x * own.repetition, x / own.repetition, x > 0.0);
  }
  return fma(-own.frequency, f32(n), x) - select(0.0, own.presence, n > 0u);
}

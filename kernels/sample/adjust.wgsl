// Logits with bias, penalties and a mask applied, for choose.wgsl:
//   adjusted[r, t] = penalized(logits[r, t]) where token t is allowed at row r, minus infinity elsewhere.
// With MASKED, the allowed tokens are those whose bit is set in the row's mask; without, all are. With PENALIZED, in
// this order:
//   x  = logit + bias[t]
//   x  = x / repetition where x > 0, x repetition elsewhere       if t is in the row's text, prompt or output
//   x -= n frequency + presence                                   if t is n > 0 times in the output
// The row's text is what is committed, its pending token included (`counts`), and the drafts from the root's
// first child to the row's own token, which its path names (lib/rows.wgsl).
// A logit that is no finite number stays as it is: minus infinity is ruled out already, and a broken
// model is found where a token is chosen.
//
// One workgroup per SLICE columns of a row.

override VOCAB: u32;
override STRIDE: u32; // row stride of logits and adjusted
override SLICE: u32;
override LANES: u32;

const MINUS_INFINITY = 0xff800000u;

@group(0) @binding(0) var<storage, read> logits: array<u32>; // [rows, STRIDE] bits of f32: WGSL has no infinity
@group(0) @binding(1) var<storage, read_write> adjusted: array<u32>; // [rows, STRIDE]

//#if PENALIZED
//#import lib/path

override ROWS: u32; // a sequence

struct Penalties {
  repetition: f32,
  frequency: f32,
  presence: f32,
  on: u32, // 0: the sequence has none, and no bias
}

const OUTPUT = 0x7fffffffu; // bits of a count: times in the output; the highest bit: in the prompt
const MAX_DRAFTS = 63u; // src/speculate/round_shape.ts: MAX_ROWS less the root

@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> penalties: array<Penalties>; // [slots]
@group(0) @binding(5) var<storage, read> counts: array<u32>; // [slots, VOCAB]
@group(0) @binding(6) var<storage, read> bias: array<f32>; // [slots, VOCAB]

var<workgroup> drafted: array<u32, MAX_DRAFTS>; // the row's drafts, its own last
var<private> depth: u32; // how many
var<private> own: Penalties;
var<private> table: u32; // where the slot's tokens begin

// Reads what the penalties of the row need.
fn load_penalties(row: u32, lane: u32) {
  let at = rows[row];
  let root = row - row % ROWS;
  own = penalties[at.slot];
  table = at.slot * VOCAB;
  depth = select(0u, min(at.position - rows[root].position, MAX_DRAFTS), at.live == 1u);
  for (var level = 1u + lane; level <= depth; level += LANES) {
    let cell = rows[root].position + level;
    drafted[level - 1u] = rows[root + physical(at, cell) - rows[root].cell].token;
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
    x = select(x * own.repetition, x / max(own.repetition, 1e-30), x > 0.0); // a denormal would give infinity
  }
  return fma(-own.frequency, f32(n), x) - select(0.0, own.presence, n > 0u);
}
//#else
fn load_penalties(row: u32, lane: u32) {}

fn penalized(token: u32, logit: f32) -> f32 {
  return logit;
}
//#endif

//#if MASKED
override MASK_WORDS: u32; // of a row: ceil(VOCAB / 32)

@group(0) @binding(2) var<storage, read> masks: array<u32>; // [rows, MASK_WORDS] bit t % 32 of word t / 32: token t

fn allowed(row: u32, token: u32) -> bool {
  return ((masks[row * MASK_WORDS + token / 32u] >> (token % 32u)) & 1u) == 1u;
}
//#else
fn allowed(row: u32, token: u32) -> bool {
  return true;
}
//#endif

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.y;
  load_penalties(row, lane);
  let end = min((tile.x + 1u) * SLICE, VOCAB);
  for (var i = tile.x * SLICE + lane; i < end; i += LANES) {
    var bits = logits[row * STRIDE + i];
    if ((bits & 0x7f800000u) != 0x7f800000u) {
      let made = bitcast<u32>(penalized(i, bitcast<f32>(bits)));
      bits = select(MINUS_INFINITY, made, allowed(row, i));
    }
    adjusted[row * STRIDE + i] = bits;
  }
}

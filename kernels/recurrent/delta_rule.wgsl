// The recurrence of Gated DeltaNet. For each value head a slot has a state S, [KEYS, VALUES], and a row of it does, with
// normed query q and key k, value v, decay a and rate beta:
//
//     S *= a;  d = beta (v - S^T k);  S += k d^T;  o = S^T q;  out = weight * o / rms(o) * silu(z)
//
// q and k are divided by their lengths, q by sqrt(KEYS) too; a = exp(-exp(A_log) softplus(a' + dt_bias)), beta =
// sigmoid(b). Heads of values share those of keys, neighbours the same.
//
// The stored state is behind: it is that after so many tokens as the first word of the slot's and head's `steps` says. Of the
// tokens since, at most STEPS, `steps` has (a, k, d) by their positions modulo STEPS. A run of rows first applies those
// before its first position, so that drafts that were rejected are left out without anyone counting them; then it
// stores the state, then its rows are applied, which it stores as steps. Of a run of more than STEPS rows (prompts)
// the state is stored when STEPS are left. Stored steps and own rows go through the same instructions: a state has the
// same bits however its tokens came.
//
// With CHECKPOINT `states` has a second half: the state after the last whole page of tokens that are surely the slot's.
// The header of `steps` says of how many tokens both are.
//
// One workgroup per (head, rows of which a run may begin at the first), one invocation per column of S. Sums over keys
// are in the order of four interleaved parts, for any number of rows.

//#import lib/slot_rows

override KEY_HEADS: u32;
override HEADS: u32; // of values
override STEPS: u32; // most that are stored
override EPS: f32;

const KEYS = $KEYSu;
const VALUES = $VALUESu;
const QUADS = $QUADSu; // KEYS / 4
const STEP = $(KEYS + VALUES + 4)u; // words: a, three of padding, k, d
const LENGTH_EPS = 1e-6;

@group(0) @binding(0) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(1) var<storage, read> mixed: array<f32>; // [rows, MIXED]: q, k of KEY_HEADS, v of HEADS
@group(0) @binding(2) var<storage, read> projected: array<f32>; // [rows, MIXED + HEADS VALUES]: z is behind
@group(0) @binding(3) var<storage, read> rates: array<f32>; // [rows, 2 HEADS]: b, a'
@group(0) @binding(4) var<storage, read> weights: array<f32>; // A_log [HEADS], dt_bias [HEADS], weight [VALUES]
@group(0) @binding(5) var<storage, read_write> states: array<f32>; // [1 or 2, slots, HEADS, KEYS, VALUES]
@group(0) @binding(6) var<storage, read_write> steps: array<f32>; // [slots]: [HEADS, 4] tokens applied, at the checkpoint, two zeros; [HEADS, STEPS, STEP]
@group(0) @binding(7) var<storage, read_write> out: array<f32>; // [rows, HEADS VALUES]

var<workgroup> applied: u32; // tokens that the stored state has
var<workgroup> raw_keys: array<vec4<f32>, QUADS>;
var<workgroup> raw_queries: array<vec4<f32>, QUADS>;
var<workgroup> keys: array<vec4<f32>, QUADS>;
var<workgroup> queries: array<vec4<f32>, QUADS>;
var<workgroup> squares: array<f32, VALUES>;

fn mixed_quad(at: u32) -> vec4<f32> {
  return vec4<f32>(mixed[at], mixed[at + 1u], mixed[at + 2u], mixed[at + 3u]);
}

fn sum4(parts: vec4<f32>) -> f32 {
  return (parts.x + parts.y) + (parts.z + parts.w);
}

// log(1 + exp(x))
fn softplus(x: f32) -> f32 {
  return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

@compute @workgroup_size(VALUES)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let head = group.x;
  let mixed_cols = 2u * KEY_HEADS * KEYS + HEADS * VALUES;
  let count = arrayLength(&mixed) / mixed_cols;
  let first = group.y * (count / groups.y);
  if (rows[first].live == 0u || (first > 0u && same_slot(first, first - 1u, count))) {
    return;
  }
  let slot = rows[first].slot;
  let position = rows[first].position;
  let key_at = head / (HEADS / KEY_HEADS) * KEYS;
  let state = (slot * HEADS + head) * KEYS * VALUES + thread;
  let of_slot = slot * HEADS * (4u + STEPS * STEP);
  let memory = of_slot + 4u * head;
  let first_step = of_slot + 4u * HEADS + head * STEPS * STEP;
  if (thread == 0u) {
    // Where a measurement goes back, what it finds means nothing.
    applied = select(0u, clamp(u32(steps[memory]), max(position, STEPS) - STEPS, position), position > 0u);
  }
  //#if CHECKPOINT
  if (thread == 0u && position == 0u) {
    steps[memory + 1u] = 0.0;
  }
  //#endif
  var step = workgroupUniformLoad(&applied);
  //#for i in QUADS
  var s$i = vec4<f32>();
  //#endfor
  if (position > 0u) {
    //#for i in QUADS
    s$i = vec4<f32>(
      states[state + $(4 * i * VALUES)u],
      states[state + $(4 * i * VALUES + VALUES)u],
      states[state + $(4 * i * VALUES + 2 * VALUES)u],
      states[state + $(4 * i * VALUES + 3 * VALUES)u],
    );
    //#endfor
  }
  var kept = false; // the state is stored, and what follows are steps
  loop {
    let own = step >= position;
    let row = first + max(step, position) - position;
    if (own && row != first && !same_slot(first, row, count)) {
      break;
    }
    //#if CHECKPOINT
    // A later page ends among the rows that are applied for good: that one's state is stored.
    let passed = own && same_slot(first, row + STEPS + PAGE, count);
    if (!(own && kept) && step % PAGE == 0u && step > 0u && !passed) {
      let half = arrayLength(&states) / 2u + state;
      //#for i in QUADS
      states[half + $(4 * i * VALUES)u] = s$i.x;
      states[half + $(4 * i * VALUES + VALUES)u] = s$i.y;
      states[half + $(4 * i * VALUES + 2 * VALUES)u] = s$i.z;
      states[half + $(4 * i * VALUES + 3 * VALUES)u] = s$i.w;
      //#endfor
      if (thread == 0u) {
        steps[memory + 1u] = f32(step);
      }
    }
    //#endif
    let at = first_step + step % STEPS * STEP;
    var decay = 0.0;
    var delta = 0.0;
    if (own) {
      if (!kept && !same_slot(first, row + STEPS, count)) {
        kept = true;
        //#for i in QUADS
        states[state + $(4 * i * VALUES)u] = s$i.x;
        states[state + $(4 * i * VALUES + VALUES)u] = s$i.y;
        states[state + $(4 * i * VALUES + 2 * VALUES)u] = s$i.z;
        states[state + $(4 * i * VALUES + 3 * VALUES)u] = s$i.w;
        //#endfor
        if (thread == 0u) {
          steps[memory] = f32(step);
        }
      }
      let mixed_row = row * mixed_cols;
      for (var quad = thread; quad < QUADS; quad += VALUES) {
        raw_queries[quad] = mixed_quad(mixed_row + key_at + 4u * quad);
        raw_keys[quad] = mixed_quad(mixed_row + KEY_HEADS * KEYS + key_at + 4u * quad);
      }
      workgroupBarrier();
      var key_squares = vec4<f32>();
      var query_squares = vec4<f32>();
      //#for i in QUADS
      key_squares = fma(raw_keys[$i], raw_keys[$i], key_squares);
      query_squares = fma(raw_queries[$i], raw_queries[$i], query_squares);
      //#endfor
      let key_scale = inverseSqrt(sum4(key_squares) + LENGTH_EPS);
      let query_scale = inverseSqrt(sum4(query_squares) + LENGTH_EPS) / sqrt(f32(KEYS));
      for (var quad = thread; quad < QUADS; quad += VALUES) {
        let key = raw_keys[quad] * key_scale;
        keys[quad] = key;
        queries[quad] = raw_queries[quad] * query_scale;
        if (kept) {
          steps[at + 4u + 4u * quad] = key.x;
          steps[at + 5u + 4u * quad] = key.y;
          steps[at + 6u + 4u * quad] = key.z;
          steps[at + 7u + 4u * quad] = key.w;
        }
      }
      let rate = rates[row * 2u * HEADS + HEADS + head] + weights[HEADS + head];
      decay = exp(-exp(weights[head]) * softplus(rate));
    } else {
      for (var quad = thread; quad < QUADS; quad += VALUES) {
        let key = at + 4u + 4u * quad;
        keys[quad] = vec4<f32>(steps[key], steps[key + 1u], steps[key + 2u], steps[key + 3u]);
      }
      decay = steps[at];
      delta = steps[at + 4u + KEYS + thread];
    }
    workgroupBarrier();
    //#for i in QUADS
    s$i *= decay;
    //#endfor
    if (own) {
      var sums = vec4<f32>();
      //#for i in QUADS
      sums = fma(s$i, keys[$i], sums);
      //#endfor
      let value = mixed[row * mixed_cols + 2u * KEY_HEADS * KEYS + head * VALUES + thread];
      let beta = 1.0 / (1.0 + exp(-rates[row * 2u * HEADS + head]));
      delta = beta * (value - sum4(sums));
      if (kept) {
        steps[at + 4u + KEYS + thread] = delta;
        if (thread == 0u) {
          steps[at] = decay;
        }
      }
    }
    //#for i in QUADS
    s$i = fma(keys[$i], vec4<f32>(delta), s$i);
    //#endfor
    if (own) {
      var sums = vec4<f32>();
      //#for i in QUADS
      sums = fma(s$i, queries[$i], sums);
      //#endfor
      let o = sum4(sums);
      squares[thread] = o * o;
      workgroupBarrier();
      var square = 0.0;
      for (var i = 0u; i < VALUES; i++) {
        square += squares[i];
      }
      let scale = inverseSqrt(square / f32(VALUES) + EPS);
      let z = projected[row * (mixed_cols + HEADS * VALUES) + mixed_cols + head * VALUES + thread];
      out[row * HEADS * VALUES + head * VALUES + thread] =
        weights[2u * HEADS + thread] * (o * scale) * (z / (1.0 + exp(-z)));
    }
    workgroupBarrier();
    step++;
  }
}

// The recurrence of Gated DeltaNet. For each value head a slot has a state S, [KEYS, VALUES], and a row of it does,
// with normed query q and key k, value v, decay a and rate beta:
//
//     d = beta (v - a S^T k);  o = a S^T q + (k^T q) d;  S = a S + k d^T
//
// q and k are divided by their lengths, q by sqrt(KEYS) too; a = exp(-exp(A_log) softplus(a' + dt_bias)), beta =
// sigmoid(b). Neighbouring value heads share a key head. norm/gated_norm.wgsl norms and gates o.
//
// With CONV q, k and v are computed here from the rows before the convolution and from the ring, as short_conv.wgsl
// does, and the rows are stored in the ring: for forwards of so few rows that none overwrites one that is still read.
// A workgroup computes only its own columns of v; the columns of a key head are computed by all workgroups that read
// them, and stored by the first.
//
// The stored state lags behind: the header of `steps` says how many tokens it covers. For the tokens since then, at
// most STEPS, `steps` holds (a, k, d) by position modulo STEPS. A run of rows first applies the steps before its first
// position, so that rejected drafts are left out without being counted; then it stores the state; then it applies its
// rows and stores them as steps. A run of more than STEPS rows (a prompt) stores the state when STEPS rows are left.
// Stored steps and own rows go through the same instructions: a state has the same bits however its tokens came.
//
// With CHECKPOINT `states` has a second half: the state after the last whole page of tokens that are surely the slot's.
// The header of `steps` says how many tokens each of the two states covers.
//
// With TREE rows are nodes of trees: a slot's first is the root, and each continues the state of its parent. The paths
// from the root to the leaves are run one after the other, each from the stored state on; rows of several paths are
// computed again, with the same bits. Steps are stored by the cells of the rows, at most STEPS, modulo STEPS;
// move_kept.wgsl moves those of accepted rows to their positions.
//
// One workgroup per (COLS columns of a head's S, rows of which a run may begin at the first). Workgroups of a head do
// not wait for each other: each has a header of its own, and steps are stored where no workgroup reads: there are two
// places for them, which take turns. LANES invocations share a column, each with consecutive keys of it; a sum over
// keys has four interleaved parts in each lane, which are added first, then the lanes are added in order. Steps and,
// behind them, rows are applied in blocks: keys, queries and values of BLOCK of them are loaded into workgroup memory
// together, while the block before is applied; the rows of a round are one block. No bit depends on where a block
// begins.

//#import lib/slot_rows
//#import lib/path
//#import lib/softplus

override KEY_HEADS: u32;
override HEADS: u32; // of values
override STEPS: u32; // most that are stored

const KEYS = $KEYSu;
const VALUES = $VALUESu;
const QUADS = $QUADSu; // KEYS / 4
const COLS = $COLSu; // divides VALUES
const LANES = $LANESu; // divides QUADS
const BLOCK = $BLOCKu; // a multiple of LANES
const PARTS = VALUES / COLS; // workgroups of a head
const THREADS = LANES * COLS;
const ROW_THREADS = THREADS / BLOCK; // invocations that load a row
const ROWS_TOGETHER = clamp(32u / ROW_THREADS, 1u, BLOCK); // rows that a subgroup loads, where it has 32 invocations
const OWN = $OWNu; // QUADS / LANES
const STEP = KEYS + VALUES + 4u; // words: a, three of padding, k, d
const LENGTH_EPS = 1e-6;

@group(0) @binding(0) var<storage, read> rows: array<Row>; // [rows]
//#if CONV
// [rows, X_COLS / 4]: q, k of KEY_HEADS, v of HEADS, others
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
// [MIXED]: weights of four rows, the oldest row's first
@group(0) @binding(7) var<storage, read> taps: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> ring: array<vec4<f32>>; // [slots, RING, MIXED / 4]

override X_COLS: u32;
override RING: u32; // rows
//#else
@group(0) @binding(1) var<storage, read> mixed: array<vec4<f32>>; // [rows, MIXED / 4]: q, k of KEY_HEADS, v of HEADS
//#endif
@group(0) @binding(2) var<storage, read> rates: array<f32>; // [rows, 2 HEADS]: b, a'
@group(0) @binding(3) var<storage, read> decay_weights: array<f32>; // A_log [HEADS], dt_bias [HEADS]
@group(0) @binding(4) var<storage, read_write> states: array<f32>; // [1 or 2, slots, HEADS, KEYS, VALUES]
// [slots]: [HEADS, PARTS, 4]: tokens applied, at the checkpoint, which place has the steps, zero; [HEADS, 2, STEPS,
// STEP]
@group(0) @binding(5) var<storage, read_write> steps: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>; // [rows, HEADS VALUES]

var<workgroup> header: vec2<u32>; // tokens that the stored state has, place of the steps
// Of the rows of a block:
var<workgroup> keys: array<vec4<f32>, $(BLOCK * QUADS)>;
var<workgroup> queries: array<vec4<f32>, $(BLOCK * QUADS)>;
var<workgroup> values: array<f32, $(BLOCK * COLS)>; // of steps d
var<workgroup> factors: array<vec3<f32>, BLOCK>; // a, beta, k^T q
var<workgroup> squares: array<vec3<f32>, THREADS>; // k^T k, q^T q, k^T q, of each invocation's part of a row
// Of each invocation, S^T k and S^T q: two places that take turns.
var<workgroup> sums: array<vec2<f32>, $(2 * LANES * COLS)>;

fn sum4(parts: vec4<f32>) -> f32 {
  return (parts.x + parts.y) + (parts.z + parts.w);
}

// Rows of the run that begins at row `first`.
fn run_length(first: u32, count: u32) -> u32 {
  var last = first;
  var past = count;
  while (past - last > 1u) {
    let middle = (last + past) / 2u;
    if (same_slot(first, middle, count)) {
      last = middle;
    } else {
      past = middle;
    }
  }
  return past - first;
}

// Columns of q, k and v: MIXED.
fn mixed_cols() -> u32 {
  return 2u * KEY_HEADS * KEYS + HEADS * VALUES;
}

// A run of rows: its first, and that one's position and slot.
struct Run {
  first: u32,
  position: u32,
  slot: u32,
}

//#if CONV
const TAPS = 4u;

// The index in `ring` at which the row of a position begins.
fn ring_at(run: Run, position: u32) -> u32 {
  return (run.slot * RING + position % RING) * (mixed_cols() / 4u);
}

// Four columns of the row that is `back` before row `i` of the run, before the convolution. Without branches, so that
// loads do not wait for each other: both are loaded, one is taken. The ring is read before the run's rows, which other
// workgroups may be storing there.
fn read_before(run: Run, i: u32, back: u32, quad: u32) -> vec4<f32> {
  let own = x[(run.first + i - min(back, i)) * (X_COLS / 4u) + quad];
  let kept = ring[ring_at(run, RING + run.position + i - max(back, i + 1u)) + quad];
  return select(select(kept, vec4<f32>(), back > run.position + i), own, back <= i);
}

// q, k or v of row `i` of the run, four columns of it.
fn mixed_quad(run: Run, i: u32, quad: u32) -> vec4<f32> {
  let a = taps[4u * quad];
  let b = taps[4u * quad + 1u];
  let c = taps[4u * quad + 2u];
  let d = taps[4u * quad + 3u];
  //#for t in 4
  let read$t = read_before(run, i, TAPS - 1u - $tu, quad);
  //#endfor
  var sum = vec4<f32>();
  //#for t in 4
  sum = fma(vec4<f32>(a[$t], b[$t], c[$t], d[$t]), read$t, sum);
  //#endfor
  return sum / (1.0 + exp(-sum));
}

fn mixed_value(run: Run, i: u32, col: u32) -> f32 {
  let weights = taps[col];
  //#for t in 4
  let read$t = read_before(run, i, TAPS - 1u - $tu, col / 4u)[col % 4u];
  //#endfor
  var sum = 0.0;
  //#for t in 4
  sum = fma(weights[$t], read$t, sum);
  //#endfor
  return sum / (1.0 + exp(-sum));
}

// Stores what the next rows' convolutions read of row `i` of the run.
fn keep_quad(run: Run, i: u32, quad: u32) {
  ring[ring_at(run, run.position + i) + quad] = read_before(run, i, 0u, quad);
}
//#else
// q, k or v of row `i` of the run, four columns of it.
fn mixed_quad(run: Run, i: u32, quad: u32) -> vec4<f32> {
  return mixed[(run.first + i) * (mixed_cols() / 4u) + quad];
}

fn mixed_value(run: Run, i: u32, col: u32) -> f32 {
  return mixed_quad(run, i, col / 4u)[col % 4u];
}
//#endif

//#if TREE
// The row at a level of the path to row `leaf`, of those from `first` on.
fn row_at(first: u32, leaf: u32, level: u32) -> u32 {
  let position = rows[first].position;
  return first + physical(rows[leaf], position + level) - position;
}

// The first row from `at` on, of `length` rows, that has no child; `inner` has a bit for each row that has one.
fn leaf_from(inner: array<u32, 2>, at: u32, length: u32) -> u32 {
  var leaf = at;
  while (leaf < length) {
    let bits = select(inner[0], inner[1], leaf >= 32u);
    if (((bits >> (leaf % 32u)) & 1u) == 0u) {
      break;
    }
    leaf++;
  }
  return leaf;
}
//#else
fn row_at(first: u32, leaf: u32, level: u32) -> u32 {
  return first + level;
}
//#endif

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let head = group.x / PARTS;
  let first_col = group.x % PARTS * COLS;
  //#if CONV
  let count = arrayLength(&x) / (X_COLS / 4u);
  //#else
  let count = arrayLength(&mixed) / (mixed_cols() / 4u);
  //#endif
  let first = group.y * (count / groups.y);
  if (rows[first].live == 0u || (first > 0u && same_slot(first, first - 1u, count))) {
    return;
  }
  let slot = rows[first].slot;
  let position = rows[first].position;
  let run = Run(first, position, slot);
  let length = run_length(first, count);
  //#if TREE
  var inner = array<u32, 2>(); // bit r: a row is a child of row r
  for (var r = 1u; r < length; r++) {
    let own = rows[first + r];
    let parent = physical(own, own.position - 1u) - position;
    inner[0] |= select(0u, 1u << (parent % 32u), parent < 32u);
    inner[1] |= select(0u, 1u << (parent % 32u), parent >= 32u);
  }
  var leaf = first + leaf_from(inner, 0u, length);
  var end = rows[leaf].position + 1u;
  let kept_from = position;
  var keeps_state = true; // of the first path alone
  //#else
  let leaf = first;
  let keeps_state = true;
  let end = position + length;
  let kept_from = end - min(length, STEPS); // the state before it is stored; what follows are steps
  //#endif
  let lane = thread / COLS;
  let col = thread % COLS;
  let state = ((slot * HEADS + head) * KEYS + lane * 4u * OWN) * VALUES + first_col + col;
  let of_slot = slot * HEADS * (4u * PARTS + 2u * STEPS * STEP);
  let memory = of_slot + 4u * group.x;
  let places = of_slot + 4u * PARTS * HEADS + head * 2u * STEPS * STEP;
  if (thread == 0u) {
    // A measurement may repeat a forward at a position before that of the header: its outputs are not used.
    let applied = clamp(u32(steps[memory]), max(position, STEPS) - STEPS, position);
    header = select(vec2<u32>(), vec2<u32>(applied, u32(steps[memory + 2u]) % 2u), position > 0u);
  }
  //#if CHECKPOINT
  if (thread == 0u && position == 0u) {
    steps[memory + 1u] = 0.0;
  }
  //#endif
  // Keys of this lane, in order; x, y, z and w of s0 are those of its first four. Loaded before the header is waited
  // for.
  //#for i in OWN
  var s$i = vec4<f32>();
  //#endfor
  if (position > 0u) {
    //#for i in OWN
    s$i = vec4<f32>(
      states[state + $(4 * i * VALUES)u],
      states[state + $(4 * i * VALUES + VALUES)u],
      states[state + $(4 * i * VALUES + 2 * VALUES)u],
      states[state + $(4 * i * VALUES + 3 * VALUES)u],
    );
    //#endfor
  }
  let found = workgroupUniformLoad(&header);
  let read_steps = places + found.y * STEPS * STEP;
  let kept_steps = places + (1u - found.y) * STEPS * STEP;
  let kept_page = kept_from / PAGE * PAGE;
  let key_quads = head / (HEADS / KEY_HEADS) * QUADS;
  let value_col = 2u * KEY_HEADS * KEYS + head * VALUES + first_col + col;
  let decay_rate = exp(decay_weights[head]);
  let decay_bias = decay_weights[HEADS + head];
  // This invocation loads, of a block, a part of the keys and queries of one row, and values of its column.
  // Neighbouring rows are loaded by different subgroups, and the values of the first rows by the last ones: in a round
  // of few rows no subgroup waits for several of these loads.
  let first_of_row = thread / ROW_THREADS * ROW_THREADS;
  let brought = thread / ROW_THREADS % ROWS_TOGETHER * (BLOCK / ROWS_TOGETHER) + thread / ROW_THREADS / ROWS_TOGETHER;
  let value_row = LANES - 1u - lane;
  let first_quad = thread % ROW_THREADS;

  var step = found.x;
  var size = 0u; // of the block in workgroup memory
  loop {
    let next = step + size;
    let next_size = min(BLOCK, end - next);
    //#for i in EACH
    var key$i = vec4<f32>();
    var query$i = vec4<f32>();
    //#endfor
    //#for i in VALUE_ROWS
    var value$i = 0.0;
    //#endfor
    var rate = vec2<f32>(); // b and a'; of a step a
    if (brought < next_size) {
      if (next + brought >= position) {
        let i = row_at(first, leaf, next + brought - position) - first;
        //#for i in EACH
        if (first_quad + $iu * ROW_THREADS < QUADS) {
          let quad = key_quads + first_quad + $iu * ROW_THREADS;
          query$i = mixed_quad(run, i, quad);
          key$i = mixed_quad(run, i, KEY_HEADS * QUADS + quad);
          //#if CONV
          if (head % (HEADS / KEY_HEADS) == 0u && first_col == 0u) {
            keep_quad(run, i, quad);
            keep_quad(run, i, KEY_HEADS * QUADS + quad);
          }
          //#endif
        }
        //#endfor
        let of_row = (first + i) * 2u * HEADS + head;
        rate = vec2<f32>(rates[of_row], rates[of_row + HEADS]);
      } else {
        let at = read_steps + (next + brought) % STEPS * STEP;
        //#for i in EACH
        if (first_quad + $iu * ROW_THREADS < QUADS) {
          let key = at + 4u + 4u * (first_quad + $iu * ROW_THREADS);
          key$i = vec4<f32>(steps[key], steps[key + 1u], steps[key + 2u], steps[key + 3u]);
        }
        //#endfor
        rate = vec2<f32>(0.0, steps[at]);
      }
    }
    //#for i in VALUE_ROWS
    if ($iu * LANES + value_row < next_size) {
      let number = next + $iu * LANES + value_row;
      if (number >= position) {
        let i = row_at(first, leaf, number - position) - first;
        value$i = mixed_value(run, i, value_col);
        //#if CONV
        if (col % 4u == 0u) {
          keep_quad(run, i, value_col / 4u);
        }
        //#endif
      } else {
        value$i = steps[read_steps + number % STEPS * STEP + 4u + KEYS + first_col + col];
      }
    }
    //#endfor

    for (var r = 0u; r < size; r++) {
      let number = step + r;
      //#if CHECKPOINT
      if (number == kept_page && number > 0u && keeps_state) {
        let half = arrayLength(&states) / 2u + state;
        //#for i in OWN
        states[half + $(4 * i * VALUES)u] = s$i.x;
        states[half + $(4 * i * VALUES + VALUES)u] = s$i.y;
        states[half + $(4 * i * VALUES + 2 * VALUES)u] = s$i.z;
        states[half + $(4 * i * VALUES + 3 * VALUES)u] = s$i.w;
        //#endfor
        if (thread == 0u) {
          steps[memory + 1u] = f32(number);
        }
      }
      //#endif
      if (number == kept_from && keeps_state) {
        //#for i in OWN
        states[state + $(4 * i * VALUES)u] = s$i.x;
        states[state + $(4 * i * VALUES + VALUES)u] = s$i.y;
        states[state + $(4 * i * VALUES + 2 * VALUES)u] = s$i.z;
        states[state + $(4 * i * VALUES + 3 * VALUES)u] = s$i.w;
        //#endfor
        if (thread == 0u) {
          steps[memory] = f32(number);
          steps[memory + 2u] = f32(1u - found.y);
        }
      }
      let factor = factors[r];
      let at = r * QUADS + lane * OWN;
      var delta = values[r * COLS + col];
      if (number >= position) {
        var with_key = vec4<f32>();
        var with_query = vec4<f32>();
        //#for i in OWN
        with_key = fma(s$i, keys[at + $iu], with_key);
        with_query = fma(s$i, queries[at + $iu], with_query);
        //#endfor
        let place = r % 2u * THREADS;
        sums[place + thread] = vec2<f32>(sum4(with_key), sum4(with_query));
        workgroupBarrier();
        var sum = sums[place + col];
        //#for i in OTHERS
        sum += sums[place + $(i + 1)u * COLS + col];
        //#endfor
        delta = factor.y * fma(-factor.x, sum.x, delta);
        if (lane == r % LANES) {
          let row = row_at(first, leaf, number - position);
          out[row * HEADS * VALUES + head * VALUES + first_col + col] =
            fma(factor.z, delta, factor.x * sum.y);
          if (number >= kept_from) {
            let cell = position + row - first;
            steps[kept_steps + cell % STEPS * STEP + 4u + KEYS + first_col + col] = delta;
          }
        }
      }
      //#for i in OWN
      s$i = fma(keys[at + $iu], vec4<f32>(delta), factor.x * s$i);
      //#endfor
    }

    step = next;
    if (next_size == 0u) {
      //#if TREE
      let next_leaf = leaf_from(inner, leaf - first + 1u, length);
      if (next_leaf < length) {
        leaf = first + next_leaf;
        end = rows[leaf].position + 1u;
        step = position;
        size = 0u;
        keeps_state = false;
        //#for i in OWN
        s$i = vec4<f32>(
          states[state + $(4 * i * VALUES)u],
          states[state + $(4 * i * VALUES + VALUES)u],
          states[state + $(4 * i * VALUES + 2 * VALUES)u],
          states[state + $(4 * i * VALUES + 3 * VALUES)u],
        );
        //#endfor
        continue;
      }
      //#endif
      break;
    }

    // The block that was loaded takes the place of the one that was applied.
    size = next_size;
    let own = step + brought >= position;
    var square = mat3x4<f32>();
    //#for i in EACH
    square[0] = fma(key$i, key$i, square[0]);
    square[1] = fma(query$i, query$i, square[1]);
    square[2] = fma(key$i, query$i, square[2]);
    //#endfor
    squares[thread] = vec3<f32>(sum4(square[0]), sum4(square[1]), sum4(square[2]));
    workgroupBarrier();
    var key_scale = 1.0;
    var query_scale = 1.0;
    var factor = vec3<f32>(rate.y, 0.0, 0.0);
    if (own) {
      var of_row = vec3<f32>();
      //#for i in ROW_THREADS
      of_row += squares[first_of_row + $iu];
      //#endfor
      key_scale = inverseSqrt(of_row.x + LENGTH_EPS);
      query_scale = inverseSqrt(of_row.y + LENGTH_EPS) / sqrt(f32(KEYS));
      factor = vec3<f32>(
        exp(-decay_rate * softplus(rate.y + decay_bias)),
        1.0 / (1.0 + exp(-rate.x)),
        of_row.z * key_scale * query_scale,
      );
    }
    // One workgroup of a head stores what all of them have.
    let keeps = step + brought >= kept_from && first_col == 0u && brought < size;
    let kept_row = row_at(first, leaf, step + brought - min(step + brought, position));
    let at = kept_steps + (position + kept_row - first) % STEPS * STEP;
    //#for i in EACH
    if (first_quad + $iu * ROW_THREADS < QUADS) {
      let quad = first_quad + $iu * ROW_THREADS;
      let key = key$i * key_scale;
      keys[brought * QUADS + quad] = key;
      queries[brought * QUADS + quad] = query$i * query_scale;
      if (keeps) {
        steps[at + 4u + 4u * quad] = key.x;
        steps[at + 5u + 4u * quad] = key.y;
        steps[at + 6u + 4u * quad] = key.z;
        steps[at + 7u + 4u * quad] = key.w;
      }
    }
    //#endfor
    //#for i in VALUE_ROWS
    values[($iu * LANES + value_row) * COLS + col] = value$i;
    //#endfor
    if (first_quad == 0u) {
      factors[brought] = factor;
      if (keeps) {
        steps[at] = factor.x;
      }
    }
    workgroupBarrier();
  }
}

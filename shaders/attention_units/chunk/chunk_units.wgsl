// attention_units.wgsl for many rows of one slot, with the same bits: keys and values come as the f16 numbers that
// halve_cells.wgsl has made of them, and each subgroup has queries of its own.
//
// One workgroup per (tile of up to $TILE rows, $GROUP query heads of one key-value head, z): $SPAN splits of $CELLS
// cells from z * SPAN on, merged in order. Queries are numbered row * GROUP + head, $QUERIES with padding, of which
// $COLUMNS subgroups have as many as a unit has rows, and every so manieth tile of their cells and dims. Keys, scores, weights, values and sums pass through the pool one after the
// other: it is small, so that a multiprocessor has room for two workgroups, of which one multiplies while the other
// weighs. Slot:
//   out: `put`, where a row's sums go (sums_*.wgsl).

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);

//use fragments/rows
//use fragments/soft_cap
//use attention/visible
//use kv/vec8
//use attention_units/bring
//use attention_units/power
//use out

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override LAST: u32; // rows of the last tile
override FIRST_ROW: u32; // of `rows`
override ROOM: u32; // cells of a head in `k_halves` and `v_halves`
override SCALE: f32; // of scores

const CELLS = $CELLSu; // of a split
const THREADS = $THREADSu;
const LANES = $LANESu;
const GROUP = $GROUPu; // query heads of a workgroup
const TILE = $TILEu; // rows of a workgroup
const QUERIES = $QUERIESu;
const SPAN = $SPANu; // splits of a workgroup
const DIRECT = $DIRECTu; // 1: its rows see no others
const KV_LOW = $KV_LOWu; // 1: keys and values have lo
const STAGE = $STAGEu; // cells of keys at a time
const LOW_AT = STAGE * PITCH; // lo of keys
const V_PITCH = PART / 2u + 1u; // of a cell's part of values
const V_LOW_AT = CELLS * V_PITCH; // lo of values
const WIDE = $WIDEu; // invocations that bring a query, two vec8s each
const BROUGHT = THREADS / WIDE; // queries at a time
const PITCH = VEC8S + 1u; // eight f16 each; odd: rows begin in different banks
const SCORE_PITCH = CELLS / 4u + SHARERS; // f32, later weights
const PART = 2u * VEC8S / $PARTSu; // fours of a head whose values and sums pass at a time
const PART_PITCH = PART + SHARERS;
const SHARERS = $SHARERSu; // invocations of a query's softmax
const SHARED = CELLS / SHARERS; // cells of each
const UNIT_M = $UNIT_Mu;
const UNIT_K8 = $UNIT_Ku / 8u;
const UNIT_N4 = $UNIT_Nu / 4u;
const UNIT_N8 = $UNIT_Nu / 8u;
const NEGATIVE = -3.0e38; // below every score
const LOG2_E = 1.4426950408889634;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> k_halves: array<vec4<u32>>; // [KV_HEADS, ROOM, 1 + KV_LOW, VEC8S], eight f16
@group(0) @binding(2) var<storage, read> v_halves: array<vec4<u32>>; // as k_halves
@group(0) @binding(3) var<storage, read> units: array<vec4<f32>>; // [2, KV_HEADS, ROOM / 4]: 1 / scale of keys, log2 of it of values
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]

var<workgroup> pool: array<vec4<u32>, $POOL>;
// Of the tile's rows: the largest of ~ the first cell that it sees, one past the last one, the first one and ~ one
// past the last one.
var<workgroup> bounds: array<atomic<u32>, 4>;
var<workgroup> sight: vec4<u32>;
var<workgroup> q_inverse: array<f32, QUERIES>; // 1 / scale
var<workgroup> k_inverse: array<vec4<f32>, CELLS / 4u>;
var<workgroup> v_exponent: array<vec4<f32>, CELLS / 4u>; // e
var<workgroup> v_power: array<vec4<f32>, CELLS / 4u>; // 2^e

// Of a query's fours of scores; those of an invocation begin in another bank than the next one's.
fn score_at(cell: u32) -> u32 {
  return cell / 4u + cell / SHARED;
}

// The e-th eight of the p-th part of a split's values, hi and lo of a cell side by side.
fn value_at(values_of: u32, e: u32, p: u32) -> u32 {
  return values_of + e / (PART / 2u) * VEC8S + p * (PART / 2u) + e % (PART / 2u);
}

fn most_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

// Four of the split's scores from `c` on.
fn scores_of(query: u32, c: u32, unit: f32) -> vec4<f32> {
  let sums = bitcast<vec4<f32>>(pool[query * SCORE_PITCH + score_at(c)]);
  return capped(sums * unit * k_inverse[c / 4u] * SCALE);
}

// NEGATIVE for those of the four cells from `cell` on that are not seen.
fn seen_of(score: vec4<f32>, cell: u32, seen: vec2<u32>) -> vec4<f32> {
  let cells = vec4(cell) + vec4(0u, 1u, 2u, 3u);
  return select(vec4(NEGATIVE), score, (cells >= vec4(seen.x)) & (cells < vec4(seen.y)));
}

fn weights_of(score: vec4<f32>, peak: f32) -> vec4<f32> {
  return select(exp2(fma(score, vec4(LOG2_E), vec4(-peak))), vec4<f32>(), score == vec4(NEGATIVE));
}

// Weighs eight cells from `c` on, the h-th eight of this invocation, in the place of its scores. Returns the sum.
fn weigh(query: u32, c: u32, h: u32, a: vec4<f32>, b: vec4<f32>, peak: f32, lift: f32) -> f32 {
  let wa = weights_of(a, peak);
  let wb = weights_of(b, peak);
  let pa = wa * v_power[c / 4u] * lift;
  let pb = wb * v_power[c / 4u + 1u] * lift;
  let at = query * SCORE_PITCH + score_at(c - 8u * h) + h;
  if ($Q_LOWu == 0u) {
    pool[at] = rounded_halves(pa, pb);
  } else {
    pool[at] = high_halves(pa, pb);
    pool[at + SHARED / 8u] = low_halves(pa, pb);
  }
  let sum = wa + wb;
  return (sum.x + sum.y) + (sum.z + sum.w);
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) launched: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let place = launched.x - 1u - tile.x; // those that see most begin first
  let row = place * TILE;
  let count = select(TILE, LAST, tile.x == 0u);
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;
  for (var r = thread; r < count; r += THREADS) {
    let own = rows[FIRST_ROW + row + r];
    if (own.live == 1u) {
      atomicMax(&bounds[0], ~visible_begin(own));
      atomicMax(&bounds[1], visible_end(own));
      atomicMax(&bounds[2], visible_begin(own));
    }
    atomicMax(&bounds[3], ~visible_end(own));
  }
  workgroupBarrier();
  if (thread == 0u) {
    sight = vec4<u32>(
      ~atomicLoad(&bounds[0]),
      atomicLoad(&bounds[1]),
      atomicLoad(&bounds[2]),
      ~atomicLoad(&bounds[3]),
    );
  }
  let all_seen = workgroupUniformLoad(&sight);
  let begin = select(all_seen.x / CELLS, 0u, all_seen.y == 0u);
  let z = tile.z + begin / SPAN * u32(WINDOW != 0xffffffffu);
  let start = max(z * SPAN, begin);
  // A split that no row sees makes zeros, which a workgroup writes that sees no others.
  let stop = max(min((z + 1u) * SPAN, (all_seen.y + CELLS - 1u) / CELLS), start + DIRECT);
  if (start >= stop || (DIRECT == 0u && all_seen.y == 0u)) {
    return;
  }

  //for u in LOADS
  var kx$u = k_halves[(kv_head * ROOM + start * CELLS) * (1u + KV_LOW) * VEC8S + thread + $uu * THREADS];
  //end
  var unit_k = vec4<f32>();
  var unit_v = vec4<f32>();
  if (thread < CELLS / 4u) {
    unit_k = units[(kv_head * ROOM + start * CELLS) / 4u + thread];
    unit_v = units[((KV_HEADS + kv_head) * ROOM + start * CELLS) / 4u + thread];
  }

  let i = thread % WIDE;
  let pair = 2u * min(i, VEC8S / 2u - 1u);
  let subgroup = thread / LANES;
  let own_query = subgroup / $COLUMNSu * UNIT_M;
  let own_column = subgroup % $COLUMNSu;
  //for u in Q_LOADS
  let query$u = min(thread / WIDE + $uu * BROUGHT, QUERIES - 1u);
  let q_at$u = ((row + min(query$u / GROUP, count - 1u)) * heads + tile.y * GROUP + query$u % GROUP) * (2u * VEC8S) +
    pair;
  let qx$u = Vec8(q[q_at$u], q[q_at$u + VEC8S]);
  let qy$u = Vec8(q[q_at$u + 1u], q[q_at$u + VEC8S + 1u]);
  let q_scale$u = row_scale(qx$u, qy$u);
  if (i == 0u) {
    q_inverse[query$u] = inverse(q_scale$u);
  }
  if (i < VEC8S / 2u) {
    pool[query$u * PITCH + i] = high_halves(qx$u.lo * q_scale$u, qy$u.lo * q_scale$u);
    pool[query$u * PITCH + VEC8S / 2u + i] = high_halves(qx$u.hi * q_scale$u, qy$u.hi * q_scale$u);
  }
  //end
  workgroupBarrier();
  //for k in K_STEPS
  let qh$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
    &pool, own_query * PITCH + $ku * UNIT_K8, PITCH);
  //end
  workgroupBarrier();
  //for l in Q_LOW
  //for u in Q_LOADS
  if (i < VEC8S / 2u) {
    pool[query$u * PITCH + i] = low_halves(qx$u.lo * q_scale$u, qy$u.lo * q_scale$u);
    pool[query$u * PITCH + VEC8S / 2u + i] = low_halves(qx$u.hi * q_scale$u, qy$u.hi * q_scale$u);
  }
  //end
  workgroupBarrier();
  //for k in K_STEPS
  let ql$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
    &pool, own_query * PITCH + $ku * UNIT_K8, PITCH);
  //end
  workgroupBarrier();
  //end

  let query = thread / SHARERS;
  let share = thread % SHARERS;
  let unit = q_inverse[query];
  let own_row = rows[FIRST_ROW + row + min(query / GROUP, count - 1u)];
  let here = own_row.live == 1u && query / GROUP < count;
  let seen = select(vec2<u32>(), vec2<u32>(visible_begin(own_row), visible_end(own_row)), here);
  var peak = NEGATIVE;
  var total = 0.0;
  //for u in SUMS
  var sum$u = vec4<f32>();
  //end

  for (var split = start; split < stop; split++) {
    let first = split * CELLS;
    let asked = (kv_head * ROOM + first) * (1u + KV_LOW) * VEC8S + thread;
    let later = (kv_head * ROOM + min(split + 1u, stop - 1u) * CELLS) * (1u + KV_LOW) * VEC8S + thread;
    let values_of = (kv_head * ROOM + first) * (1u + KV_LOW) * VEC8S;
    let whole = first >= all_seen.z && first + CELLS <= all_seen.w;
    if (thread < CELLS / 4u) {
      k_inverse[thread] = unit_k;
      v_exponent[thread] = unit_v;
      v_power[thread] = powers(unit_v);
    }
    //use attention_units/chunk/scores
    //use attention_units/chunk/weights
    //use attention_units/chunk/values
  }
  if (query / GROUP < count) {
    let at = (row + query / GROUP) * heads + tile.y * GROUP + query % GROUP;
    //for u in SUMS
    put(at, z, $uu / $PART_SUMSu * PART + $uu % $PART_SUMSu * SHARERS + share, sum$u, vec2(peak, total));
    //end
  }
}

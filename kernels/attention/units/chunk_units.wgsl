// softmax(cap(SCALE q . K)) V on matrix units for many rows of one slot, with the bits of attention_units.wgsl, whose
// formulas these are. Keys and values are read as the f16 numbers that halve_cells.wgsl made of them, and each subgroup
// has queries of its own.
//
// One workgroup per (tile of up to $TILE rows, $GROUP query heads of one key-value head, z). A segment is $SPAN splits
// of $CELLS cells, which are merged in order. The workgroup takes segment z, whose sums are kept for
// combine_units.wgsl; or with DIRECT all segments that its rows see, which it merges in order as combine_units.wgsl
// does, in `out`. Queries are numbered row * GROUP + head, $QUERIES with padding. $COLUMNS subgroups share as many
// queries as a unit has rows: each has every $COLUMNS-th tile of their cells and dims. Keys, scores, weights, values
// and sums pass through the pool one after the other: it is small, so that a multiprocessor has room for two
// workgroups, of which one multiplies while the other weighs. Indices are written out, not passed to functions: the
// compiler then knows that they are in range, and loads a matrix with one instruction.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);

//#import lib/rows
//#import lib/soft_cap
//#import lib/visible
//#import lib/kv_vec8
//#import lib/f16_rows
//#import lib/powers_of_two

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override LAST: u32; // rows of the last tile
override FIRST_ROW: u32; // of `rows`
override ROOM: u32; // cells of a head in `k_halves` and `v_halves`
override SCALE: f32; // of scores
//#if !DIRECT
override KEPT: u32; // partial sums of a query
//#endif

const CELLS = $CELLSu; // of a split
const THREADS = $THREADSu;
const LANES = $LANESu;
const GROUP = $GROUPu; // query heads of a workgroup
const TILE = $TILEu; // rows of a workgroup
const QUERIES = $QUERIESu;
const SPAN = $SPANu; // splits of a segment
const DIRECT = $DIRECTu; // 1: a workgroup has all segments that its rows see
const KV_LOW = $KV_LOWu; // 1: keys and values have lo
const ROW = (1u + KV_LOW) * VEC8S; // vec8s of a cell's keys or values, lo behind hi
const K_PART = VEC8S / $K_PARTSu; // vec8s of a head whose keys pass at a time
const K_PITCH = K_PART + 1u; // of a cell; odd: rows begin in different banks
const K_LOW_AT = CELLS * K_PITCH + K_PART % 8u; // lo of keys, in other banks than hi
const K_WIDE = $K_WIDEu; // invocations that load a cell's
const K_CELLS = THREADS / K_WIDE; // cells at a time
const V_PART = VEC8S / $PARTSu; // of values
const V_PITCH = V_PART + 1u;
const V_LOW_AT = CELLS * V_PITCH + V_PART % 8u;
const V_WIDE = $V_WIDEu;
const V_CELLS = THREADS / V_WIDE;
const WIDE = $WIDEu; // invocations that load a query, two vec8s each
const LOADED = THREADS / WIDE; // queries that are loaded at a time
const PITCH = VEC8S + 1u; // eight f16 each; odd: rows begin in different banks
const SCORE_PITCH = CELLS / 4u + SHARERS; // f32, later weights
const PART = 2u * V_PART; // fours of a head whose sums pass at a time
const PART_PITCH = PART + SHARERS;
const SHARERS = $SHARERSu; // invocations of a query's softmax
const SHARED = CELLS / SHARERS; // cells of each
const SHARE_PITCH = SHARED / 4u + 1u; // fours of those; odd: they begin in different banks
const UNIT_M = $UNIT_Mu;
const UNIT_K8 = $UNIT_Ku / 8u;
const UNIT_N4 = $UNIT_Nu / 4u;
const UNIT_N8 = $UNIT_Nu / 8u;
const NEGATIVE = -2.0e38; // below every score; 2^(1.5 NEGATIVE) is 0
const LOG2_E = 1.4426950408889634;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
// These are only read, but not declared so: a driver would move the loads behind barriers to where they are used, and
// wait there.
// [KV_HEADS, ROOM, 1 + KV_LOW, VEC8S], eight f16
@group(0) @binding(1) var<storage, read_write> k_halves: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> v_halves: array<vec4<u32>>; // as k_halves
// [2, KV_HEADS, ROOM / 4]: of each cell 1 / scale of its key, then log2(1 / scale) of its value
@group(0) @binding(3) var<storage, read_write> units: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
//#if DIRECT
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
//#else
@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KEPT, 2 VEC8S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KEPT]: peak, base 2, and total
//#endif

var<workgroup> pool: array<vec4<u32>, $POOL>;
// Maxima over the tile's rows: of ~ the first cell that a row sees, one past its last cell, its first cell, and ~ one
// past its last cell.
var<workgroup> bounds: array<atomic<u32>, 4>;
var<workgroup> sight: vec4<u32>;
var<workgroup> q_inverse: array<f32, QUERIES>; // 1 / scale
var<workgroup> k_scale: array<vec4<f32>, CELLS / 4u>; // 1 / scale, times SCALE where scores are not capped
var<workgroup> v_exponent: array<vec4<f32>, CELLS / 4u>; // e
var<workgroup> v_power: array<vec4<f32>, CELLS / 4u>; // 2^e

//#if DIRECT
// Peak, base 2, and total of the segments before, for each invocation: here and not in registers, which are scarce.
var<workgroup> merged: array<vec2<f32>, THREADS>;

struct Segment {
  last: bool, // that the rows see
  seen: bool, // the query sees some of its cells
  before: f32, // the total of those before
  total: f32, // with its own
  kept: f32, // factors of the sums before and of its own
  taken: f32,
}

fn begin_segments(thread: u32) {
  merged[thread] = vec2(NEGATIVE, 0.0);
}

// Merges the peak and total of a segment into those before.
fn end_segment(thread: u32, number: u32, last: bool, stat: vec2<f32>) -> Segment {
  let before = merged[thread];
  let peak = max(before.x, stat.x);
  let kept = power(before.x - peak);
  let taken = power(stat.x - peak);
  let total = fma(before.y, kept, stat.y * taken);
  merged[thread] = vec2(peak, total);
  return Segment(last, stat.y > 0.0, before.y, total, kept, taken);
}

// Merges a four of the segment's sum into the output; divides it by the total after the last segment.
fn put_segment(segment: Segment, query: u32, quad: u32, sum: vec4<f32>) {
  let at = query * (2u * VEC8S) + quad;
  var all = vec4<f32>();
  if (segment.before > 0.0) {
    all = out[at];
  }
  if (segment.seen) {
    all = fma(all, vec4(segment.kept), sum * segment.taken);
  }
  if (segment.last && segment.total > 0.0) {
    all /= segment.total;
  }
  out[at] = all;
}
//#else
// Stores a four of partial sum z of a query, with its peak and total.
fn put(query: u32, z: u32, quad: u32, sum: vec4<f32>, stat: vec2<f32>) {
  if (stat.y > 0.0) {
    let at = query * KEPT + z;
    sums[at * (2u * VEC8S) + quad] = sum;
    if (quad == 0u) {
      stats[at] = stat;
    }
  }
}

struct Segment {
  number: u32,
  stat: vec2<f32>, // peak, base 2, and total
}

fn begin_segments(thread: u32) {
}

fn end_segment(thread: u32, number: u32, last: bool, stat: vec2<f32>) -> Segment {
  return Segment(number, stat);
}

fn put_segment(segment: Segment, query: u32, quad: u32, sum: vec4<f32>) {
  put(query, segment.number, quad, sum, segment.stat);
}
//#endif

fn most_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

// The scores of the four cells from `cell` on, with NEGATIVE for cells that are not seen.
fn seen_of(score: vec4<f32>, cell: u32, seen: vec2<u32>) -> vec4<f32> {
  let cells = vec4(cell) + vec4(0u, 1u, 2u, 3u);
  return select(vec4(NEGATIVE), score, (cells >= vec4(seen.x)) & (cells < vec4(seen.y)));
}

fn weights_of(score: vec4<f32>, peak: f32) -> vec4<f32> {
  return exp2(fma(score, vec4(LOG2_E), vec4(-peak)));
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
  // With DIRECT a workgroup takes at least one split: if no row sees it, this makes the zeros that are written.
  let most = select((z + 1u) * SPAN, 0xffffffffu, DIRECT == 1u);
  let stop = max(min(most, (all_seen.y + CELLS - 1u) / CELLS), start + DIRECT);
  if (start >= stop || (DIRECT == 0u && all_seen.y == 0u)) {
    return;
  }

  let k_own = min(thread % K_WIDE, (1u + KV_LOW) * K_PART - 1u);
  let k_from = thread / K_WIDE * ROW + k_own / K_PART * VEC8S + k_own % K_PART;
  let k_to = k_own / K_PART * K_LOW_AT + thread / K_WIDE * K_PITCH + k_own % K_PART;
  let v_own = min(thread % V_WIDE, (1u + KV_LOW) * V_PART - 1u);
  let v_from = thread / V_WIDE * ROW + v_own / V_PART * VEC8S + v_own % V_PART;
  let v_to = v_own / V_PART * V_LOW_AT + thread / V_WIDE * V_PITCH + v_own % V_PART;
  //#for u in LOADS
  var kx$u = k_halves[(kv_head * ROOM + start * CELLS) * ROW + k_from + $uu * (K_CELLS * ROW)];
  //#endfor
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
  //#for u in Q_LOADS
  let query$u = min(thread / WIDE + $uu * LOADED, QUERIES - 1u);
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
  //#endfor
  workgroupBarrier();
  //#for k in K_STEPS
  let qh$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
    &pool, own_query * PITCH + $ku * UNIT_K8, PITCH);
  //#endfor
  workgroupBarrier();
  //#for l in Q_LOW
  //#for u in Q_LOADS
  if (i < VEC8S / 2u) {
    pool[query$u * PITCH + i] = low_halves(qx$u.lo * q_scale$u, qy$u.lo * q_scale$u);
    pool[query$u * PITCH + VEC8S / 2u + i] = low_halves(qx$u.hi * q_scale$u, qy$u.hi * q_scale$u);
  }
  //#endfor
  workgroupBarrier();
  //#for k in K_STEPS
  let ql$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
    &pool, own_query * PITCH + $ku * UNIT_K8, PITCH);
  //#endfor
  workgroupBarrier();
  //#endfor

  let query = thread / SHARERS;
  let share = thread % SHARERS;
  let own_scores = query * SCORE_PITCH + share * SHARE_PITCH;
  let unit = q_inverse[query];
  var peak = NEGATIVE;
  var total = 0.0;
  let own_row = rows[FIRST_ROW + row + min(query / GROUP, count - 1u)];
  let own_sight = vec2(visible_begin(own_row), visible_end(own_row));
  let seen = select(vec2<u32>(), own_sight, query / GROUP < count);
  begin_segments(thread);
  //#for u in SUMS
  var sum$u = vec4<f32>();
  //#endfor

  for (var split = start; split < stop; split++) {
    let first = split * CELLS;
    let keys_at = (kv_head * ROOM + first) * ROW + k_from;
    let later_at = (kv_head * ROOM + min(split + 1u, stop - 1u) * CELLS) * ROW + k_from;
    let values_at = (kv_head * ROOM + first) * ROW + v_from;
    let whole = first >= all_seen.z && first + CELLS <= all_seen.w;
    if (thread < CELLS / 4u) {
      k_scale[thread] = unit_k * select(SCALE, 1.0, CAP != 0.0);
      v_exponent[thread] = unit_v;
      v_power[thread] = powers(unit_v);
    }
    // Scores S, K_PART vec8s of the head at a time; the next vec8s are loaded meanwhile.
    //#for c in OWN_CELLS
    var s$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
    //#endfor
    //#for t in K_PARTS
    //#for u in LOADS
    pool[k_to + $uu * (K_CELLS * K_PITCH)] = kx$u;
    //#endfor
    workgroupBarrier();
    if ($tu + 1u < $K_PARTSu) {
      //#for u in LOADS
      kx$u = k_halves[keys_at + $(t + 1)u * K_PART + $uu * (K_CELLS * ROW)];
      //#endfor
    }
    //#for k in PART_STEPS
    //#for c in OWN_CELLS
    {
      let at = ($cu * $COLUMNSu + own_column) * $UNIT_Nu * K_PITCH + $ku * UNIT_K8;
      let kh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at, K_PITCH);
      //#for l in Q_LOW
      s$c = subgroupMatrixMultiplyAccumulate(ql$(t * PART_STEPS + k), kh, s$c);
      //#endfor
      //#for l in KV_LOW
      let kl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at + K_LOW_AT, K_PITCH);
      s$c = subgroupMatrixMultiplyAccumulate(qh$(t * PART_STEPS + k), kl, s$c);
      //#endfor
      s$c = subgroupMatrixMultiplyAccumulate(qh$(t * PART_STEPS + k), kh, s$c);
    }
    //#endfor
    //#endfor
    workgroupBarrier();
    //#endfor
    //#for c in OWN_CELLS
    {
      let column = ($cu * $COLUMNSu + own_column) * $UNIT_Nu;
      let at = own_query * SCORE_PITCH + column / SHARED * SHARE_PITCH + column % SHARED / 4u;
      subgroupMatrixStore<row_major>(&pool, at, s$c, SCORE_PITCH);
    }
    //#endfor
    workgroupBarrier();
    // The softmax of the split: SHARERS invocations share a query, each writes its weights in the place of its scores.
    // Totals are added by a tree over eights of cells, whichever invocations have them. The first part of the values is
    // loaded before.
    //#for u in V_LOADS
    var vx$u = v_halves[values_at + $uu * (V_CELLS * ROW)];
    //#endfor
    var top = NEGATIVE;
    var heavy = NEGATIVE; // the largest of score and exponent together, base 2
    //#for g in SHARED_FOURS
    let sums_of$g = bitcast<vec4<f32>>(pool[own_scores + $gu]);
    var score$g = sums_of$g * unit * k_scale[share * (SHARED / 4u) + $gu];
    if (CAP != 0.0) {
      // Some drivers fold SCALE / CAP into one number: as in the other kernel, the two must be side by side here.
      score$g = capped(score$g * SCALE);
    }
    //#endfor
    if (!whole) {
      //#for g in SHARED_FOURS
      score$g = seen_of(score$g, first + share * SHARED + $(4 * g)u, seen);
      //#endfor
    }
    //#for g in SHARED_FOURS
    top = max(top, most_of(score$g));
    heavy = max(heavy, most_of(fma(score$g, vec4(LOG2_E), v_exponent[share * (SHARED / 4u) + $gu])));
    //#endfor
    //#for s in SHARER_STEPS
    top = max(top, subgroupShuffleXor(top, 1u << $su));
    heavy = max(heavy, subgroupShuffleXor(heavy, 1u << $su));
    //#endfor
    let any = top > NEGATIVE;
    let own_peak = select(0.0, ceil(top * LOG2_E), any);
    let lift = select(0.0, 14.0 + own_peak - ceil(heavy), any); // c
    let lifted = power(lift);
    //#for h in SHARED_EIGHTS
    let a$h = weights_of(score$(2 * h), own_peak);
    let b$h = weights_of(score$(2 * h + 1), own_peak);
    {
      let pa = a$h * v_power[share * (SHARED / 4u) + $(2 * h)u] * lifted;
      let pb = b$h * v_power[share * (SHARED / 4u) + $(2 * h + 1)u] * lifted;
      if ($Q_LOWu == 0u) {
        pool[own_scores + $hu] = packed(pa, pb);
      } else {
        pool[own_scores + $hu] = high_halves(pa, pb);
        pool[own_scores + SHARED / 8u + $hu] = low_halves(pa, pb);
      }
    }
    let four$h = a$h + b$h;
    let added$h = (four$h.x + four$h.y) + (four$h.z + four$h.w);
    //#endfor
    //#if SHARED_ONE
    var added = added0;
    //#endif
    //#if SHARED_TWO
    var added = added0 + added1;
    //#endif
    //#if SHARED_FOUR
    var added = (added0 + added1) + (added2 + added3);
    //#endif
    //#if SHARED_EIGHT
    var added = ((added0 + added1) + (added2 + added3)) + ((added4 + added5) + (added6 + added7));
    //#endif
    //#for s in SHARER_STEPS
    added += subgroupShuffleXor(added, 1u << $su);
    //#endfor
    let new_peak = max(peak, own_peak);
    let kept = select(1.0, power(peak - new_peak), any);
    let taken = select(0.0, power(own_peak - new_peak), any);
    let part_taken = power(-lift) * taken;
    total = fma(total, kept, added * taken);
    peak = select(peak, new_peak, any);
    workgroupBarrier();
    // The weighted values of the split, PART fours of a head at a time, whose sums go through the pool to those of the
    // splits before. The next part is loaded meanwhile, and behind the last one the next split's keys.
    //#for k in C_STEPS
    let weights$k = own_query * SCORE_PITCH + $ku * $UNIT_Ku / SHARED * SHARE_PITCH + $ku * $UNIT_Ku % SHARED / 8u;
    let ph$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&pool, weights$k, SCORE_PITCH);
    //#for l in Q_LOW
    let pl$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
      &pool, weights$k + SHARED / 8u, SCORE_PITCH);
    //#endfor
    //#endfor
    workgroupBarrier();
    //#for p in PARTS
    {
      //#for u in V_LOADS
      pool[v_to + $uu * (V_CELLS * V_PITCH)] = vx$u;
      //#endfor
      workgroupBarrier();
      if ($pu + 1u < $PARTSu) {
        //#for u in V_LOADS
        vx$u = v_halves[values_at + $(p + 1)u * V_PART + $uu * (V_CELLS * ROW)];
        //#endfor
      } else {
        //#for u in LOADS
        kx$u = k_halves[later_at + $uu * (K_CELLS * ROW)];
        //#endfor
      }
      //#for d in PART_OWN
      var o$d = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
      //#endfor
      //#for k in C_STEPS
      //#for d in PART_OWN
      {
        let at = $ku * $UNIT_Ku * V_PITCH + ($du * $COLUMNSu + own_column) * UNIT_N8;
        let vh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at, V_PITCH);
        //#for l in Q_LOW
        o$d = subgroupMatrixMultiplyAccumulate(pl$k, vh, o$d);
        //#endfor
        //#for l in KV_LOW
        let vl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at + V_LOW_AT, V_PITCH);
        o$d = subgroupMatrixMultiplyAccumulate(ph$k, vl, o$d);
        //#endfor
        o$d = subgroupMatrixMultiplyAccumulate(ph$k, vh, o$d);
      }
      //#endfor
      //#endfor
      workgroupBarrier();
      //#for d in PART_OWN
      subgroupMatrixStore<row_major>(
        &pool, own_query * PART_PITCH + ($du * $COLUMNSu + own_column) * UNIT_N4, o$d, PART_PITCH);
      //#endfor
      workgroupBarrier();
      //#for u in PART_SUMS
      {
        let part = bitcast<vec4<f32>>(pool[query * PART_PITCH + $uu * SHARERS + share]);
        sum$(p * PART_SUMS + u) = fma(sum$(p * PART_SUMS + u), vec4(kept), part * part_taken);
      }
      //#endfor
      workgroupBarrier();
    }
    //#endfor
    if (thread < CELLS / 4u) {
      let next = (kv_head * ROOM + min(split + 1u, stop - 1u) * CELLS) / 4u + thread;
      unit_k = units[next];
      unit_v = units[KV_HEADS * ROOM / 4u + next];
    }
    if ((split + 1u) % SPAN == 0u || split + 1u == stop) {
      // The sums of the segment are complete; those of the next one begin with zero.
      let segment = end_segment(thread, split / SPAN, split + 1u == stop, vec2(peak, total));
      if (query / GROUP < count) {
        let at = (row + query / GROUP) * heads + tile.y * GROUP + query % GROUP;
        //#for u in SUMS
        put_segment(segment, at, $uu / $PART_SUMSu * PART + $uu % $PART_SUMSu * SHARERS + share, sum$u);
        //#endfor
      }
      peak = NEGATIVE;
      total = 0.0;
      //#for u in SUMS
      sum$u = vec4<f32>();
      //#endfor
    }
  }
}

// softmax(cap(SCALE q . K)) V on matrix units that multiply f16 and add f32: sums, totals and peaks of splits of
// $CELLS cells of keys and values. The splits of a workgroup are merged in order, or with UNMERGED kept as they are.
//
// One workgroup per (tile of up to $TILE rows of a slot, $GROUP query heads of one key-value head, z): $SPAN splits
// from z * SPAN on. Queries are numbered row * GROUP + head, $QUERIES with padding. For a split:
//   scores   S = Q K^T. q = (hi + lo) / scale, two f16 numbers, the scale a power of two that its largest number
//            decides; keys alike, of 16 bits hi alone. hi * hi, hi * lo and lo * hi are added in order of the head.
//   weights  w = 2^(S log2 e - P), P the row's peak, rounded up to a whole number
//   values   w V. v = (hi + lo) 2^e, the cell's power of two; w 2^(e + c) is hi + lo too, c such that f16 has
//            room: c is the row's own, of the cells that it sees.
// Powers of two are exact, so sums of splits are merged with one rounding each, in order of the cells:
//   sum = sum 2^(old peak - new peak) + the split's sum 2^(its peak - new peak).
// A split's sums begin with zero and its order is that of its cells, so a row has the same bits in
// whatever tile it is, and whether splits are merged here or by combine_units.wgsl. Cells that a row does not see
// have weight 0, splits of which it sees none leave its sums as they are.
//
// With DIRECT all splits that a row sees are one workgroup's, which writes the row's output; otherwise sums are kept
// for combine_units.wgsl. Paths and windows: as in attention/attention.wgsl; SPAN is 1 where rows may have paths.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
diagnostic(off, subgroup_uniformity);

//#import lib/rows
//#import lib/visible
//#import lib/kv_load
//#import lib/f16_rows
//#import lib/soft_cap
//#import lib/powers_of_two

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override PER_SLOT: u32; // rows of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores
override PATHS: u32; // 1: rows may have paths; 0: none is looked at
//#if !DIRECT
override KEPT: u32; // partial sums of a query
//#endif

const GROUP = $GROUPu; // query heads of a workgroup
const TILE = $TILEu; // rows of a workgroup
const SPLIT_CELLS = $CELLSu;
const PATH_GROUPS = $PATH_GROUPSu; // workgroups along z before those of all splits, with PATHS
const THREADS = $THREADSu;
const QUERIES = $QUERIESu;
const SPAN = $SPANu; // splits of a workgroup
const DIRECT = $DIRECTu; // 1: its rows see no others
const UNMERGED = $UNMERGEDu; // 1: each split's sums are kept, not merged here
const WIDE = $WIDEu; // invocations that load a row of keys or values, two vec8s each
const LOADED = THREADS / WIDE; // rows that are loaded at a time
const PITCH = VEC8S + 1u; // eight f16 each; odd: rows begin in different banks
const KV_LOW_AT = $KV_LOWu * SPLIT_CELLS * PITCH; // lo of keys and values; 0: they have none
const Q_LOW_AT = $Q_LOWu * QUERIES * PITCH;
const Q_AT = $Q_ATu; // of queries that stay in the pool
const SCORES_AT = $SCORES_ATu; // [QUERIES, SCORE_PITCH]: f32, later weights: hi, then lo
const SCORE_PITCH = SPLIT_CELLS / 4u + 1u;
const SUM_PITCH = 2u * VEC8S + 1u; // [QUERIES, SUM_PITCH], in the place of keys and values
const SHARERS = $SHARERSu; // invocations of a query's softmax
const SHARED = SPLIT_CELLS / SHARERS; // cells of each
const UNIT_K8 = $UNIT_Ku / 8u;
const UNIT_N4 = $UNIT_Nu / 4u;
const UNIT_N8 = $UNIT_Nu / 8u;
const NEGATIVE = -3.0e38; // below every score
const LOG2_E = 1.4426950408889634;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
//#if DIRECT
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
//#else
@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KEPT, 2 VEC8S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KEPT]: peak, base 2, and total
//#endif

var<workgroup> pool: array<vec4<u32>, $POOL>;
var<workgroup> seen: array<vec2<u32>, QUERIES>; // first cell and one past the last; 0, 0 where there is no query
var<workgroup> earliest: atomic<u32>; // ~ the first cell that some row sees, where there are windows
var<workgroup> bounds: array<atomic<u32>, 3>; // the largest slot, ~begin and end of the rows that are summed here
var<workgroup> sight: vec3<u32>; // slot, first cell and one past the last that some of them sees
var<workgroup> places: array<u32, 2u * SPLIT_CELLS>; // rows of keys and values of this split and the next one
var<workgroup> q_inverse: array<f32, QUERIES>; // 1 / scale
var<workgroup> k_inverse: array<f32, SPLIT_CELLS>;
var<workgroup> v_exponent: array<f32, SPLIT_CELLS>; // e
var<workgroup> shares: array<vec3<f32>, QUERIES>; // of the sum so far, of the split's; 1: the row sees some
var<workgroup> ends: array<vec2<f32>, QUERIES>; // peak and total

//#import lib/stored

// Stores vec8s 2i and 2i + 1 of a row, scaled, as f16 in the order of the head from `to` on, lo `low_at` behind hi.
fn put_pair(to: u32, low_at: u32, i: u32, x: Vec8, y: Vec8, scale: f32) {
  if (i >= VEC8S / 2u) {
    return;
  }
  if (low_at == 0u) {
    pool[to + i] = packed(x.lo * scale, y.lo * scale);
    pool[to + VEC8S / 2u + i] = packed(x.hi * scale, y.hi * scale);
  } else {
    pool[to + i] = high_halves(x.lo * scale, y.lo * scale);
    pool[to + VEC8S / 2u + i] = high_halves(x.hi * scale, y.hi * scale);
    pool[to + low_at + i] = low_halves(x.lo * scale, y.lo * scale);
    pool[to + low_at + VEC8S / 2u + i] = low_halves(x.hi * scale, y.hi * scale);
  }
}

// Four of the split's scores from `c` on; NEGATIVE where they are not seen.
fn scores_of(query: u32, c: u32, first: u32, unit: f32) -> vec4<f32> {
  let sums = bitcast<vec4<f32>>(pool[SCORES_AT + query * SCORE_PITCH + c / 4u]);
  let back = vec4(k_inverse[c], k_inverse[c + 1u], k_inverse[c + 2u], k_inverse[c + 3u]);
  let cells = vec4(first + c) + vec4(0u, 1u, 2u, 3u);
  let sight = seen[query];
  let visible = (cells >= vec4(sight.x)) & (cells < vec4(sight.y));
  return select(vec4(NEGATIVE), capped(sums * unit * back * SCALE), visible);
}

fn exponents_of(c: u32) -> vec4<f32> {
  return vec4(v_exponent[c], v_exponent[c + 1u], v_exponent[c + 2u], v_exponent[c + 3u]);
}

fn most_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

fn weights_of(score: vec4<f32>, peak: f32) -> vec4<f32> {
  return select(exp2(fma(score, vec4(LOG2_E), vec4(-peak))), vec4<f32>(), score == vec4(NEGATIVE));
}

// Stores the weights of eight cells from `c` on in the place of their scores. Returns the sum of the weights.
fn weigh(query: u32, c: u32, a: vec4<f32>, b: vec4<f32>, peak: f32, lift: f32) -> f32 {
  let wa = weights_of(a, peak);
  let wb = weights_of(b, peak);
  let pa = wa * powers(exponents_of(c) + vec4(lift));
  let pb = wb * powers(exponents_of(c + 4u) + vec4(lift));
  let at = SCORES_AT + query * SCORE_PITCH + c / 8u;
  if (Q_LOW_AT == 0u) {
    pool[at] = packed(pa, pb);
  } else {
    pool[at] = high_halves(pa, pb);
    pool[at + SPLIT_CELLS / 8u] = low_halves(pa, pb);
  }
  let sum = wa + wb;
  return (sum.x + sum.y) + (sum.z + sum.w);
}

//#if DIRECT
// Writes a four of the output of a query; zeros for padding.
fn put(query: u32, z: u32, quad: u32, sum: vec4<f32>, stat: vec2<f32>) {
  out[query * (2u * VEC8S) + quad] = select(vec4<f32>(), sum / stat.y, stat.y > 0.0);
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
//#endif

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) launched: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let place = launched.x - 1u - tile.x; // those that see most begin first
  let tiles = (PER_SLOT + TILE - 1u) / TILE;
  let within = place % tiles * TILE;
  var row = place / tiles * PER_SLOT + within;
  var count = min(TILE, PER_SLOT - within);
  let before = PATHS * PATH_GROUPS;
  var z = tile.z - before;
  if (WINDOW != 0xffffffffu) {
    if (thread < count) {
      let own = rows[FIRST_ROW + row + thread];
      if (own.live == 1u) {
        atomicMax(&earliest, ~visible_begin(own));
      }
    }
    workgroupBarrier();
    if (thread == 0u) {
      let first = ~atomicLoad(&earliest);
      sight.x = select(first / (SPLIT_CELLS * SPAN), 0u, first == 0xffffffffu);
    }
    z += workgroupUniformLoad(&sight).x;
  }
  let alone = PATHS == 1u && (TILE == 1u || tile.z < before);
  if (tile.z < before) {
    if (tile.z / 2u >= count) {
      return;
    }
    row += tile.z / 2u;
    count = 1u;
    z = rows[FIRST_ROW + row].base / SPLIT_CELLS + tile.z % 2u;
  }
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;

  // Rows that are summed here, and the cells that some of them sees.
  let parted = PATHS == 1u && TILE > 1u;
  let past = (z + 1u) * SPLIT_CELLS; // of the only split, where there are paths
  if (thread < QUERIES) {
    let own = rows[FIRST_ROW + row + min(thread / GROUP, count - 1u)];
    let here = own.live == 1u && thread / GROUP < count && !(parted && scattered(own, past) != alone);
    seen[thread] = select(vec2<u32>(), vec2<u32>(visible_begin(own), visible_end(own)), here);
    if (here && thread % GROUP == 0u) {
      atomicMax(&bounds[0], own.slot);
      atomicMax(&bounds[1], ~visible_begin(own));
      atomicMax(&bounds[2], visible_end(own));
    }
  }
  workgroupBarrier();
  if (thread == 0u) {
    sight = vec3<u32>(atomicLoad(&bounds[0]), ~atomicLoad(&bounds[1]), atomicLoad(&bounds[2]));
  }
  let all_seen = workgroupUniformLoad(&sight);
  let slot = all_seen.x;
  let begin = all_seen.y;
  let end = all_seen.z;
  let last = max(end, 1u) - 1u;
  let start = max(z * SPAN, select(begin / SPLIT_CELLS, 0u, end == 0u));
  // With DIRECT a workgroup takes at least one split: if no row sees it, this makes the zeros that are written.
  let stop = max(min((z + 1u) * SPAN, (end + SPLIT_CELLS - 1u) / SPLIT_CELLS), start + DIRECT);
  if (start >= stop) {
    return;
  }
  if (thread < SPLIT_CELLS) {
    var cell = min(start * SPLIT_CELLS + thread, last);
    if (alone) {
      let own = rows[FIRST_ROW + row];
      if (scattered(own, past)) {
        cell = physical(own, cell);
      }
    }
    places[start % 2u * SPLIT_CELLS + thread] = stored(slot, kv_head, cell);
  }
  workgroupBarrier();

  let load_row = thread / WIDE; // row
  let i = thread % WIDE; // pair of vec8s
  let pair = 2u * min(i, VEC8S / 2u - 1u);
  //#for u in LOADS
  var kx$u = load_key(places[start % 2u * SPLIT_CELLS + load_row + $uu * LOADED], pair);
  var ky$u = load_key(places[start % 2u * SPLIT_CELLS + load_row + $uu * LOADED], pair + 1u);
  //#endfor
  //#if EARLY
  //#for u in LOADS
  var vx$u = load_value(places[start % 2u * SPLIT_CELLS + load_row + $uu * LOADED], pair);
  var vy$u = load_value(places[start % 2u * SPLIT_CELLS + load_row + $uu * LOADED], pair + 1u);
  //#endfor
  //#endif
  //#for u in Q_LOADS
  {
    let query = load_row + $uu * LOADED;
    let own = min(query / GROUP, count - 1u);
    let at = ((row + own) * heads + tile.y * GROUP + query % GROUP) * (2u * VEC8S) + pair;
    let x = Vec8(q[at], q[at + VEC8S]);
    let y = Vec8(q[at + 1u], q[at + VEC8S + 1u]);
    let scale = row_scale(x, y);
    if (query < QUERIES) {
      put_pair(Q_AT + query * PITCH, Q_LOW_AT, i, x, y, scale);
      if (i == 0u) {
        q_inverse[query] = inverse(scale);
      }
    }
  }
  //#endfor
  workgroupBarrier();
  let subgroup = thread / $LANESu;
  let own_query = subgroup % $GRID_Ru * $UNIT_Mu;
  let own_column = subgroup / $GRID_Ru;
  //#if IN_REGISTERS
  //#for k in K_STEPS
  let qh$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
    &pool, own_query * PITCH + $ku * UNIT_K8, PITCH);
  //#for l in Q_LOW
  let ql$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
    &pool, Q_LOW_AT + own_query * PITCH + $ku * UNIT_K8, PITCH);
  //#endfor
  //#endfor
  workgroupBarrier();
  //#endif

  let query = min(thread / SHARERS, QUERIES - 1u); // those left over do the last one's, too
  let share = thread % SHARERS;
  let unit = q_inverse[query];
  var peak = NEGATIVE;
  var total = 0.0;
  //#for u in SUMS
  var sum$u = vec4<f32>();
  //#endfor

  for (var split = start; split < stop; split++) {
    let first = split * SPLIT_CELLS;
    let now = split % 2u * SPLIT_CELLS;
    let next = SPLIT_CELLS - now;
    //#if MANY
    if (thread < SPLIT_CELLS) {
      places[next + thread] = stored(slot, kv_head, min(first + SPLIT_CELLS + thread, last));
    }
    //#endif
    //#for u in LOADS
    {
      let x = vec8_of(kx$u);
      let y = vec8_of(ky$u);
      let scale = row_scale(x, y);
      put_pair((load_row + $uu * LOADED) * PITCH, KV_LOW_AT, i, x, y, scale);
      if (i == 0u) {
        k_inverse[load_row + $uu * LOADED] = inverse(scale);
      }
    }
    //#endfor
    workgroupBarrier();
    //#if !EARLY
    //#for u in LOADS
    let vx$u = load_value(places[now + load_row + $uu * LOADED], pair);
    let vy$u = load_value(places[now + load_row + $uu * LOADED], pair + 1u);
    //#endfor
    //#endif

    // Scores S by tiles of the unit: products of lo first.

    //#for c in OWN_CELLS
    var s$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
    //#endfor
    //#for k in K_STEPS
    //#if !IN_REGISTERS
    let qh$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
      &pool, Q_AT + own_query * PITCH + $ku * UNIT_K8, PITCH);
    //#for l in Q_LOW
    let ql$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
      &pool, Q_AT + Q_LOW_AT + own_query * PITCH + $ku * UNIT_K8, PITCH);
    //#endfor
    //#endif
    //#for c in OWN_CELLS
    if (own_column * $OWN_CELLSu + $cu < $CELL_TILESu) {
      let at = (own_column * $OWN_CELLSu + $cu) * $UNIT_Nu * PITCH + $ku * UNIT_K8;
      let kh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at, PITCH);
      //#for l in Q_LOW
      s$c = subgroupMatrixMultiplyAccumulate(ql$k, kh, s$c);
      //#endfor
      //#for l in KV_LOW
      let kl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at + KV_LOW_AT, PITCH);
      s$c = subgroupMatrixMultiplyAccumulate(qh$k, kl, s$c);
      //#endfor
      s$c = subgroupMatrixMultiplyAccumulate(qh$k, kh, s$c);
    }
    //#endfor
    //#endfor
    //#for c in OWN_CELLS
    if (own_column * $OWN_CELLSu + $cu < $CELL_TILESu) {
      subgroupMatrixStore<row_major>(
        &pool, SCORES_AT + own_query * SCORE_PITCH + (own_column * $OWN_CELLSu + $cu) * UNIT_N4, s$c, SCORE_PITCH);
    }
    //#endfor
    workgroupBarrier();

    //#for u in LOADS
    {
      let x = vec8_of(vx$u);
      let y = vec8_of(vy$u);
      let scale = row_scale(x, y);
      put_pair((load_row + $uu * LOADED) * PITCH, KV_LOW_AT, i, x, y, scale);
      if (i == 0u) {
        v_exponent[load_row + $uu * LOADED] = exponent(inverse(scale));
      }
    }
    //#endfor
    workgroupBarrier();
    //#if MANY
    //#for u in LOADS
    kx$u = load_key(places[next + load_row + $uu * LOADED], pair);
    ky$u = load_key(places[next + load_row + $uu * LOADED], pair + 1u);
    //#endfor
    //#if EARLY
    //#for u in LOADS
    vx$u = load_value(places[next + load_row + $uu * LOADED], pair);
    vy$u = load_value(places[next + load_row + $uu * LOADED], pair + 1u);
    //#endfor
    //#endif
    //#endif

    // The softmax of the split: SHARERS invocations share a query. Totals are added by a tree over eights of cells,
    // whichever invocations have them.
    var top = NEGATIVE;
    var heavy = NEGATIVE; // the largest of score and exponent together, base 2
    //#for g in SHARED_FOURS
    let score$g = scores_of(query, share * SHARED + $(4 * g)u, first, unit);
    top = max(top, most_of(score$g));
    heavy = max(heavy, most_of(fma(score$g, vec4(LOG2_E), exponents_of(share * SHARED + $(4 * g)u))));
    //#endfor
    //#for s in SHARER_STEPS
    top = max(top, subgroupShuffleXor(top, 1u << $su));
    heavy = max(heavy, subgroupShuffleXor(heavy, 1u << $su));
    //#endfor
    let any = top > NEGATIVE;
    let own_peak = select(0.0, ceil(top * LOG2_E), any);
    let lift = select(0.0, 14.0 + own_peak - ceil(heavy), any); // c
    workgroupBarrier();
    //#for h in SHARED_EIGHTS
    let added$h = weigh(query, share * SHARED + $(8 * h)u, score$(2 * h), score$(2 * h + 1), own_peak, lift);
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
    //#for s in SHARER_STEPS
    added += subgroupShuffleXor(added, 1u << $su);
    //#endfor
    let new_peak = max(peak, own_peak);
    let kept = power(peak - new_peak);
    let taken = power(own_peak - new_peak);
    total = select(total, fma(total, kept, added * taken), any);
    peak = select(peak, new_peak, any);
    if (share == 0u) {
      shares[query] = select(vec3<f32>(), vec3(kept, power(-lift) * taken, 1.0), any);
    }
    workgroupBarrier();

    // The weighted values of the split by tiles of the unit, products of lo first; then through the pool to
    // the sums of the splits so far.
    //#for d in OWN_DIMS
    var o$d = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
    //#endfor
    //#for k in C_STEPS
    {
      let weights = SCORES_AT + own_query * SCORE_PITCH + $ku * UNIT_K8;
      let ph = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&pool, weights, SCORE_PITCH);
      //#for l in Q_LOW
      let pl = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
        &pool, weights + SPLIT_CELLS / 8u, SCORE_PITCH);
      //#endfor
      //#for d in OWN_DIMS
      if (own_column * $OWN_DIMSu + $du < $DIM_TILESu) {
        let at = $ku * $UNIT_Ku * PITCH + (own_column * $OWN_DIMSu + $du) * UNIT_N8;
        let vh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at, PITCH);
        //#for l in Q_LOW
        o$d = subgroupMatrixMultiplyAccumulate(pl, vh, o$d);
        //#endfor
        //#for l in KV_LOW
        let vl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at + KV_LOW_AT, PITCH);
        o$d = subgroupMatrixMultiplyAccumulate(ph, vl, o$d);
        //#endfor
        o$d = subgroupMatrixMultiplyAccumulate(ph, vh, o$d);
      }
      //#endfor
    }
    //#endfor
    workgroupBarrier();
    //#for d in OWN_DIMS
    if (own_column * $OWN_DIMSu + $du < $DIM_TILESu) {
      subgroupMatrixStore<row_major>(
        &pool, own_query * SUM_PITCH + (own_column * $OWN_DIMSu + $du) * UNIT_N4, o$d, SUM_PITCH);
    }
    //#endfor
    workgroupBarrier();
    //#for u in SUMS
    {
      let e = min(thread + $uu * THREADS, QUERIES * 2u * VEC8S - 1u);
      let part = bitcast<vec4<f32>>(pool[e / (2u * VEC8S) * SUM_PITCH + e % (2u * VEC8S)]);
      let weight = shares[e / (2u * VEC8S)];
      let merged = fma(sum$u, vec4(weight.x), part * weight.y);
      sum$u = select(sum$u, merged, weight.z == 1.0);
    }
    //#endfor
    workgroupBarrier();

    if (UNMERGED == 1u || split + 1u == stop) {
      // The sums so far are stored and begin with zero again.
      if (share == 0u) {
        ends[query] = vec2(peak, total);
      }
      workgroupBarrier();
      let place = select(z, split, UNMERGED == 1u);
      //#for u in SUMS
      {
        let e = thread + $uu * THREADS;
        let own = e / (2u * VEC8S);
        if (e < QUERIES * 2u * VEC8S && own / GROUP < count) {
          let at = (row + own / GROUP) * heads + tile.y * GROUP + own % GROUP;
          put(at, place, e % (2u * VEC8S), sum$u, ends[own]);
        }
        sum$u = vec4<f32>();
      }
      //#endfor
      peak = NEGATIVE;
      total = 0.0;
    }
  }
}

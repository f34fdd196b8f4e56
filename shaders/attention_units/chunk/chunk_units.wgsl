// attention_units.wgsl for many rows of one slot, with the same bits: keys and values come as the f16 numbers that
// halve_cells.wgsl has made of them, and each subgroup has queries of its own.
//
// One workgroup per (tile of up to $TILE rows, $GROUP query heads of one key-value head, z): segments of $SPAN
// splits of $CELLS cells, whose splits are merged in order: the z-th segment, or all. Queries are numbered
// row * GROUP + head, $QUERIES with padding, of which $COLUMNS subgroups have as many as a unit has rows, and every so
// manieth tile of their cells and dims. Keys, scores, weights, values and sums pass through the pool one after the
// other: it is small, so that a multiprocessor has room for two workgroups, of which one multiplies while the other
// weighs. Indices are written out, not passed to functions: the compiler then knows that they are in range, and a
// matrix is loaded in one go. Slot:
//   segments: where the sums of a segment go (segments_*.wgsl).

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
const SPAN = $SPANu; // splits of a segment
const DIRECT = $DIRECTu; // 1: a workgroup has all segments that its rows see
const KV_LOW = $KV_LOWu; // 1: keys and values have lo
const ROW = (1u + KV_LOW) * VEC8S; // eights of a cell's keys or values, lo behind hi
const K_PART = VEC8S / $K_PARTSu; // eights of a head whose keys pass at a time
const K_PITCH = K_PART + 1u; // of a cell; odd: rows begin in different banks
const K_LOW_AT = CELLS * K_PITCH + K_PART % 8u; // lo of keys, in other banks than hi
const K_WIDE = $K_WIDEu; // invocations that bring a cell's
const K_CELLS = THREADS / K_WIDE; // cells at a time
const V_PART = VEC8S / $PARTSu; // of values
const V_PITCH = V_PART + 1u;
const V_LOW_AT = CELLS * V_PITCH + V_PART % 8u;
const V_WIDE = $V_WIDEu;
const V_CELLS = THREADS / V_WIDE;
const WIDE = $WIDEu; // invocations that bring a query, two vec8s each
const BROUGHT = THREADS / WIDE; // queries at a time
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

//use segments

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
// Only read; but a driver moves loads of read-only memory behind barriers to where they are used, and waits there.
@group(0) @binding(1) var<storage, read_write> k_halves: array<vec4<u32>>; // [KV_HEADS, ROOM, 1 + KV_LOW, VEC8S], eight f16
@group(0) @binding(2) var<storage, read_write> v_halves: array<vec4<u32>>; // as k_halves
@group(0) @binding(3) var<storage, read_write> units: array<vec4<f32>>; // [2, KV_HEADS, ROOM / 4]: 1 / scale of keys, log2 of it of values
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]

var<workgroup> pool: array<vec4<u32>, $POOL>;
// Of the tile's rows: the largest of ~ the first cell that it sees, one past the last one, the first one and ~ one
// past the last one.
var<workgroup> bounds: array<atomic<u32>, 4>;
var<workgroup> sight: vec4<u32>;
var<workgroup> q_inverse: array<f32, QUERIES>; // 1 / scale
var<workgroup> k_scale: array<vec4<f32>, CELLS / 4u>; // 1 / scale, times SCALE where scores are not capped
var<workgroup> v_exponent: array<vec4<f32>, CELLS / 4u>; // e
var<workgroup> v_power: array<vec4<f32>, CELLS / 4u>; // 2^e

fn most_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

// NEGATIVE for those of the four cells from `cell` on that are not seen.
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
  // A split that no row sees makes zeros, which a workgroup writes that sees no others.
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
  //for u in LOADS
  var kx$u = k_halves[(kv_head * ROOM + start * CELLS) * ROW + k_from + $uu * (K_CELLS * ROW)];
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
  let own_scores = query * SCORE_PITCH + share * SHARE_PITCH;
  let unit = q_inverse[query];
  var peak = NEGATIVE;
  var total = 0.0;
  let own_row = rows[FIRST_ROW + row + min(query / GROUP, count - 1u)];
  let own_sight = vec2(visible_begin(own_row), visible_end(own_row));
  let seen = select(vec2<u32>(), own_sight, query / GROUP < count);
  begin_segments(thread);
  //for u in SUMS
  var sum$u = vec4<f32>();
  //end

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
    //use attention_units/chunk/scores
    //use attention_units/chunk/weights
    //use attention_units/chunk/values
    if ((split + 1u) % SPAN == 0u || split + 1u == stop) {
      //use attention_units/chunk/segment
    }
  }
}

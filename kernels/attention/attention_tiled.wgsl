// Sum, total and peak of softmax(cap(SCALE q . K)) V over splits (64 cells) of keys and values, to the bit those of
// attention.wgsl, for many neighbouring rows of one slot without paths. Splits z, z + KEPT, ... are merged here, as a
// lane of attention_combine.wgsl would (Milakov & Gimelshein 2018), so that a query has KEPT partial sums however long
// its context is. With a window the first z is that of the first split that a row of the tile sees, no splits are
// merged, and the sums of split c are number c % KEPT of a query.
//
// One workgroup per (tile of $TILE rows, $GROUP query heads of one key-value head, z). Queries are numbered
// row * $GROUP + head, $QUERIES with padding. For a split (64 cells):
//   scores   invocation (g, c) computes $SCORED queries by 4 cells; $AT_ONCE of the lanes of attention.wgsl pass
//            through workgroup memory at a time, each lane's products have a sum of their own, and lanes are added in
//            order;
//   weights  exp(score - peak of the split);
//   values   invocation (g, i) sums vec8 i of $SUMMED queries; cells pass through workgroup memory in the order
//            of the parts of attention.wgsl, each part has a sum of its own, and parts are added in order.

//#import lib/rows
//#import lib/visible
//#import lib/kv_load
//#import lib/attention_split

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override PER_SLOT: u32; // rows of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores
override KEPT: u32; // partial sums of a query; with a WINDOW at least as many as splits that rows of a tile see

const GROUP = $GROUPu; // query heads of a workgroup
const TILE = $TILEu; // rows of a workgroup
const THREADS = $THREADSu;
const GROUPS = $GROUPSu; // of queries, for scores: 16 invocations each
const QUERIES = $QUERIESu;
const LANES = $LANESu; // of attention.wgsl: lane l has vec8s l, l + LANES, ...
const STAGE_VEC8S = $STAGE_VEC8Su; // vec8s of a query or a key in a stage: those of $AT_ONCE lanes
const KEY_AT = 2u * STAGE_VEC8S; // in a line of the pool
const QUADS = QUERIES / 4u;
const PARTS = $PARTSu; // of attention.wgsl: part p has cells p, p + PARTS, ...
const CELLS = $CELLSu; // of a part
const STAGED_CELLS = $STAGED_CELLSu; // whose values are in workgroup memory at a time
const SHARES = THREADS / QUADS; // invocations that share the softmax of four queries

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KEPT, 2 VEC8S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KEPT]: peak, total

// Line l first holds what a stage has of query l % GROUPS * $SCORED + l / GROUPS and of cell l, then the weights of
// cell l, four queries in a vec4. A line is an odd number of vec4s, so that lines begin in different banks. Lines have
// a type of their own, so that places in them are constants, which need no bounds check.
var<workgroup> pool: array<array<vec4<f32>, $PITCH>, SPLIT_CELLS>;
// Values of a stage; before them peaks.
var<workgroup> staged_values: array<array<vec4<f32>, $VALUE_PITCH>, STAGED_CELLS>;
var<workgroup> seen: array<vec2<u32>, QUERIES>; // first cell and one past the last; 0, 0 where there is no query
var<workgroup> places: array<u32, SPLIT_CELLS>; // rows of keys and values
var<workgroup> tops: array<vec4<f32>, QUADS>; // peaks of four queries
var<workgroup> bounds: array<atomic<u32>, 3>; // the largest slot, ~begin and end of the tile's rows
var<workgroup> sight: vec3<u32>; // slot, first cell and one past the last that some row sees
var<workgroup> chains: array<vec2<f32>, QUERIES>; // peak and total of the splits so far
var<workgroup> shares: array<vec2<f32>, QUERIES>; // of the splits so far, of this one; -1: it sees none of it

//#import lib/stored

// The vec8 that is number `e` of those of lanes `lane`, lane + 1, ...
fn stage_vec8(lane: u32, e: u32) -> u32 {
  return lane + e % $AT_ONCEu + e / $AT_ONCEu * LANES;
}

// Number n in the order in which cells are added.
fn cell_at(n: u32) -> u32 {
  return n / CELLS + n % CELLS * PARTS;
}

fn sees(query: u32, cell: u32) -> bool {
  return cell >= seen[query].x && cell < seen[query].y;
}

// The scores of `query` and the three after it.
fn scores_of(dots: vec4<f32>, query: u32, cell: u32) -> vec4<f32> {
  return select(vec4<f32>(NEGATIVE), capped(dots * SCALE), vec4<bool>(
    sees(query, cell),
    sees(query + 1u, cell),
    sees(query + 2u, cell),
    sees(query + 3u, cell),
  ));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tiles = (PER_SLOT + TILE - 1u) / TILE;
  let within = tile.x % tiles * TILE;
  let row = tile.x / tiles * PER_SLOT + within;
  let count = min(TILE, PER_SLOT - within);
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;

  // The last row sees the most cells. Half of the workgroups of a prompt's first chunk end here, before any barrier.
  let last = rows[FIRST_ROW + row + count - 1u];
  if (last.live == 1u && tile.z * SPLIT_CELLS >= visible_end(last)) {
    return;
  }

  if (thread < QUERIES) {
    let own = rows[FIRST_ROW + row + min(thread / GROUP, count - 1u)];
    let here = own.live == 1u && thread / GROUP < count;
    seen[thread] = select(vec2<u32>(), vec2<u32>(visible_begin(own), visible_end(own)), here);
    chains[thread] = vec2<f32>(NEGATIVE, 0.0);
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
  let z = tile.z + begin / SPLIT_CELLS; // without a window a row sees the first split
  if (z * SPLIT_CELLS >= end) {
    return;
  }

  // For scores, 32 neighbouring invocations take 4 groups of queries by 8 cells, so that they share queries and keys.
  let group = thread / 64u * 4u + thread % 32u / 8u; // of queries
  let cell = thread / 32u % 2u * 8u + thread % 8u;
  let summed = thread / VEC8S; // group of queries, for values
  let i = thread % VEC8S;
  let load_cell = min(thread / VEC8S, STAGED_CELLS - 1u); // cell of a stage
  //#for u in Q_LOADS
  let q_vec8$u = thread + $uu * THREADS;
  let q_row$u = q_vec8$u / STAGE_VEC8S;
  let q_from$u = ((row + min(q_row$u / GROUP, count - 1u)) * heads + tile.y * GROUP + q_row$u % GROUP) * (2u * VEC8S);
  let q_line$u = q_row$u % $SCOREDu * GROUPS + q_row$u / $SCOREDu;
  let q_to$u = q_vec8$u % STAGE_VEC8S * 2u;
  //#endfor

  for (var split = z; split * SPLIT_CELLS < end; split += KEPT) {
    let first = split * SPLIT_CELLS;
    if (first + SPLIT_CELLS <= begin) {
      continue;
    }
    if (thread < SPLIT_CELLS) {
      places[thread] = stored(slot, kv_head, min(first + thread, end - 1u));
    }
    workgroupBarrier();
    //#for u in K_LOADS
    let k_vec8$u = thread + $uu * THREADS;
    let k_place$u = places[k_vec8$u / STAGE_VEC8S];
    let k_line$u = k_vec8$u / STAGE_VEC8S;
    let k_to$u = KEY_AT + k_vec8$u % STAGE_VEC8S * 2u;
    //#endfor

    // The dot products of the split's keys with all queries, in `score<query>_<cell>`.
    //#for a in SCORED
    //#for b in 4
    var score$a_$b = 0.0;
    //#endfor
    //#endfor
    //#for u in Q_LOADS
    var q_lo$u = q[q_from$u + stage_vec8(0u, q_vec8$u % STAGE_VEC8S)];
    var q_hi$u = q[q_from$u + VEC8S + stage_vec8(0u, q_vec8$u % STAGE_VEC8S)];
    //#endfor
    //#for u in K_LOADS
    var key$u = load_key(k_place$u, stage_vec8(0u, k_vec8$u % STAGE_VEC8S));
    //#endfor
    for (var lane = 0u; lane < LANES; lane += $AT_ONCEu) {
      //#for u in Q_LOADS
      pool[q_line$u][q_to$u] = q_lo$u;
      pool[q_line$u][q_to$u + 1u] = q_hi$u;
      //#endfor
      //#for u in K_LOADS
      {
        let k = vec8_of(key$u);
        pool[k_line$u][k_to$u] = k.lo;
        pool[k_line$u][k_to$u + 1u] = k.hi;
      }
      //#endfor
      workgroupBarrier();
      let next = min(lane + $AT_ONCEu, LANES - $AT_ONCEu);
      //#for u in Q_LOADS
      q_lo$u = q[q_from$u + stage_vec8(next, q_vec8$u % STAGE_VEC8S)];
      q_hi$u = q[q_from$u + VEC8S + stage_vec8(next, q_vec8$u % STAGE_VEC8S)];
      //#endfor
      //#for u in K_LOADS
      key$u = load_key(k_place$u, stage_vec8(next, k_vec8$u % STAGE_VEC8S));
      //#endfor
      //#for j in AT_ONCE
      {
        //#for a in SCORED
        //#for b in 4
        var dot$a_$b = 0.0;
        //#endfor
        //#endfor
        //#for s in STEPS
        {
          const e = 2u * ($su * $AT_ONCEu + $ju);
          //#for b in 4
          let k$b = Vec8(pool[cell + $bu * 16u][KEY_AT + e], pool[cell + $bu * 16u][KEY_AT + e + 1u]);
          //#endfor
          //#for a in SCORED
          {
            let own = Vec8(pool[$(a * GROUPS)u + group][e], pool[$(a * GROUPS)u + group][e + 1u]);
            //#for b in 4
            dot$a_$b = add8(dot$a_$b, own, k$b);
            //#endfor
          }
          //#endfor
        }
        //#endfor
        //#for a in SCORED
        //#for b in 4
        score$a_$b += dot$a_$b;
        //#endfor
        //#endfor
      }
      //#endfor
      workgroupBarrier();
    }

    //#for u in AHEAD
    var value$u = load_value(places[cell_at($uu * STAGED_CELLS + load_cell)], i);
    //#endfor
    //#for b in 4
    {
      let at = group * ($SCOREDu / 4u);
      //#for f in SCORED_QUADS
      pool[cell + $bu * 16u][at + $fu] = scores_of(
        vec4<f32>(
          score$(f * 4)_$b,
          score$(f * 4 + 1)_$b,
          score$(f * 4 + 2)_$b,
          score$(f * 4 + 3)_$b,
        ),
        group * $SCOREDu + $fu * 4u,
        first + cell + $bu * 16u,
      );
      //#endfor
    }
    //#endfor
    workgroupBarrier();

    let quad = thread % QUADS;
    let share = thread / QUADS;
    var peak = vec4<f32>(NEGATIVE);
    for (var c = share; c < SPLIT_CELLS; c += SHARES) {
      peak = max(peak, pool[c][quad]);
    }
    staged_values[thread / $VALUE_PITCHu][thread % $VALUE_PITCHu] = peak;
    workgroupBarrier();
    //#for s in SHARES
    peak = max(peak, staged_values[($su * QUADS + quad) / $VALUE_PITCHu][($su * QUADS + quad) % $VALUE_PITCHu]);
    //#endfor
    if (share == 0u) {
      tops[quad] = peak;
    }
    for (var c = share; c < SPLIT_CELLS; c += SHARES) {
      pool[c][quad] = weighted(pool[c][quad], peak);
    }
    workgroupBarrier();
    if (thread < QUERIES) {
      let peak = tops[thread / 4u][thread % 4u];
      var total = 0.0;
      for (var p = 0u; p < PARTS; p++) {
        var part = 0.0;
        //#for c in CELLS
        part += pool[p + $cu * PARTS][thread / 4u][thread % 4u];
        //#endfor
        total += part;
      }
      let sight = seen[thread];
      let chain = chains[thread];
      let top = max(chain.x, peak);
      // A lane of attention_combine.wgsl that has only one split takes its sum unchanged.
      let alone = WINDOW != 0xffffffffu || sight.y <= KEPT * SPLIT_CELLS;
      let kept = select(exp(chain.x - top), 0.0, alone);
      let added = select(exp(peak - top), 1.0, alone);
      if (first < sight.y && first + SPLIT_CELLS > sight.x) {
        chains[thread] = vec2<f32>(top, select(fma(total, added, chain.y * kept), total, alone));
        shares[thread] = vec2<f32>(kept, added);
      } else {
        shares[thread] = vec2<f32>(0.0, -1.0);
      }
    }

    // The weighted values of the split, added to those of the splits before, by the weights in `pool` and `shares`.
    //#for h in SUMMED
    var sum_lo$h = vec4<f32>(0.0);
    var sum_hi$h = vec4<f32>(0.0);
    var lo$h = vec4<f32>(0.0);
    var hi$h = vec4<f32>(0.0);
    //#endfor
    for (var done = 0u; done < SPLIT_CELLS; done += $AHEADu * STAGED_CELLS) {
      //#for u in AHEAD
      {
        let n = done + $uu * STAGED_CELLS;
        if (thread < STAGED_CELLS * VEC8S) {
          let v = vec8_of(value$u);
          staged_values[load_cell][i] = v.lo;
          staged_values[load_cell][VEC8S + i] = v.hi;
        }
        workgroupBarrier();
        value$u = load_value(places[cell_at(min(n + $AHEADu * STAGED_CELLS, SPLIT_CELLS - STAGED_CELLS) + load_cell)], i);
        //#for p in STAGED_PARTS
        //#for t in 2
        // Cells that no row sees, often half of a tile's last split, are skipped. The cells of a part ascend.
        if ($tu == 0u || cell_at(n + $(p * 2 * HALF_PART + t * HALF_PART)u) < end - first) {
          //#for c in HALF_PART
          {
            const place = $(p * 2 * HALF_PART + t * HALF_PART + c)u;
            let line = cell_at(n + place);
            let v = Vec8(staged_values[place][i], staged_values[place][VEC8S + i]);
            //#for f in SUMMED_QUADS
            let weight$f = pool[line][summed * ($SUMMEDu / 4u) + $fu];
            //#for h in 4
            lo$(f * 4 + h) = fma(vec4<f32>(weight$f[$h]), v.lo, lo$(f * 4 + h));
            hi$(f * 4 + h) = fma(vec4<f32>(weight$f[$h]), v.hi, hi$(f * 4 + h));
            //#endfor
            //#endfor
          }
          //#endfor
        }
        //#endfor
        if ((n + $(p * 2 * HALF_PART + 2 * HALF_PART)u) % CELLS == 0u) {
          //#for h in SUMMED
          sum_lo$h += lo$h;
          sum_hi$h += hi$h;
          lo$h = vec4<f32>(0.0);
          hi$h = vec4<f32>(0.0);
          //#endfor
        }
        //#endfor
        workgroupBarrier();
      }
      //#endfor
    }

    //#for h in SUMMED
    {
      let query = summed * $SUMMEDu + $hu;
      let share = shares[query];
      if (share.y >= 0.0) {
        let at = (((row + query / GROUP) * heads + tile.y * GROUP + query % GROUP) * KEPT + z % KEPT) * (2u * VEC8S) + i;
        if (share.x != 0.0) {
          sum_lo$h = fma(sum_lo$h, vec4<f32>(share.y), sums[at] * share.x);
          sum_hi$h = fma(sum_hi$h, vec4<f32>(share.y), sums[at + VEC8S] * share.x);
        } else {
          sum_lo$h *= share.y;
          sum_hi$h *= share.y;
        }
        sums[at] = sum_lo$h;
        sums[at + VEC8S] = sum_hi$h;
      }
    }
    //#endfor
    workgroupBarrier();
  }

  if (thread < QUERIES && seen[thread].y > z * SPLIT_CELLS) {
    let at = (row + thread / GROUP) * heads + tile.y * GROUP + thread % GROUP;
    stats[at * KEPT + z % KEPT] = chains[thread];
  }
}

// What attention.wgsl makes, to the bit, for many neighbouring rows of one slot without paths; and the
// chains of splits that a lane of attention_combine.wgsl carries, so that a query keeps KEPT partial sums
// however long its context is: number z is that of splits z, z + KEPT, ... of keys (Milakov & Gimelshein 2018).
// With a window the first z is that of the first split that a row of the tile sees.
//
// One workgroup per (tile of $TILE rows, $GROUP query heads of one key-value head, z). Queries are numbered
// row * $GROUP + head, $QUERIES with padding. For a split (64 cells):
//   scores   invocation (g, c) makes $SCORED queries by 4 cells; $AT_ONCE of the lanes of attention.wgsl pass
//            through workgroup memory at a time, each lane's products are added apart, lanes in order;
//   weights  exp(score - peak of the split);
//   values   invocation (g, i) makes $SUMMED queries of vec8 i; cells pass through workgroup memory in the order
//            of the parts of attention.wgsl, each part is added apart.
//
// The slot is that of attention/paged.wgsl.

//use attention/paged
//use attention/split

override KEPT: u32; // partial sums of a query; with a WINDOW as many as there are splits

const THREADS = $THREADSu;
const GROUPS = $GROUPSu; // of queries, for scores: 16 invocations each
const QUERIES = $QUERIESu;
const LANES = $LANESu; // of attention.wgsl: lane l has vec8s l, l + LANES, ...
const EIGHTS = $EIGHTSu; // vec8s of a query or a key in a stage: those of $AT_ONCE lanes
const KEY_AT = 2u * EIGHTS; // in a line of the pool
const QUADS = QUERIES / 4u;
const PARTS = $PARTSu; // of attention.wgsl: part p has cells p, p + PARTS, ...
const CELLS = $CELLSu; // of a part
const BROUGHT = $BROUGHTu; // cells of values in a stage
const SHARES = THREADS / QUADS; // invocations that share the softmax of four queries

@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KEPT, 2 VEC8S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KEPT]: peak, total

// Line l: of query l % GROUPS * $SCORED + l / GROUPS and of cell l what a stage has; then of cell l the weights of
// four queries each. An odd number of vec4s: lines begin in different banks. Lines have a type of their own, so that
// places in them are constants which no check of bounds makes longer.
var<workgroup> pool: array<array<vec4<f32>, $PITCH>, SPLIT_CELLS>;
var<workgroup> brought: array<array<vec4<f32>, $VALUE_PITCH>, BROUGHT>; // values of a stage; before that peaks
var<workgroup> seen: array<vec2<u32>, QUERIES>; // first cell and one past the last; 0, 0 where there is no query
var<workgroup> places: array<u32, SPLIT_CELLS>; // rows of keys and values
var<workgroup> tops: array<vec4<f32>, QUADS>; // peaks of four queries
var<workgroup> bounds: array<atomic<u32>, 3>; // the largest slot, ~begin and end of the tile's rows
var<workgroup> sight: vec3<u32>; // slot, first cell and one past the last that some row sees
var<workgroup> chains: array<vec2<f32>, QUERIES>; // peak and total of the splits so far
var<workgroup> shares: array<vec2<f32>, QUERIES>; // of the splits so far, of this one; -1: it sees none of it

// The vec8 that is number `e` of those of lanes `lane`, lane + 1, ...
fn eighth(lane: u32, e: u32) -> u32 {
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

  // For scores 4 by 8 of them read the same queries and keys as neighbours do.
  let group = thread / 64u * 4u + thread % 32u / 8u; // of queries
  let cell = thread / 32u % 2u * 8u + thread % 8u;
  let summed = thread / VEC8S; // group of queries, for values
  let i = thread % VEC8S;
  let brings = min(thread / VEC8S, BROUGHT - 1u); // cell of a stage
  //for u in Q_LOADS
  let q_eighth$u = thread + $uu * THREADS;
  let q_row$u = q_eighth$u / EIGHTS;
  let q_from$u = ((row + min(q_row$u / GROUP, count - 1u)) * heads + tile.y * GROUP + q_row$u % GROUP) * (2u * VEC8S);
  let q_line$u = q_row$u % $SCOREDu * GROUPS + q_row$u / $SCOREDu;
  let q_to$u = q_eighth$u % EIGHTS * 2u;
  //end

  for (var split = z; split * SPLIT_CELLS < end; split += KEPT) {
    let first = split * SPLIT_CELLS;
    if (first + SPLIT_CELLS <= begin) {
      continue;
    }
    if (thread < SPLIT_CELLS) {
      places[thread] = stored(slot, kv_head, min(first + thread, end - 1u));
    }
    workgroupBarrier();
    //for u in K_LOADS
    let k_eighth$u = thread + $uu * THREADS;
    let k_place$u = places[k_eighth$u / EIGHTS];
    let k_line$u = k_eighth$u / EIGHTS;
    let k_to$u = KEY_AT + k_eighth$u % EIGHTS * 2u;
    //end

    //use attention/tiled/scores

    //for u in AHEAD
    var value$u = load_value(places[cell_at($uu * BROUGHT + brings)], i);
    //end
    //for b in FOUR
    {
      let at = group * ($SCOREDu / 4u);
      //for f in SCORED_QUADS
      pool[cell + $bu * 16u][at + $fu] = scores_of(
        vec4<f32>(
          score$(f * FOUR)_$b,
          score$(f * FOUR + 1)_$b,
          score$(f * FOUR + 2)_$b,
          score$(f * FOUR + 3)_$b,
        ),
        group * $SCOREDu + $fu * 4u,
        first + cell + $bu * 16u,
      );
      //end
    }
    //end
    workgroupBarrier();

    let quad = thread % QUADS;
    let share = thread / QUADS;
    var peak = vec4<f32>(NEGATIVE);
    for (var c = share; c < SPLIT_CELLS; c += SHARES) {
      peak = max(peak, pool[c][quad]);
    }
    brought[thread / $VALUE_PITCHu][thread % $VALUE_PITCHu] = peak;
    workgroupBarrier();
    //for s in SHARES
    peak = max(peak, brought[($su * QUADS + quad) / $VALUE_PITCHu][($su * QUADS + quad) % $VALUE_PITCHu]);
    //end
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
        //for c in CELLS
        part += pool[p + $cu * PARTS][thread / 4u][thread % 4u];
        //end
        total += part;
      }
      let sight = seen[thread];
      let chain = chains[thread];
      let top = max(chain.x, peak);
      // A lane of attention_combine.wgsl that has one split takes it as it is.
      let alone = sight.y <= KEPT * SPLIT_CELLS;
      let kept = select(exp(chain.x - top), 0.0, alone);
      let added = select(exp(peak - top), 1.0, alone);
      if (first < sight.y && first + SPLIT_CELLS > sight.x) {
        chains[thread] = vec2<f32>(top, select(fma(total, added, chain.y * kept), total, alone));
        shares[thread] = vec2<f32>(kept, added);
      } else {
        shares[thread] = vec2<f32>(0.0, -1.0);
      }
    }

    //use attention/tiled/values
    workgroupBarrier();
  }

  if (thread < QUERIES && seen[thread].y > z * SPLIT_CELLS) {
    let at = (row + thread / GROUP) * heads + tile.y * GROUP + thread % GROUP;
    stats[at * KEPT + z] = chains[thread];
  }
}

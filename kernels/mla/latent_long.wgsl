// Attention over latents (MLA) of few rows at long contexts: sum, total and peak of softmax(SCALE q . k) v over a
// segment of $CELLS cells, to the bit those of latent_attention.wgsl, for rows without paths. All cells of a segment
// are taken at once: the loads, products and sums of a score do not wait for other chunks.
//
// One workgroup per (tile of $QUERIES queries, segment). Queries are numbered row * HEADS + head.
//   scores   16 invocations share $QUERIES x $TC scores: of each, sums of fours l, l + 16, ... of q . k, added as a
//            binary tree;
//   weights  exp(score - peak of the chunk), all chunks side by side;
//   values   weights times fours of latents, cell after cell. Each of two teams has every second chunk; then each
//            merges the sums of both, one after the other (lib/online_softmax.wgsl), for half of the queries.

//#import lib/rows
//#import lib/visible
//#import lib/online_softmax
//#import lib/latent_load

override HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override RUNS: u32; // places for runs of a query in `sums`
override SLOT_QUERIES: u32; // queries of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const CHUNK = 16u; // cells
const THREADS = $THREADSu;
const RANK4 = $RANK4u; // vec4 of a latent
const CELLS = $CELLSu; // of a segment
const CHUNKS = CELLS / CHUNK;
const QUERIES = $QUERIESu; // of a workgroup, at most 8
const QUADS = QUERIES / 4u;
const TC = $TCu; // cells of an invocation, for the scores
const WIDTH4 = $WIDTH4u; // vec4 of a latent and its rotated part
const SIDE = CELLS | 1u; // odd: lanes begin in different banks
const LOADERS = THREADS / QUERIES; // invocations that load a query
const HALF = QUERIES / 2u; // that a team keeps
const DIMS = THREADS / 2u; // invocations of a team
const STEPS = 2u; // of a chunk, for the values
const AT_ONCE = CHUNK / STEPS; // cells whose latents are on their way

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total

// Arrays of arrays: an index that is a constant takes no instruction to be kept in its bounds.
// Queries; then, of a four of queries, the scores' sums of lane l, at [l % 8][l / 8 * SIDE]; then, of each query, the
// other team's sums, in two places that take turns.
var<workgroup> pool: array<array<vec4<f32>, $POOL>, 8>;
var<workgroup> scores: array<array<array<vec4<f32>, QUADS>, CHUNK>, CHUNKS>;
var<workgroup> weights: array<array<array<vec4<f32>, QUADS>, 4>, $FOURS>; // by fours of cells
var<workgroup> peaks: array<array<vec4<f32>, QUADS>, CHUNKS>;
var<workgroup> totals: array<array<f32, QUERIES>, CHUNKS>;
var<workgroup> shrinks: array<array<f32, QUERIES>, CHUNKS>;
var<workgroup> shares: array<array<f32, QUERIES>, CHUNKS>;
var<workgroup> begins: array<u32, QUERIES>; // first cell that a query sees
var<workgroup> ends: array<u32, QUERIES>; // one past the last; 0: none
var<workgroup> places: array<u32, CHUNKS>; // where a chunk is stored

//#import lib/dot4

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tiles = (SLOT_QUERIES + QUERIES - 1u) / QUERIES;
  let within = tile.x % tiles * QUERIES;
  let query = tile.x / tiles * SLOT_QUERIES + within;
  let count = min(QUERIES, SLOT_QUERIES - within);
  let first = tile.z * CELLS;
  // Queries are loaded before anything that depends on the row.
  let load_query = thread / LOADERS;
  let load_first = thread % LOADERS;
  let load_at = (query + min(load_query, count - 1u)) * WIDTH4;
  //#for s in QUERY_LOADS
  let query$s = q[load_at + load_first + $su * LOADERS];
  //#endfor

  var slot = 0u;
  var begin = 0xffffffffu;
  var end = 0u;
  for (var r = query / HEADS; r <= (query + count - 1u) / HEADS; r++) {
    let own = rows[FIRST_ROW + r];
    if (own.live == 1u) {
      slot = own.slot;
      begin = min(begin, visible_begin(own));
      end = max(end, visible_end(own));
    }
  }
  if (begin >= end || first >= end || first + CELLS <= begin) {
    return;
  }

  let lane = thread % 16u;
  let block = thread / 16u * TC;
  let page = pages[slot * TABLE_PAGES + min(first + block, end - 1u) / PAGE];
  let stored = page * PAGE + block % PAGE;
  // Cells behind the last one are loaded like the others, but do not count.
  //#for s in AHEAD
  //#for c in TC
  var key$s_$c = load_four(stored + $cu, lane + $su * 16u);
  //#endfor
  //#endfor
  //#for s in QUERY_LOADS
  if (($su + 1u) * LOADERS <= WIDTH4 || load_first + $su * LOADERS < WIDTH4) {
    pool[load_query][load_first + $su * LOADERS] = query$s;
  }
  //#endfor
  if (thread < CHUNKS) {
    places[thread] = pages[slot * TABLE_PAGES + min(first + thread * CHUNK, end - 1u) / PAGE] * PAGE;
  }
  if (thread < QUERIES) {
    let seer = rows[FIRST_ROW + (query + min(thread, count - 1u)) / HEADS];
    begins[thread] = visible_begin(seer);
    ends[thread] = visible_end(seer);
  }
  workgroupBarrier();

  //#for x in QUERIES
  //#for c in TC
  var dot$x_$c = 0.0;
  //#endfor
  //#endfor
  for (var t = 0u; t < $STEP_LOOPSu; t++) {
    //#for s in AHEAD
    {
      let e = lane + 16u * (t * $AHEADu + $su);
      if ($STEP_LOOPSu * $AHEADu * 16u <= WIDTH4 || e < WIDTH4) {
        //#for c in TC
        let k$c = four_of(key$s_$c, e);
        //#endfor
        //#for x in QUERIES
        {
          let x = pool[$x][e];
          //#for c in TC
          dot$x_$c = dot4(dot$x_$c, x, k$c);
          //#endfor
        }
        //#endfor
      }
      //#for c in TC
      key$s_$c = load_four(stored + $cu, e + $AHEADu * 16u);
      //#endfor
    }
    //#endfor
  }
  //#for r in QUADS
  workgroupBarrier(); // after all reads of the queries or of the sums before
  //#for c in TC
  pool[lane % 8u][lane / 8u * SIDE + block + $cu] = vec4<f32>(
    dot$(4 * r)_$c,
    dot$(4 * r + 1)_$c,
    dot$(4 * r + 2)_$c,
    dot$(4 * r + 3)_$c,
  );
  //#endfor
  workgroupBarrier();
  if (thread < CELLS) {
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < 2u; l++) {
      //#for l in 8
      let sum$l = pool[$l][l * SIDE + thread];
      //#endfor
      sum += ((sum0 + sum1) + (sum2 + sum3)) + ((sum4 + sum5) + (sum6 + sum7));
    }
    //#for h in 4
    let seen$h = first + thread >= begins[$(4 * r + h)] && first + thread < ends[$(4 * r + h)];
    //#endfor
    scores[thread / CHUNK][thread % CHUNK][$r] =
      select(vec4<f32>(NEGATIVE), SCALE * sum, vec4<bool>(seen0, seen1, seen2, seen3));
  }
  //#endfor
  workgroupBarrier();

  if (CELLS * QUADS >= THREADS || thread < CELLS * QUADS) {
    let cell = thread / QUADS;
    let quad = thread % QUADS;
    var top = vec4<f32>(NEGATIVE);
    for (var c = 0u; c < CHUNK; c += 4u) {
      //#for c in 4
      top = max(top, scores[cell / CHUNK][c + $cu][quad]);
      //#endfor
    }
    let score = scores[cell / CHUNK][cell % CHUNK][quad];
    weights[cell / 4u][cell % 4u][quad] =
      select(exp(score - top), vec4<f32>(0.0), score == vec4<f32>(NEGATIVE));
    if (cell % CHUNK == 0u) {
      peaks[cell / CHUNK][quad] = top;
    }
  }
  let chunks = min(CHUNKS, (end - first + CHUNK - 1u) / CHUNK);
  let team = thread / DIMS;
  let dim = thread % DIMS;
  //#for d in SPANS
  let four$d = min(dim + $du * DIMS, RANK4 - 1u);
  //#for c in AT_ONCE
  var packed$d_$c = load_four(places[team] + min($cu, last_of(team, first, end)), four$d);
  //#endfor
  //#endfor
  workgroupBarrier();
  // The total of each chunk and query, and the factors that it is merged with, which the teams need after their next
  // barrier.
  let folding = THREADS - 1u - thread;
  if (folding < CHUNKS * QUERIES) {
    let chunk = folding / QUERIES;
    let own = folding % QUERIES;
    var total = 0.0;
    for (var f = 4u * chunk; f < 4u * chunk + 4u; f++) {
      //#for c in 4
      total += weights[f][$c][own / 4u][own % 4u];
      //#endfor
    }
    var before = NEGATIVE;
    for (var j = 0u; j < chunk; j++) {
      before = max(before, peaks[j][own / 4u][own % 4u]);
    }
    let fold = fold_one(before, peaks[chunk][own / 4u][own % 4u]);
    totals[chunk][own] = total;
    shrinks[chunk][own] = fold.x;
    shares[chunk][own] = fold.y;
  }

  // The weighted sums of latents of the segment, stored.
  let turns = (chunks + 1u) / 2u;
  var handed = 0u; // the place in `pool` that is written next
  //#for d in SPANS
  {
    //#for x in QUERIES
    var part$x = vec4<f32>(0.0);
    //#endfor
    //#for x in HALF
    var sum$x = vec4<f32>(0.0); // of query team * HALF + $x
    //#endfor
    for (var f = 0u; f < STEPS * turns; f++) {
      let chunk = min(2u * (f / STEPS) + team, CHUNKS - 1u);
      let next = min(2u * ((f + 1u) / STEPS) + team, CHUNKS - 1u);
      let place = places[next];
      let most = last_of(next, first, end);
      //#for c in AT_ONCE
      {
        let value = four_of(packed$d_$c, four$d);
        //#for a in QUADS
        let weight$a = weights[4u * chunk + f % STEPS * (AT_ONCE / 4u) + $cu / 4u][$cu % 4u][$a];
        //#for h in 4
        part$(4 * a + h) = fma(vec4<f32>(weight$a[$h]), value, part$(4 * a + h));
        //#endfor
        //#endfor
      }
      packed$d_$c = load_four(place + min((f + 1u) % STEPS * AT_ONCE + $cu, most), four$d);
      //#endfor
      if (f % STEPS == STEPS - 1u) {
        let at = handed * DIMS + dim;
        if (team == 0u) {
          //#for x in HALF
          pool[$(HALF + x)][at] = part$(HALF + x);
          //#endfor
        } else {
          //#for x in HALF
          pool[$x][at] = part$x;
          //#endfor
        }
        workgroupBarrier();
        if (team == 0u) {
          //#for x in HALF
          sum$x = fma(part$x, vec4<f32>(shares[chunk][$x]), sum$x * shrinks[chunk][$x]);
          //#endfor
          if (chunk + 1u < chunks) {
            //#for x in HALF
            sum$x = fma(
              pool[$x][at],
              vec4<f32>(shares[chunk + 1u][$x]),
              sum$x * shrinks[chunk + 1u][$x],
            );
            //#endfor
          }
        } else {
          //#for x in HALF
          sum$x = fma(
            pool[$(HALF + x)][at],
            vec4<f32>(shares[chunk - 1u][$(HALF + x)]),
            sum$x * shrinks[chunk - 1u][$(HALF + x)],
          );
          //#endfor
          if (chunk < chunks) {
            //#for x in HALF
            sum$x = fma(
              part$(HALF + x),
              vec4<f32>(shares[chunk][$(HALF + x)]),
              sum$x * shrinks[chunk][$(HALF + x)],
            );
            //#endfor
          }
        }
        handed = 1u - handed;
        //#for x in QUERIES
        part$x = vec4<f32>(0.0);
        //#endfor
      }
    }
    if (($du + 1u) * DIMS <= RANK4 || dim + $du * DIMS < RANK4) {
      let kept = team * HALF;
      let to = ((query + kept) * RUNS + tile.z) * RANK4 + dim + $du * DIMS;
      //#for x in HALF
      if (kept + $xu < count) {
        sums[to + $xu * RUNS * RANK4] = sum$x;
      }
      //#endfor
    }
  }
  //#endfor
  if (thread < count) {
    var peak = NEGATIVE;
    var total = 0.0;
    for (var j = 0u; j < chunks; j++) {
      total = fma(totals[j][thread], shares[j][thread], total * shrinks[j][thread]);
      peak = max(peak, peaks[j][thread / 4u][thread % 4u]);
    }
    stats[(query + thread) * RUNS + tile.z] = vec2<f32>(peak, total);
  }
}

// The last cell of a chunk that lies before `end`, counted in the chunk; 0 where none does.
fn last_of(chunk: u32, first: u32, end: u32) -> u32 {
  let before = min(first + chunk * CHUNK + 1u, end);
  return min(CHUNK - 1u, end - before);
}

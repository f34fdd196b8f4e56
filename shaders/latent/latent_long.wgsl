// Attention over latents of few rows at long contexts: what latent_attention.wgsl makes of runs of RUN cells, to the
// bit, for rows without paths. CELLS cells go at a time: a score's loads, products and sums wait for nothing of
// other chunks.
//
// One workgroup per (tile of $QUERIES queries, run). Queries are numbered row * HEADS + head.
//   scores   16 invocations share $QUERIES x $TC scores: of each, sums of fours l, l + 16, ... of q . k, added as a
//            binary tree;
//   weights  exp(score - peak of the chunk), all chunks side by side;
//   values   weights times fours of latents, cell after cell; chunks are added one after the other (latent_fold.wgsl).
//            Of two teams each has every second chunk, and the second hands its sums to the first.
//
// Slot:
//   four: `load_four` and `four_of` of a dtype over `keys` and WIDTH4 (many/four_*.wgsl).

//use fragments/rows
//use attention/visible
//use latent/latent_fold
//use four

override HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override RUNS: u32; // places for runs of a query in `sums`
override SLOT_QUERIES: u32; // queries of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const CHUNK = 16u; // cells, of one page
const RUN = $RUNu; // cells
const CELLS = $CELLSu; // at a time
const CHUNKS = CELLS / CHUNK;
const THREADS = $THREADSu;
const QUERIES = $QUERIESu; // of a workgroup
const QUADS = $QUADSu; // fours of them
const TC = $TCu; // cells of an invocation, for the scores
const WIDTH4 = $WIDTH4u; // vec4 of a latent and its rotated part
const RANK4 = $RANK4u; // vec4 of a latent
const BATCH = $BATCHu; // fours of queries whose sums are added at a time
const POOLED = CELLS * BATCH; // of a lane
const SIDE = POOLED | 1u; // odd: lanes begin in different banks
const LOADERS = THREADS / QUERIES; // invocations that load a query
const GROUPS = $GROUPSu; // of invocations, by queries, for the values
const TEAMS = $TEAMSu; // of groups, by chunks: 1 or 2
const DIMS = THREADS / GROUPS / TEAMS; // invocations side by side
const OWN = $OWNu; // fours of queries of an invocation, for the values
const BUNCHES = $BUNCHESu; // fours of cells whose latents are on their way, for the values
const STEPS = 4u / BUNCHES; // of a chunk

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total

// Arrays of arrays: an index that is a number takes no instruction to be kept in its bounds.
// Queries; then the sums of lane l, at [l % 8][l / 8 * SIDE]; then the sums that a team hands to the other.
var<workgroup> pool: array<array<vec4<f32>, $POOL>, 8>;
var<workgroup> scores: array<array<array<vec4<f32>, QUADS>, CHUNK>, CHUNKS>;
var<workgroup> weights: array<array<array<vec4<f32>, QUADS>, 4>, $FOURS>; // by fours of cells
var<workgroup> peaks: array<array<vec4<f32>, QUADS>, CHUNKS>;
var<workgroup> totals: array<array<f32, QUERIES>, CHUNKS>;
var<workgroup> shrinks: array<array<f32, QUERIES>, CHUNKS>;
var<workgroup> shares: array<array<f32, QUERIES>, CHUNKS>;
var<workgroup> run_peaks: array<f32, QUERIES>; // of the cells before
var<workgroup> begins: array<u32, QUERIES>; // first cell that a query sees
var<workgroup> ends: array<u32, QUERIES>; // one past the last; 0: none
var<workgroup> places: array<u32, CHUNKS>; // where a chunk is stored

fn dot4(sum: f32, q: vec4<f32>, k: vec4<f32>) -> f32 {
  return fma(q.w, k.w, fma(q.z, k.z, fma(q.y, k.y, fma(q.x, k.x, sum))));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tiles = (SLOT_QUERIES + QUERIES - 1u) / QUERIES;
  let within = tile.x % tiles * QUERIES;
  let query = tile.x / tiles * SLOT_QUERIES + within;
  let count = min(QUERIES, SLOT_QUERIES - within);
  let run = tile.z;
  let load_query = thread / LOADERS;
  let load_first = thread % LOADERS;
  let load_at = (query + min(load_query, count - 1u)) * WIDTH4;
  //for s in QUERY_LOADS
  var query$s = q[load_at + load_first + $su * LOADERS];
  //end

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
  let last = min(run * RUN + RUN, end);
  if (begin >= end || run * RUN >= last || run * RUN + RUN <= begin) {
    return;
  }

  let lane = thread % 16u;
  let block = thread / 16u * TC;
  let dim = thread % DIMS;
  let own = thread / DIMS % GROUPS * OWN;
  let team = min(thread / (DIMS * GROUPS), TEAMS - 1u);
  var handed = 0u; // the half of `pool` that the second team writes next
  //for d in SPANS
  //for a in OWN
  //for h in FOUR
  var sum$d_$a_$h = vec4<f32>(0.0);
  //end
  //end
  //end
  var total = 0.0; // of query `thread`
  if (thread < QUERIES) {
    let seer = rows[FIRST_ROW + (query + min(thread, count - 1u)) / HEADS];
    begins[thread] = visible_begin(seer);
    ends[thread] = visible_end(seer);
    run_peaks[thread] = NEGATIVE;
  }

  for (var first = run * RUN; first < last; first += CELLS) {
    let page = pages[slot * TABLE_PAGES + min(first + block, end - 1u) / PAGE];
    let stored = page * PAGE + block % PAGE;
    // What lies behind the last cell is loaded like the others, and then does not count.
    //for s in GROUP
    //for c in TC
    var key$s_$c = load_four(stored + $cu, lane + $su * 16u);
    //end
    //end
    //for s in DEEP
    //for c in TC
    var later$s_$c = load_four(stored + $cu, lane + $(s + 1)u * 16u);
    //end
    //end
    //for m in MORE
    workgroupBarrier(); // what is read of the cells before
    //end
    //for s in QUERY_LOADS
    if (($su + 1u) * LOADERS <= WIDTH4 || load_first + $su * LOADERS < WIDTH4) {
      pool[load_query][load_first + $su * LOADERS] = query$s;
    }
    //end
    if (thread < CHUNKS) {
      places[thread] = pages[slot * TABLE_PAGES + min(first + thread * CHUNK, end - 1u) / PAGE] * PAGE;
    }
    workgroupBarrier();

    //for x in QUERIES
    //for c in TC
    var dot$x_$c = 0.0;
    //end
    //end
    for (var t = 0u; t < $STEP_LOOPSu; t++) {
      //for s in GROUP
      {
        let e = lane + 16u * (t * $GROUPu + $su);
        if ($STEP_LOOPSu * $GROUPu * 16u <= WIDTH4 || e < WIDTH4) {
          //for c in TC
          let k$c = four_of(key$s_$c, e);
          //end
          //for x in QUERIES
          {
            let query = pool[$x][e];
            //for c in TC
            dot$x_$c = dot4(dot$x_$c, query, k$c);
            //end
          }
          //end
        }
        //for c in TC
        //for n in FLAT
        key$s_$c = load_four(stored + $cu, e + $GROUPu * 16u);
        //end
        //for n in TURNED
        key$s_$c = later0_$c;
        //for l in DEEP_LESS
        later$l_$c = later$(l + 1)_$c;
        //end
        later$(DEEP_LESS)_$c = load_four(stored + $cu, e + ($DEEPu + 1u) * 16u);
        //end
        //end
      }
      //end
    }
    //for r in ROUNDS
    workgroupBarrier(); // what is read of the queries, or of the sums before
    //for b in BATCH
    //for c in TC
    pool[lane % 8u][lane / 8u * SIDE + (block + $cu) * BATCH + $bu] = vec4<f32>(
      dot$(r * BATCH * 4 + b * 4)_$c,
      dot$(r * BATCH * 4 + b * 4 + 1)_$c,
      dot$(r * BATCH * 4 + b * 4 + 2)_$c,
      dot$(r * BATCH * 4 + b * 4 + 3)_$c,
    );
    //end
    //end
    workgroupBarrier();
    if (POOLED >= THREADS || thread < POOLED) {
      var sum = vec4<f32>(0.0);
      for (var l = 0u; l < 2u; l++) {
        //for l in EIGHT
        let sum0_$l = pool[$l][l * SIDE + thread];
        //end
        sum += ((sum0_0 + sum0_1) + (sum0_2 + sum0_3)) + ((sum0_4 + sum0_5) + (sum0_6 + sum0_7));
      }
      let cell = thread / BATCH;
      let quad = $(r * BATCH)u + thread % BATCH;
      let logical = first + cell;
      //for h in FOUR
      let seen$h = logical >= begins[4u * quad + $hu] && logical < ends[4u * quad + $hu];
      //end
      scores[cell / CHUNK][cell % CHUNK][quad] = select(
        vec4<f32>(NEGATIVE),
        SCALE * sum,
        vec4<bool>(seen0, seen1, seen2, seen3),
      );
    }
    //end
    workgroupBarrier();

    if (CELLS * QUADS >= THREADS || thread < CELLS * QUADS) {
      let cell = thread / QUADS;
      let quad = thread % QUADS;
      var top = vec4<f32>(NEGATIVE);
      for (var c = 0u; c < CHUNK; c += 4u) {
        //for c in FOUR
        top = max(top, scores[cell / CHUNK][c + $cu][quad]);
        //end
      }
      let score = scores[cell / CHUNK][cell % CHUNK][quad];
      weights[cell / 4u][cell % 4u][quad] =
        select(exp(score - top), vec4<f32>(0.0), score == vec4<f32>(NEGATIVE));
      if (cell % CHUNK == 0u) {
        peaks[cell / CHUNK][quad] = top;
      }
    }
    let chunks = min(CHUNKS, (end - first + CHUNK - 1u) / CHUNK);
    var most = min(CHUNK, end - first - min(end - first, team * CHUNK)); // cells of the chunk
    most = max(most, 1u) - 1u;
    //for d in SPANS
    let four$d = min(dim + $du * DIMS, RANK4 - 1u);
    //for b in BUNCHES
    //for c in FOUR
    var packed$d_$b_$c = load_four(places[team] + min($(4 * b + c)u, most), four$d);
    //end
    //end
    //end
    workgroupBarrier();
    if (thread < CHUNKS * QUERIES) {
      let chunk = thread / QUERIES;
      let query = thread % QUERIES;
      var part = 0.0;
      for (var f = 4u * chunk; f < 4u * chunk + 4u; f++) {
        //for c in FOUR
        part += weights[f][$c][query / 4u][query % 4u];
        //end
      }
      var before = run_peaks[query];
      for (var j = 0u; j < chunk; j++) {
        before = max(before, peaks[j][query / 4u][query % 4u]);
      }
      let fold = fold_one(before, peaks[chunk][query / 4u][query % 4u]);
      totals[chunk][query] = part;
      shrinks[chunk][query] = fold.x;
      shares[chunk][query] = fold.y;
    }
    workgroupBarrier();

    let turns = (chunks + TEAMS - 1u) / TEAMS;
    //for d in SPANS
    {
      //for a in OWN
      //for h in FOUR
      var part$a_$h = vec4<f32>(0.0);
      //end
      //end
      for (var f = 0u; f < STEPS * turns; f++) {
        let chunk = min(f / STEPS * TEAMS + team, CHUNKS - 1u);
        let next = min((f + 1u) / STEPS * TEAMS + team, CHUNKS - 1u);
        let place = places[next];
        most = min(CHUNK, end - first - min(end - first, next * CHUNK));
        most = max(most, 1u) - 1u;
        //for b in BUNCHES
        //for c in FOUR
        {
          let value = four_of(packed$d_$b_$c, four$d);
          //for a in OWN
          let weight$a = weights[4u * chunk + f % STEPS * BUNCHES + $bu][$c][own + $au];
          //for h in FOUR
          part$a_$h = fma(vec4<f32>(weight$a[$h]), value, part$a_$h);
          //end
          //end
        }
        //end
        //for c in FOUR
        packed$d_$b_$c = load_four(
          place + min((f + 1u) % STEPS * BUNCHES * 4u + $(4 * b + c)u, most),
          four$d,
        );
        //end
        //end
        if (f % STEPS == STEPS - 1u) {
          //for p in PAIRED
          if (team == 1u) {
            //for a in OWN
            //for h in FOUR
            pool[$(4 * a + h)][handed * DIMS + dim] = part$a_$h;
            //end
            //end
          }
          workgroupBarrier();
          //end
          if (team == 0u) {
            //for a in OWN
            //for h in FOUR
            sum$d_$a_$h = fma(
              part$a_$h,
              vec4<f32>(shares[chunk][4u * (own + $au) + $hu]),
              sum$d_$a_$h * shrinks[chunk][4u * (own + $au) + $hu],
            );
            //end
            //end
            //for p in PAIRED
            if (chunk + 1u < chunks) {
              //for a in OWN
              //for h in FOUR
              sum$d_$a_$h = fma(
                pool[$(4 * a + h)][handed * DIMS + dim],
                vec4<f32>(shares[chunk + 1u][4u * (own + $au) + $hu]),
                sum$d_$a_$h * shrinks[chunk + 1u][4u * (own + $au) + $hu],
              );
              //end
              //end
            }
            //end
          }
          handed = 1u - handed;
          //for a in OWN
          //for h in FOUR
          part$a_$h = vec4<f32>(0.0);
          //end
          //end
        }
      }
    }
    //end
    if (thread < QUERIES) {
      var peak = run_peaks[thread];
      for (var j = 0u; j < chunks; j++) {
        total = fma(totals[j][thread], shares[j][thread], total * shrinks[j][thread]);
        peak = max(peak, peaks[j][thread / 4u][thread % 4u]);
      }
      run_peaks[thread] = peak;
    }
    //for m in MORE
    //for s in QUERY_LOADS
    query$s = q[load_at + load_first + $su * LOADERS];
    //end
    //end
  }

  if (team == 0u) {
    //for d in SPANS
    if (($du + 1u) * DIMS <= RANK4 || dim + $du * DIMS < RANK4) {
      let to = ((query + 4u * own) * RUNS + run) * RANK4 + dim + $du * DIMS;
      //for a in OWN
      //for h in FOUR
      if (4u * (own + $au) + $hu < count) {
        sums[to + $(4 * a + h)u * RUNS * RANK4] = sum$d_$a_$h;
      }
      //end
      //end
    }
    //end
  }
  if (thread < count) {
    stats[(query + thread) * RUNS + run] = vec2<f32>(run_peaks[thread], total);
  }
}

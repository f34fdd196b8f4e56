// Attention over latents of few rows at long contexts: what latent_attention.wgsl makes of runs of RUN cells, to the
// bit, for rows without paths. CELLS cells go at a time: a score's loads, products and sums wait for nothing of
// other chunks, and latents that were read for scores are read again, for values, from the nearest cache.
//
// One workgroup per (tile of $QUERIES queries, run). Queries are numbered row * HEADS + head.
//   scores   16 invocations share blocks of $TQ queries by $TC cells: of each score sums of fours l, l + 16, ... of
//            q . k, added as a binary tree; loads go $GROUP - 1 steps ahead;
//   weights  exp(score - peak of the chunk), all chunks side by side;
//   values   weights times fours of latents, cell after cell; chunks are added one after the other (latent_fold.wgsl).
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
const TQ = $TQu;
const TC = $TCu;
const BLOCKS = CELLS / TC; // of cells
const QBLOCKS = QUERIES / TQ; // of queries
const WIDTH4 = $WIDTH4u; // vec4 of a latent and its rotated part
const RANK4 = $RANK4u; // vec4 of a latent
const BATCH = $BATCHu; // fours of queries of an invocation whose sums are added at a time
const POOLED = CELLS * QBLOCKS * BATCH; // of a lane
const SIDE = POOLED | 1u; // odd: lanes begin in different banks
const GROUPS = $GROUPSu; // of invocations, by queries, for the values
const TEAMS = $TEAMSu; // of groups, by chunks: 1 or 2
const DIMS = THREADS / GROUPS / TEAMS; // invocations side by side
const OWN = $OWNu; // fours of queries of an invocation, for the values

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total

// Arrays of arrays: an index that is a number takes no instruction to be kept in its bounds.
// Queries; then the sums of lane l, at [l % QUERIES][l / QUERIES * SIDE].
var<workgroup> pool: array<array<array<vec4<f32>, $POOL>, TQ>, QBLOCKS>;
var<workgroup> scores: array<array<array<vec4<f32>, QUADS>, CHUNK>, CHUNKS>;
var<workgroup> weights: array<array<array<vec4<f32>, QUADS>, 4>, $FOURS>; // by fours of cells
var<workgroup> peaks: array<array<vec4<f32>, QUADS>, CHUNKS>;
var<workgroup> totals: array<array<vec4<f32>, QUADS>, CHUNKS>;
var<workgroup> shrinks: array<array<vec4<f32>, QUADS>, CHUNKS>;
var<workgroup> shares: array<array<vec4<f32>, QUADS>, CHUNKS>;
var<workgroup> run_peaks: array<vec4<f32>, QUADS>; // of the cells before
var<workgroup> begins: array<vec4<u32>, QUADS>; // first cell that a query sees
var<workgroup> ends: array<vec4<u32>, QUADS>; // one past the last; 0: none
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
  //for s in QUERY_LOADS
  var query$s = q[query * WIDTH4 + min(thread + $su * THREADS, count * WIDTH4 - 1u)];
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
  let block = thread / 16u % BLOCKS;
  let own_queries = min(thread / (16u * BLOCKS), QBLOCKS - 1u);
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
  var total = vec4<f32>(0.0); // of four `thread`

  for (var first = run * RUN; first < last; first += CELLS) {
    // What lies behind the last cell is loaded like the others, and then does not count.
    let head = min(first + block * TC, end - 1u) / PAGE;
    let stored = pages[slot * TABLE_PAGES + head] * PAGE + block * TC % PAGE;
    //for s in GROUP
    //for c in TC
    var key$s_$c = load_four(stored + $cu, lane + $su * 16u);
    //end
    //end
    if (first > run * RUN) {
      workgroupBarrier(); // what is read of the cells before
    }
    //for s in QUERY_LOADS
    {
      let at = thread + $su * THREADS;
      if (($su + 1u) * THREADS <= QUERIES * WIDTH4 || at < QUERIES * WIDTH4) {
        pool[at / WIDTH4 / TQ][at / WIDTH4 % TQ][at % WIDTH4] = query$s;
      }
    }
    //end
    if (thread < CHUNKS) {
      places[thread] = pages[slot * TABLE_PAGES + min(first + thread * CHUNK, end - 1u) / PAGE] * PAGE;
    }
    if (thread < QUADS) {
      if (first == run * RUN) {
        run_peaks[thread] = vec4<f32>(NEGATIVE);
        //for h in FOUR
        {
          let seer = rows[FIRST_ROW + (query + min(4u * thread + $hu, count - 1u)) / HEADS];
          begins[thread][$h] = visible_begin(seer);
          ends[thread][$h] = visible_end(seer);
        }
        //end
      } else {
        var peak = run_peaks[thread];
        for (var j = 0u; j < CHUNKS; j++) {
          peak = max(peak, peaks[j][thread]);
        }
        run_peaks[thread] = peak;
      }
    }
    workgroupBarrier();

    //for x in TQ
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
          //for x in TQ
          {
            let query = pool[own_queries][$x][e];
            //for c in TC
            dot$x_$c = dot4(dot$x_$c, query, k$c);
            //end
          }
          //end
        }
        //for c in TC
        key$s_$c = load_four(stored + $cu, e + $GROUPu * 16u);
        //end
      }
      //end
    }
    //for r in ROUNDS
    workgroupBarrier(); // what is read of the queries, or of the sums before
    //for b in BATCH
    //for c in TC
    pool[lane % QUERIES / TQ][lane % TQ][
      lane / QUERIES * SIDE + ((block * TC + $cu) * QBLOCKS + own_queries) * BATCH + $bu
    ] = vec4<f32>(
      dot$(r * BATCH * 4 + b * 4)_$c,
      dot$(r * BATCH * 4 + b * 4 + 1)_$c,
      dot$(r * BATCH * 4 + b * 4 + 2)_$c,
      dot$(r * BATCH * 4 + b * 4 + 3)_$c,
    );
    //end
    //end
    workgroupBarrier();
    //for t in POOL_TURNS
    {
      let at = thread + $tu * THREADS;
      if (($tu + 1u) * THREADS <= POOLED || at < POOLED) {
        //for l in LANES
        let sum0_$l = pool[$lu % QUERIES / TQ][$lu % TQ][$lu / QUERIES * SIDE + at];
        //end
        //for l in LANES_2
        let sum1_$l = sum0_$(2 * l) + sum0_$(2 * l + 1);
        //end
        //for l in LANES_4
        let sum2_$l = sum1_$(2 * l) + sum1_$(2 * l + 1);
        //end
        //for l in LANES_8
        let sum3_$l = sum2_$(2 * l) + sum2_$(2 * l + 1);
        //end
        let cell = at / (QBLOCKS * BATCH);
        let quad = at / BATCH % QBLOCKS * (TQ / 4u) + $(r * BATCH)u + at % BATCH;
        let logical = vec4<u32>(first + cell);
        let seen = (logical >= begins[quad]) & (logical < ends[quad]);
        scores[cell / CHUNK][cell % CHUNK][quad] =
          select(vec4<f32>(NEGATIVE), SCALE * (sum3_0 + sum3_1), seen);
      }
    }
    //end
    //end
    workgroupBarrier();

    //for t in WEIGHT_TURNS
    {
      let at = thread + $tu * THREADS;
      if (($tu + 1u) * THREADS <= CELLS * QUADS || at < CELLS * QUADS) {
        let cell = at / QUADS;
        let quad = at % QUADS;
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
    }
    //end
    let chunks = min(CHUNKS, (end - first + CHUNK - 1u) / CHUNK);
    let full = (end - first) / CHUNK; // chunks of which all cells are there
    //for d in SPANS
    let four$d = min(dim + $du * DIMS, RANK4 - 1u);
    //for b in TWO
    //for c in FOUR
    var packed$d_$b_$c = load_four(places[team] + $(4 * b + c)u, four$d);
    //end
    //end
    //end
    workgroupBarrier();
    if (thread < CHUNKS * QUADS) {
      let chunk = thread / QUADS;
      let quad = thread % QUADS;
      var part = vec4<f32>(0.0);
      for (var f = 4u * chunk; f < 4u * chunk + 4u; f++) {
        //for c in FOUR
        part += weights[f][$c][quad];
        //end
      }
      var before = run_peaks[quad];
      for (var j = 0u; j < chunk; j++) {
        before = max(before, peaks[j][quad]);
      }
      let fold = fold_of(before, peaks[chunk][quad]);
      totals[chunk][quad] = part;
      shrinks[chunk][quad] = fold.shrink;
      shares[chunk][quad] = fold.share;
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
      for (var f = 0u; f < 2u * turns; f++) {
        let chunk = min(f / 2u * TEAMS + team, CHUNKS - 1u);
        let place = places[min((f + 1u) / 2u * TEAMS + team, CHUNKS - 1u)];
        if (chunk >= full) {
          // What was left of others may be no number.
          let there = min(end - first, chunk * CHUNK + CHUNK) - min(end - first, chunk * CHUNK);
          //for b in TWO
          //for c in FOUR
          packed$d_$b_$c = select(
            vec4<u32>(),
            packed$d_$b_$c,
            f % 2u * 8u + $(4 * b + c)u < there,
          );
          //end
          //end
        }
        //for b in TWO
        //for c in FOUR
        {
          let value = four_of(packed$d_$b_$c, four$d);
          //for a in OWN
          let weight$a = weights[4u * chunk + f % 2u * 2u + $bu][$c][own + $au];
          //for h in FOUR
          part$a_$h = fma(vec4<f32>(weight$a[$h]), value, part$a_$h);
          //end
          //end
        }
        //end
        //for c in FOUR
        packed$d_$b_$c = load_four(place + (f + 1u) % 2u * 8u + $(4 * b + c)u, four$d);
        //end
        //end
        if (f % 2u == 1u) {
          //for p in PAIRED
          //for n in ALONE
          workgroupBarrier(); // what is read of the turn before
          //end
          if (team == 1u) {
            //for a in OWN
            //for h in FOUR
            pool[$(4 * a + h)u / TQ][$(4 * a + h)u % TQ][handed * DIMS + dim] = part$a_$h;
            //end
            //end
          }
          workgroupBarrier();
          //end
          if (team == 0u) {
            //for a in OWN
            {
              let shrink = shrinks[chunk][own + $au];
              let share = shares[chunk][own + $au];
              //for h in FOUR
              sum$d_$a_$h = fma(part$a_$h, vec4<f32>(share[$h]), sum$d_$a_$h * shrink[$h]);
              //end
            }
            //end
            //for p in PAIRED
            if (chunk + 1u < chunks) {
              //for a in OWN
              {
                let shrink = shrinks[chunk + 1u][own + $au];
                let share = shares[chunk + 1u][own + $au];
                //for h in FOUR
                sum$d_$a_$h = fma(
                  pool[$(4 * a + h)u / TQ][$(4 * a + h)u % TQ][handed * DIMS + dim],
                  vec4<f32>(share[$h]),
                  sum$d_$a_$h * shrink[$h],
                );
                //end
              }
              //end
            }
            //end
          }
          handed = $HANDSu - 1u - handed;
          //for a in OWN
          //for h in FOUR
          part$a_$h = vec4<f32>(0.0);
          //end
          //end
        }
      }
    }
    //end
    if (thread < QUADS) {
      for (var j = 0u; j < chunks; j++) {
        total = fma(totals[j][thread], shares[j][thread], total * shrinks[j][thread]);
      }
    }
    //for m in MORE
    //for s in QUERY_LOADS
    query$s = q[query * WIDTH4 + min(thread + $su * THREADS, count * WIDTH4 - 1u)];
    //end
    //end
  }

  //for d in SPANS
  if (team == 0u && (($du + 1u) * DIMS <= RANK4 || dim + $du * DIMS < RANK4)) {
    //for a in OWN
    //for h in FOUR
    if (4u * (own + $au) + $hu < count) {
      sums[((query + 4u * (own + $au) + $hu) * RUNS + run) * RANK4 + dim + $du * DIMS] = sum$d_$a_$h;
    }
    //end
    //end
  }
  //end
  if (thread < QUADS) {
    var peak = run_peaks[thread];
    //for j in CHUNKS
    peak = max(peak, peaks[$j][thread]);
    //end
    //for h in FOUR
    if (4u * thread + $hu < count) {
      stats[(query + 4u * thread + $hu) * RUNS + run] = vec2<f32>(peak[$h], total[$h]);
    }
    //end
  }
}

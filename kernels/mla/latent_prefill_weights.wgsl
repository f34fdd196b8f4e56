// Weights of the cells that many queries see, w = exp(SCALE q . k - peak of the chunk), with the peak and the total of
// every chunk of 16 cells: the first half of attention over latents (MLA), to the bit that of latent_attention.wgsl.
// latent_prefill_values.wgsl is the second half.
//
// One workgroup per ($QUERIES queries of a slot, $CELLS cells). Queries are numbered row * HEADS + head. Four
// invocations, the lanes, share a block of $TQ x $TC scores: of each, a lane has four neighbours of its 16 sums of
// fours l, l + 16, ... of q . k; those of all lanes are added as a binary tree. A slab of 16 fours is loaded into
// workgroup memory while the one before is multiplied.
//
// For (query, segment of 128 cells) `sums` has a record of RECORD fours: 128 weights, then of each pair of chunks two
// peaks and two totals. One invocation stores a whole four: where two store components of one, WGSL allows either to
// overwrite the other's. Cells from the last one on that a row of the workgroup sees are left out, in steps of
// $CELLS.

//#import lib/rows
//#import lib/visible
//#import lib/online_softmax
//#import lib/latent_load

override HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override RUNS: u32; // segments of a query in `sums`
override SLOT_QUERIES: u32; // queries of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const CHUNK = 16u; // cells
const CHUNKS = 8u; // of a segment
const RECORD = 36u; // vec4
const THREADS = $THREADSu;
const QUERIES = $QUERIESu;
const CELLS = $CELLSu;
const WIDTH4 = $WIDTH4u; // of a latent and its rotated part
const SLABS = (WIDTH4 + 15u) / 16u;
const WIDE = $WIDEu; // blocks side by side along cells
const TALL = $TALLu; // along queries
const PITCH = 17u; // odd: rows begin in different banks
const KEYS_AT = QUERIES * PITCH;
const POOL = $BATCHu * TALL * WIDE * $QUADSu; // fours of a lane, of a batch of its queries
const SCORES_AT = 4u * POOL; // [QUERIES, SCORE_PITCH], fours of cells c, c + WIDE, c + 2 WIDE, c + 3 WIDE
const SCORE_PITCH = CELLS / 4u + 1u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RECORD]

// Of queries, then of keys; later the lanes' sums and the scores; then peaks and totals in the place of the sums.
var<workgroup> slab: array<vec4<f32>, $SLAB>;
var<workgroup> ends: array<u32, QUERIES>; // cells that a query sees

fn score_of(query: u32, cell: u32) -> f32 {
  let at = query * SCORE_PITCH + cell / (4u * WIDE) * WIDE + cell % WIDE;
  return slab[SCORES_AT + at][cell / WIDE % 4u];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tiles = (SLOT_QUERIES + QUERIES - 1u) / QUERIES;
  let within = tile.x % tiles * QUERIES;
  let query = tile.x / tiles * SLOT_QUERIES + within;
  let count = min(QUERIES, SLOT_QUERIES - within);
  let first = tile.z * CELLS;
  var slot = 0u;
  var end = 0u;
  for (var r = query / HEADS; r <= (query + count - 1u) / HEADS; r++) {
    let own = rows[FIRST_ROW + r];
    if (own.live == 1u) {
      slot = own.slot;
      end = max(end, visible_end(own));
    }
  }
  if (first >= end) {
    return;
  }
  if (thread < QUERIES) {
    ends[thread] = visible_end(rows[FIRST_ROW + (query + min(thread, count - 1u)) / HEADS]);
  }
  let four = thread % 16u;
  //#for u in Q_LOADS
  let q$u = (query + min((thread + $uu * THREADS) / 16u, count - 1u)) * WIDTH4;
  var x$u = vec4<f32>();
  //#endfor
  //#for u in K_LOADS
  let cell$u = min(first + min((thread + $uu * THREADS) / 16u, CELLS - 1u), end - 1u);
  let k$u = pages[slot * TABLE_PAGES + cell$u / PAGE] * PAGE + cell$u % PAGE;
  var packed$u = vec4<u32>();
  //#endfor
  let wide = thread % WIDE;
  let tall = thread / WIDE % TALL;
  let lane = thread / WIDE / TALL;
  //#for n in 4
  //#for r in TQ
  //#for c in TC
  var sum$n_$r_$c = 0.0;
  //#endfor
  //#endfor
  //#endfor

  for (var t = 0u; t <= SLABS; t++) {
    if (t > 0u) {
      let e = 16u * (t - 1u) + four;
      workgroupBarrier(); // after all reads of the slab before
      //#for u in Q_LOADS
      if (($uu + 1u) * THREADS <= QUERIES * 16u || thread + $uu * THREADS < QUERIES * 16u) {
        slab[(thread + $uu * THREADS) / 16u * PITCH + four] = select(vec4<f32>(), x$u, e < WIDTH4);
      }
      //#endfor
      //#for u in K_LOADS
      if (($uu + 1u) * THREADS <= CELLS * 16u || thread + $uu * THREADS < CELLS * 16u) {
        slab[KEYS_AT + (thread + $uu * THREADS) / 16u * PITCH + four] =
          select(vec4<f32>(), four_of(packed$u, e), e < WIDTH4);
      }
      //#endfor
      workgroupBarrier();
    }
    if (t < SLABS) {
      let e = min(16u * t + four, WIDTH4 - 1u);
      //#for u in Q_LOADS
      x$u = q[q$u + e];
      //#endfor
      //#for u in K_LOADS
      packed$u = load_four(k$u, e);
      //#endfor
    }
    if (t > 0u) {
      //#for n in 4
      {
        let e = lane * 4u + $nu;
        //#for r in TQ
        let a$r = slab[(tall + $ru * TALL) * PITCH + e];
        //#endfor
        //#for c in TC
        {
          let b = slab[KEYS_AT + (wide + $cu * WIDE) * PITCH + e];
          //#for k in 4
          //#for r in TQ
          sum$n_$r_$c = fma(a$r[$k], b[$k], sum$n_$r_$c);
          //#endfor
          //#endfor
        }
        //#endfor
      }
      //#endfor
    }
  }

  //#for s in BATCHES
  workgroupBarrier(); // after all reads of the last slab or of the batch before
  //#for b in BATCH
  //#for h in QUADS
  {
    let to = lane * POOL + (($bu * TALL + tall) * WIDE + wide) * $QUADSu + $hu;
    slab[to] = vec4<f32>(
      //#for j in 4
      (sum0_$(s * BATCH + b)_$(4 * h + j) + sum1_$(s * BATCH + b)_$(4 * h + j))
        + (sum2_$(s * BATCH + b)_$(4 * h + j) + sum3_$(s * BATCH + b)_$(4 * h + j)),
      //#endfor
    );
  }
  //#endfor
  //#endfor
  workgroupBarrier();
  for (var at = thread; at < POOL; at += THREADS) {
    //#for l in 4
    let sum0_$l = slab[$lu * POOL + at];
    //#endfor
    //#for l in 2
    let sum1_$l = sum0_$(2 * l) + sum0_$(2 * l + 1);
    //#endfor
    let sum2_0 = sum1_0 + sum1_1;
    let own = at / $QUADSu / WIDE + $su * $BATCHu * TALL; // query
    let quad = at % $QUADSu;
    let cell = first + at / $QUADSu % WIDE + 4u * WIDE * quad;
    let seen = vec4<u32>(cell, cell + WIDE, cell + 2u * WIDE, cell + 3u * WIDE) < vec4<u32>(ends[own]);
    slab[SCORES_AT + own * SCORE_PITCH + quad * WIDE + at / $QUADSu % WIDE] =
      select(vec4<f32>(NEGATIVE), SCALE * sum2_0, seen);
  }
  //#endfor
  workgroupBarrier();

  for (var at = thread; at < QUERIES * CELLS / CHUNK; at += THREADS) {
    let own = at % QUERIES;
    let begin = at / QUERIES * CHUNK;
    var top = NEGATIVE;
    for (var c = 0u; c < CHUNK; c++) {
      top = max(top, score_of(own, begin + c));
    }
    let chunk = first / CHUNK + at / QUERIES;
    let to = ((query + own) * RUNS + chunk / CHUNKS) * RECORD;
    var total = 0.0;
    if (own < count) {
      for (var c = 0u; c < CHUNK / 4u; c++) {
        var weight = vec4<f32>();
        //#for j in 4
        {
          let score = score_of(own, begin + 4u * c + $ju);
          weight[$j] = select(exp(score - top), 0.0, score == NEGATIVE);
          total += weight[$j];
        }
        //#endfor
        sums[to + chunk % CHUNKS * (CHUNK / 4u) + c] = weight;
      }
    }
    slab[at] = vec4<f32>(top, total, 0.0, 0.0); // before SCORES_AT: the lanes' sums have been read
  }
  workgroupBarrier();
  for (var at = thread; at < QUERIES * CELLS / (2u * CHUNK); at += THREADS) {
    let own = at % QUERIES;
    let pair = first / (2u * CHUNK) + at / QUERIES;
    let a = slab[2u * (at / QUERIES) * QUERIES + own];
    let b = slab[(2u * (at / QUERIES) + 1u) * QUERIES + own];
    if (own < count) {
      let to = ((query + own) * RUNS + pair / (CHUNKS / 2u)) * RECORD + 32u;
      sums[to + pair % (CHUNKS / 2u)] = vec4<f32>(a.x, b.x, a.y, b.y);
    }
  }
}

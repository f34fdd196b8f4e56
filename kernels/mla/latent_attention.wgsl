// Attention over latents (MLA): sum, total and peak of softmax(SCALE q . k) v over a run of $RUN cells, for a tile of
// queries. A cell holds one key k for all heads, and the first 4 RANK4 elements of it are its value v.
// latent_combine.wgsl adds the runs.
//
// One workgroup per (tile of $QUERIES queries, run). Queries are numbered row * HEADS + head, so a tile
// may be some heads of a row or several rows of a slot: all of them have the same keys. Chunks of 16 cells are
// loaded into workgroup memory as floats, one after the other:
//   scores   $LANES invocations share a score: 16 sums of fours l, l + 16, ... of q . k, which are
//            added as a binary tree; each invocation has the sums of neighbouring fours;
//   weights  exp(score - peak of the chunk);
//   values   weights times fours of latents, cell after cell.
// Chunks of a segment of 128 cells are merged one after the other (lib/online_softmax.wgsl), here or, where
// a run is one chunk, by latent_combine.wgsl. So every sum has one order, by logical cells alone:
// a row has the same bits whatever its tile, its run and the rows in flight are.
//
// Rows share the reads of chunks that are stored at the same place for all of them. A chunk with
// cells of a row's path is read for each row of the tile alone.

//#import lib/rows
//#import lib/visible
//#import lib/online_softmax
//#import lib/kv_load

override HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override RUNS: u32; // places for runs of a query in `sums`
override SLOT_QUERIES: u32; // queries of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores
override PATHS: u32; // 1: rows may have paths; 0: none is looked at

const CHUNK = 16u; // cells
const THREADS = $THREADSu;
const RANK4 = $RANK4u; // vec4 of a latent
const WIDTH4 = 2u * VEC8S; // vec4 of a latent and its rotated part
const CELLS = $CELLSu; // of an invocation, for the scores
const CELL_GROUPS = 16u / CELLS;
const STRIDE = WIDTH4 + 1u; // of a cell; odd: cells start in different banks
const SPREAD = THREADS / CHUNK; // invocations that load a cell
const RUN = $RUNu; // cells, whole chunks
const QUERIES = $QUERIESu; // of a workgroup
const QUADS = $QUADSu; // fours of them
const LANES = $LANESu; // invocations a score
const SIDES = $SIDESu; // of a score's 16 sums, neighbours of an invocation that are added first
const PARTS = $PARTSu; // of those, of an invocation
const POOL = CHUNK * QUADS + 1u; // of a lane
const DIMS = THREADS / $GROUPSu; // invocations side by side, for the values
const OWN = $OWNu; // fours of queries of an invocation, for the values

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total

var<private> values: array<vec4<u32>, 1>; // for `load_value`, which is not called: values are parts of keys
var<workgroup> latents: array<vec4<f32>, CHUNK * STRIDE>;
var<workgroup> pool: array<vec4<f32>, LANES * POOL>; // then the scores, [CHUNK, QUADS]
var<workgroup> weights: array<vec4<f32>, CHUNK * QUADS>;
var<workgroup> begins: array<vec4<u32>, QUADS>; // first cell that a query sees
var<workgroup> ends: array<vec4<u32>, QUADS>; // one past the last; 0: none
var<workgroup> owners: array<vec4<u32>, QUADS>; // row
var<workgroup> shrinks: array<vec4<f32>, QUADS>;
var<workgroup> shares: array<vec4<f32>, QUADS>;

//#import lib/dot4

// A chunk, for all rows or for one.
struct Part {
  chunk: u32, // first cell
  row: u32,
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tiles = (SLOT_QUERIES + QUERIES - 1u) / QUERIES;
  let within = tile.x % tiles * QUERIES;
  let query = tile.x / tiles * SLOT_QUERIES + within;
  let count = min(QUERIES, SLOT_QUERIES - within);
  let first_row = query / HEADS;
  let last_row = (query + count - 1u) / HEADS;
  let run = tile.z;

  var slot = 0u;
  var begin = 0xffffffffu;
  var end = 0u;
  var base = 0xffffffffu; // of the cells that are on paths
  for (var r = first_row; r <= last_row; r++) {
    let own = rows[FIRST_ROW + r];
    if (own.live == 1u) {
      slot = own.slot;
      begin = min(begin, visible_begin(own));
      end = max(end, visible_end(own));
      base = select(base, min(base, own.base), own.base < visible_end(own));
    }
  }
  let first = max(run * RUN, begin / CHUNK * CHUNK);
  let last = min(run * RUN + RUN, end);
  if (begin >= end || first >= last) {
    return;
  }

  if (thread < QUADS) {
    //#for h in 4
    {
      let r = (query + min(4u * thread + $hu, count - 1u)) / HEADS;
      let own = rows[FIRST_ROW + r];
      begins[thread][$h] = visible_begin(own);
      ends[thread][$h] = visible_end(own);
      owners[thread][$h] = r;
    }
    //#endfor
  }
  let load_cell = thread / SPREAD;
  let load_first = thread % SPREAD;
  let cell = thread % CELL_GROUPS;
  let lane = thread / CELL_GROUPS % LANES;
  let four = thread / CELL_GROUPS / LANES; // of queries
  //#for h in 4
  let query$h = (query + min(4u * four + $hu, count - 1u)) * WIDTH4;
  //#endfor
  let dim = thread % DIMS;
  let own = thread / DIMS * OWN;
  var peak = vec4<f32>(NEGATIVE); // of four `thread`
  var total = vec4<f32>(0.0);
  //#for d in SPANS
  //#for a in OWN
  //#for h in 4
  var sum$d_$a_$h = vec4<f32>(0.0);
  //#endfor
  //#endfor
  //#endfor

  var at = Part(first / CHUNK * CHUNK, first_row);
  var now = at;
  var ready = false;
  //#for s in LOADS
  var packed$s: PackedVec8;
  //#endfor
  loop {
    // The next part is loaded before this one is summed: the waits are shared.
    let apart_next = PATHS == 1u && base < min(at.chunk + CHUNK, end);
    if (at.chunk < last) {
      let row = rows[FIRST_ROW + at.row];
      let most = max(select(end, visible_end(row), apart_next), 1u) - 1u;
      var place = min(at.chunk + load_cell, most);
      if (apart_next && scattered(row, at.chunk + CHUNK)) {
        place = physical(row, place);
      }
      let stored = pages[slot * TABLE_PAGES + place / PAGE] * PAGE + place % PAGE;
      //#for s in LOADS
      packed$s = load_key(stored, min(load_first + $su * SPREAD, VEC8S - 1u));
      //#endfor
    }
    if (ready) {
      let chunk = now.chunk;
      let only = now.row;
      let apart = PATHS == 1u && base < min(chunk + CHUNK, end);
      // An invocation's sums of q . k, for CELLS cells and a four of queries, go to `pool`. It computes PARTS pairs, or
      // one sum, of a score's 16 sums.
      {
        //#for c in CELLS
        let key$c = (cell + $cu * CELL_GROUPS) * STRIDE;
        var score$c = vec4<f32>(0.0);
        //#endfor
        for (var p = 0u; p < PARTS; p++) {
          //#for c in CELLS
          var pair$c = vec4<f32>(0.0);
          //#endfor
          for (var n = 0u; n < SIDES; n++) {
            let first_sum = SIDES * (lane * PARTS + p) + n;
            //#for c in CELLS
            //#for h in 4
            var dot$c_$h = 0.0;
            //#endfor
            //#endfor
            for (var t = 0u; t < $STEP_LOOPSu; t++) {
              //#for s in STEPS
              let e$s = first_sum + 16u * (t * $STEPSu + $su);
              if ($STEP_LOOPSu * $STEPSu * 16u <= WIDTH4 || e$s < WIDTH4) {
                //#for c in CELLS
                let k$c = latents[key$c + e$s];
                //#endfor
                //#for h in 4
                {
                  let x = q[query$h + e$s];
                  //#for c in CELLS
                  dot$c_$h = dot4(dot$c_$h, x, k$c);
                  //#endfor
                }
                //#endfor
              }
              //#endfor
            }
            //#for c in CELLS
            pair$c += vec4<f32>(dot$c_0, dot$c_1, dot$c_2, dot$c_3);
            //#endfor
          }
          //#for c in CELLS
          score$c += pair$c;
          //#endfor
        }
        //#for c in CELLS
        pool[lane * POOL + (cell + $cu * CELL_GROUPS) * QUADS + four] = score$c;
        //#endfor
      }
      workgroupBarrier();
      //#for t in TURNS
      {
        let at = thread + $tu * THREADS;
        if (at < CHUNK * QUADS) {
          //#for l in LANES
          let sum0_$l = pool[$lu * POOL + at];
          //#endfor
          //#for l in LANES_2
          let sum1_$l = sum0_$(2 * l) + sum0_$(2 * l + 1);
          //#endfor
          //#for l in LANES_4
          let sum2_$l = sum1_$(2 * l) + sum1_$(2 * l + 1);
          //#endfor
          //#for l in LANES_8
          let sum3_$l = sum2_$(2 * l) + sum2_$(2 * l + 1);
          //#endfor
          //#for l in LANES_16
          let sum4_$l = sum3_$(2 * l) + sum3_$(2 * l + 1);
          //#endfor
          let quad = at % QUADS;
          let logical = vec4<u32>(chunk + at / QUADS);
          let seen = (logical >= begins[quad]) & (logical < ends[quad])
            & ((owners[quad] == vec4<u32>(only)) | vec4<bool>(!apart));
          pool[at] = select(vec4<f32>(NEGATIVE), SCALE * sum$(LEVELS)_0, seen);
        }
      }
      //#endfor
      workgroupBarrier();
      //#for t in TURNS
      {
        let at = thread + $tu * THREADS;
        if (at < CHUNK * QUADS) {
          let quad = at % QUADS;
          var top = pool[quad];
          for (var c = 0u; c < CHUNK; c += 4u) {
            //#for c in 4
            top = max(top, pool[(c + $cu) * QUADS + quad]);
            //#endfor
          }
          let score = pool[at];
          weights[at] = select(exp(score - top), vec4<f32>(0.0), score == vec4<f32>(NEGATIVE));
          if (at < QUADS) {
            let fold = fold_of(peak, top);
            peak = fold.peak;
            shrinks[at] = fold.shrink;
            shares[at] = fold.share;
          }
        }
      }
      //#endfor
      workgroupBarrier();
      if (thread < QUADS) {
        var part = vec4<f32>(0.0);
        for (var c = 0u; c < CHUNK; c += 4u) {
          //#for c in 4
          part += weights[(c + $cu) * QUADS + thread];
          //#endfor
        }
        total = fma(part, shares[thread], total * shrinks[thread]);
      }
      // Add the chunk's weighted sums of latents to those of the chunks before it.
      //#for d in SPANS
      if (($du + 1u) * DIMS <= RANK4 || dim + $du * DIMS < RANK4) {
        //#for b in TIMES
        {
          //#for a in BOTH
          //#for h in 4
          var part$a_$h = vec4<f32>(0.0);
          //#endfor
          //#endfor
          for (var c = 0u; c < CHUNK; c += $AT_ONCEu) {
            //#for c in AT_ONCE
            {
              let value = latents[(c + $cu) * STRIDE + dim + $du * DIMS];
              //#for a in BOTH
              let weight$a = weights[(c + $cu) * QUADS + own + $(b * BOTH + a)u];
              //#for h in 4
              part$a_$h = fma(vec4<f32>(weight$a[$h]), value, part$a_$h);
              //#endfor
              //#endfor
            }
            //#endfor
          }
          //#for a in BOTH
          {
            let shrink = shrinks[own + $(b * BOTH + a)u];
            let share = shares[own + $(b * BOTH + a)u];
            //#for h in 4
            sum$d_$(b * BOTH + a)_$h = fma(
              part$a_$h,
              vec4<f32>(share[$h]),
              sum$d_$(b * BOTH + a)_$h * shrink[$h],
            );
            //#endfor
          }
          //#endfor
        }
        //#endfor
      }
      //#endfor
    }
    if (at.chunk >= last) {
      break;
    }
    // What a row does not see may be NaN, which a weight of 0 would not remove: zeros are stored instead.
    let seen_next = !apart_next || at.chunk < visible_end(rows[FIRST_ROW + at.row]);
    workgroupBarrier(); // after all reads of the part before
    //#for s in LOADS
    if (($su + 1u) * SPREAD <= VEC8S || load_first + $su * SPREAD < VEC8S) {
      let key = vec8_of(packed$s);
      let to = load_cell * STRIDE + load_first + $su * SPREAD;
      latents[to] = select(vec4<f32>(0.0), key.lo, seen_next);
      latents[to + VEC8S] = select(vec4<f32>(0.0), key.hi, seen_next);
    }
    //#endfor
    workgroupBarrier();
    now = at;
    ready = true;
    at.row++;
    if (!apart_next || at.row > last_row) {
      at = Part(at.chunk + CHUNK, first_row);
    }
  }

  //#for d in SPANS
  if (($du + 1u) * DIMS <= RANK4 || dim + $du * DIMS < RANK4) {
    //#for a in OWN
    //#for h in 4
    if (4u * (own + $au) + $hu < count) {
      let at = (query + 4u * (own + $au) + $hu) * RUNS + run;
      sums[at * RANK4 + dim + $du * DIMS] = sum$d_$a_$h;
    }
    //#endfor
    //#endfor
  }
  //#endfor
  if (thread < QUADS) {
    //#for h in 4
    if (4u * thread + $hu < count) {
      stats[(query + 4u * thread + $hu) * RUNS + run] = vec2<f32>(peak[$h], total[$h]);
    }
    //#endfor
  }
}

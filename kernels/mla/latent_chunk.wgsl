// Attention over latents (MLA) of few rows at short contexts: sum, total and peak of softmax(SCALE q . k) v over one
// chunk of 16 cells, to the bit those of latent_attention.wgsl, for rows without paths. There is no loop over chunks,
// and queries are loaded before anything that depends on the row.
//
// One workgroup per (tile of 4 queries, chunk). Queries are numbered row * HEADS + head.
//   scores   16 invocations share a score: sums of fours l, l + 16, ... of q . k, added as a binary tree;
//   weights  exp(score - peak of the chunk);
//   values   weights times fours of latents, cell after cell.

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

const CHUNK = 16u; // cells
const THREADS = $THREADSu;
const RANK4 = $RANK4u; // vec4 of a latent
const WIDTH4 = 2u * VEC8S; // vec4 of a latent and its rotated part
const CELLS = $CELLSu; // of an invocation, for the scores
const CELL_GROUPS = 16u / CELLS;
const STRIDE = WIDTH4 + 1u; // of a cell; odd: cells start in different banks
const SPREAD = THREADS / CHUNK; // invocations that load a cell
const SIDE = CHUNK + 1u; // of sums of cells

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total

var<private> values: array<vec4<u32>, 1>; // for `load_value`, which is not called: values are parts of keys
// Arrays of arrays: an index that is a constant takes no instruction to be kept in its bounds.
var<workgroup> latents: array<array<vec4<f32>, STRIDE>, CHUNK>;
// Queries; then sum l of the cells' scores, at [l % 4][l / 4 * SIDE + cell]; then in the first the scores.
var<workgroup> pool: array<array<vec4<f32>, $POOL>, 4>;
var<workgroup> weights: array<vec4<f32>, CHUNK>;

//#import lib/dot4

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tiles = (SLOT_QUERIES + 3u) / 4u;
  let within = tile.x % tiles * 4u;
  let query = tile.x / tiles * SLOT_QUERIES + within;
  let count = min(4u, SLOT_QUERIES - within);
  let chunk = tile.z * CHUNK;
  let own = thread / (THREADS / 4u); // query that it loads
  let first_four = thread % (THREADS / 4u);
  let own_query = (query + min(own, count - 1u)) * WIDTH4;
  //#for s in QUERY_LOADS
  let query$s = q[own_query + min(first_four + $su * (THREADS / 4u), WIDTH4 - 1u)];
  //#endfor

  var slot = 0u;
  var end = 0u; // of all rows of the tile
  var begins = vec4<u32>();
  var ends = vec4<u32>(); // one past the last cell that a query sees; 0: none
  //#for h in 4
  {
    let own = rows[FIRST_ROW + (query + min($hu, count - 1u)) / HEADS];
    begins[$h] = visible_begin(own);
    ends[$h] = visible_end(own);
    end = max(end, ends[$h]);
    slot = select(slot, own.slot, own.live == 1u);
  }
  //#endfor
  if (chunk >= end || all(begins >= vec4<u32>(chunk + CHUNK))) {
    return;
  }
  let load_cell = thread / SPREAD;
  let load_first = thread % SPREAD;
  let place = min(chunk + load_cell, end - 1u);
  let stored = pages[slot * TABLE_PAGES + place / PAGE] * PAGE + place % PAGE;
  //#for s in LOADS
  let packed$s = load_key(stored, min(load_first + $su * SPREAD, VEC8S - 1u));
  //#endfor
  //#for s in QUERY_LOADS
  if (($su + 1u) * (THREADS / 4u) <= WIDTH4 || first_four + $su * (THREADS / 4u) < WIDTH4) {
    pool[own][first_four + $su * (THREADS / 4u)] = query$s;
  }
  //#endfor
  //#for s in LOADS
  if (($su + 1u) * SPREAD <= VEC8S || load_first + $su * SPREAD < VEC8S) {
    let key = vec8_of(packed$s);
    latents[load_cell][load_first + $su * SPREAD] = key.lo;
    latents[load_cell][load_first + $su * SPREAD + VEC8S] = key.hi;
  }
  //#endfor
  workgroupBarrier();

  let cell = thread % CELL_GROUPS;
  let lane = thread / CELL_GROUPS;
  //#for c in CELLS
  //#for h in 4
  var dot$c_$h = 0.0;
  //#endfor
  //#endfor
  for (var t = 0u; t < $STEP_LOOPSu; t++) {
    //#for s in STEPS
    {
      let e = lane + 16u * (t * $STEPSu + $su);
      if ($STEP_LOOPSu * $STEPSu * 16u <= WIDTH4 || e < WIDTH4) {
        //#for c in CELLS
        let k$c = latents[cell + $cu * CELL_GROUPS][e];
        //#endfor
        //#for h in 4
        {
          let x = pool[$h][e];
          //#for c in CELLS
          dot$c_$h = dot4(dot$c_$h, x, k$c);
          //#endfor
        }
        //#endfor
      }
    }
    //#endfor
  }
  workgroupBarrier(); // after all reads of the queries
  //#for c in CELLS
  pool[lane % 4u][lane / 4u * SIDE + cell + $cu * CELL_GROUPS] =
    vec4<f32>(dot$c_0, dot$c_1, dot$c_2, dot$c_3);
  //#endfor
  workgroupBarrier();
  if (thread < CHUNK) {
    //#for l in 16
    let sum0_$l = pool[$lu % 4u][$lu / 4u * SIDE + thread];
    //#endfor
    //#for l in 8
    let sum1_$l = sum0_$(2 * l) + sum0_$(2 * l + 1);
    //#endfor
    //#for l in 4
    let sum2_$l = sum1_$(2 * l) + sum1_$(2 * l + 1);
    //#endfor
    //#for l in 2
    let sum3_$l = sum2_$(2 * l) + sum2_$(2 * l + 1);
    //#endfor
    let logical = vec4<u32>(chunk + thread);
    let seen = (logical >= begins) & (logical < ends);
    pool[0][thread] = select(vec4<f32>(NEGATIVE), SCALE * (sum3_0 + sum3_1), seen);
  }
  workgroupBarrier();
  var top = vec4<f32>(NEGATIVE);
  if (thread < CHUNK) {
    //#for c in 16
    top = max(top, pool[0][$c]);
    //#endfor
    let score = pool[0][thread];
    weights[thread] = select(exp(score - top), vec4<f32>(0.0), score == vec4<f32>(NEGATIVE));
  }
  workgroupBarrier();
  if (thread == 0u) {
    var total = vec4<f32>(0.0);
    for (var c = 0u; c < CHUNK; c += 4u) {
      //#for c in 4
      total += weights[c + $cu];
      //#endfor
    }
    //#for h in 4
    if ($hu < count) {
      stats[(query + $hu) * RUNS + tile.z] = vec2<f32>(top[$h], total[$h]);
    }
    //#endfor
  }
  for (var dim = thread; dim < RANK4; dim += THREADS) {
    //#for h in 4
    var sum$h = vec4<f32>(0.0);
    //#endfor
    for (var c = 0u; c < CHUNK; c += 4u) {
      //#for c in 4
      {
        let value = latents[c + $cu][dim];
        let weight = weights[c + $cu];
        //#for h in 4
        sum$h = fma(vec4<f32>(weight[$h]), value, sum$h);
        //#endfor
      }
      //#endfor
    }
    //#for h in 4
    if ($hu < count) {
      sums[((query + $hu) * RUNS + tile.z) * RANK4 + dim] = sum$h;
    }
    //#endfor
  }
}

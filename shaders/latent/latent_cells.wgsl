// What attention over latents declares alike: the sums of chunks of cells, brought into workgroup memory as floats.
// Slot:
//   kv_load: `load_key` and `vec8_of` of a dtype (kv/load_*.wgsl), over `keys`.

//use fragments/rows
//use attention/visible
//use latent/latent_fold
//use kv_load

override HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override RUNS: u32; // places for runs of a query in `sums`
override SLOT_QUERIES: u32; // queries of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const CHUNK = 16u; // cells
const THREADS = $THREADSu;
const WIDTH4 = 2u * VEC8S; // vec4
const RANK4 = $RANK4u; // vec4 of a latent
const CELLS = $CELLSu; // of an invocation, for the scores
const CELL_GROUPS = 16u / CELLS;
const STRIDE = WIDTH4 + 1u; // of a cell; odd: cells start in different banks
const SPREAD = THREADS / CHUNK; // invocations that load a cell

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total

var<private> values: array<vec4<u32>, 1>; // of `load_value`, which is not called: values are parts of keys

fn dot4(sum: f32, q: vec4<f32>, k: vec4<f32>) -> f32 {
  return fma(q.w, k.w, fma(q.z, k.z, fma(q.y, k.y, fma(q.x, k.x, sum))));
}

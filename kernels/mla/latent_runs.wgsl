// What attention over latents declares alike where runs of cells leave sums: what it reads and writes.

//#import lib/rows
//#import lib/visible
//#import mla/latent_fold

override HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override RUNS: u32; // places for runs of a query in `sums`
override SLOT_QUERIES: u32; // queries of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const CHUNK = 16u; // cells
const THREADS = $THREADSu;
const RANK4 = $RANK4u; // vec4 of a latent

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, HEADS, WIDTH4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total

fn dot4(sum: f32, q: vec4<f32>, k: vec4<f32>) -> f32 {
  return fma(q.w, k.w, fma(q.z, k.z, fma(q.y, k.y, fma(q.x, k.x, sum))));
}

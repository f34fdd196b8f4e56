// How the segments of 128 cells that a row sees are added, see latent_attention.wgsl: each of LANES sums
// has every LANES-th segment, and these are added in order.

//use fragments/rows
//use attention/visible
//use latent/latent_fold

override RUNS: u32; // places for runs of a query in `sums`
override FIRST_ROW: u32; // of `rows`

const SEGMENT = 128u; // cells
const CHUNK = 16u; // cells
const RANK4 = $RANK4u; // vec4 of a latent
const LANES = $LANESu;

@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]

// Segments that a row sees: the first, and one past the last.
fn segments_of(row: Row) -> vec2<u32> {
  return vec2<u32>(visible_begin(row) / SEGMENT, (visible_end(row) + SEGMENT - 1u) / SEGMENT);
}

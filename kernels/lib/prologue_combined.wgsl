// Prologue of matmul_resident.wgsl: x is attention's output, and its partial sums (attention/attention.wgsl) are read
// instead, of at most $SPLITS splits that a row sees. x itself is not read, its size gives the number of rows.

//#import lib/rows
//#import lib/visible

override HEADS: u32;
override KV_SPLITS: u32; // of a whole block table

const SPLIT_CELLS = 64u;
const HEAD = $HEADu; // vec4 of a head
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(9) var<storage, read> parts: array<vec4<f32>>; // [rows, HEADS, KV_SPLITS, HEAD]
@group(0) @binding(10) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, KV_SPLITS]: peak, total
@group(0) @binding(11) var<storage, read> row_list: array<Row>; // [rows]
//#if SINKS
@group(0) @binding(13) var<storage, read> sinks: array<f32>; // [HEADS]: a logit without a value
//#endif
//#if gating != none
//#import lib/output_gate
//#else
fn gated(row: u32, quad: u32, y: vec4<f32>) -> vec4<f32> {
  return y;
}
//#endif

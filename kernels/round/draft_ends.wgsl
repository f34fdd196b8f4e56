// The last row of each sequence of a draft-extend, whose next token is wanted, copied side by side:
//   end_rows[b] = rows[last[b]], end_q[b] = q[last[b]], end_x[b] = x[last[b]]
// With RESETS the scales of their attention's output become the largest, for attention to reduce (lib/scale_of.wgsl).
// A place of the batch without a sequence gets a copy of any row, which later kernels ignore.
//
// One invocation per element.

//#import lib/rows
//#if RESETS
//#import lib/scale_of
//#endif

override Q_COLS: u32;
override COLS: u32;

@group(0) @binding(0) var<storage, read> last: array<u32>; // [batch]; any row where there is no sequence
@group(0) @binding(1) var<storage, read> rows: array<Row>;
@group(0) @binding(2) var<storage, read> q: array<f32>; // [rows, Q_COLS]
@group(0) @binding(3) var<storage, read> x: array<f32>; // [rows, COLS], the residual stream
@group(0) @binding(4) var<storage, read_write> end_rows: array<Row>; // [batch]
@group(0) @binding(5) var<storage, read_write> end_q: array<f32>; // [batch, Q_COLS]
@group(0) @binding(6) var<storage, read_write> end_x: array<f32>; // [batch, COLS]
//#if RESETS
@group(0) @binding(7) var<storage, read_write> reduced: array<f32>; // [batch] scales
//#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  //#if RESETS
  if (id.x == 0u) {
    reduced[id.y] = bitcast<f32>(LARGEST_SCALE);
  }
  //#endif
  let source = last[id.y];
  if (id.x == 0u) {
    end_rows[id.y] = rows[source];
  }
  if (id.x < Q_COLS) {
    end_q[id.y * Q_COLS + id.x] = q[source * Q_COLS + id.x];
  }
  if (id.x < COLS) {
    end_x[id.y * COLS + id.x] = x[source * COLS + id.x];
  }
}

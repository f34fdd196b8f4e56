// out[r, c] = x[r, c] (1 + BETA ln(1 + floor(position of row r / LENGTH))): rows before position LENGTH are as they
// were.
//
// One invocation per element.

//#import lib/rows

override COLS: u32;
override BETA: f32;
override LENGTH: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    let at = id.y * COLS + id.x;
    let spans = rows[id.y].position / LENGTH;
    // No driver's logarithm of 1 is asked for.
    let scale = select(1.0 + BETA * log(1.0 + f32(spans)), 1.0, spans == 0u);
    out[at] = x[at] * scale;
  }
}

// As tensor/out_noted.wgsl, for workgroups of many rows: each row's largest number is found in workgroup memory first, and
// lowers its scale once.

//use tensor/scale_of

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
// Bits of f32 [rows]; positive ones are in the order of the numbers.
@group(0) @binding(13) var<storage, read_write> noted: array<atomic<u32>>;

var<private> peak: f32 = 0.0;
// Bits of numbers without sign, by row of the workgroup.
var<workgroup> row_peaks: array<atomic<u32>, $TILE_ROWS>;

fn consider(y: f32) {
  peak = max(peak, abs(y));
}

// Lanes lower the same number one after the other: to fold them by shuffles first takes half as long again as the
// whole matmul of a small matrix.
fn gather(own: u32) {
  atomicMax(&row_peaks[own], bitcast<u32>(peak));
  peak = 0.0;
}

fn end_row(row: u32, own: u32) {
  atomicMin(&noted[row], bitcast<u32>(scale_of(bitcast<f32>(atomicLoad(&row_peaks[own])))));
}

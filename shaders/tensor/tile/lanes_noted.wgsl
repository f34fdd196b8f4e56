// As lanes_store.wgsl, for an epilogue that lets `consider` see what it stores: lowers the scale of a row of `out` to
// that of its largest number, once a workgroup: all workgroups lower the same few numbers, one after the other.

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

fn taken() -> f32 {
  let found = peak;
  peak = 0.0;
  return found;
}

fn gather(own: u32, own_peak: f32, lanes: u32, first: bool) {
  var folded = own_peak;
  for (var apart = 1u; apart < lanes; apart *= 2u) {
    folded = max(folded, subgroupShuffleXor(folded, apart));
  }
  if (first) {
    atomicMax(&row_peaks[own], bitcast<u32>(folded));
  }
}

fn end_row(row: u32, own: u32) {
  atomicMin(&noted[row], bitcast<u32>(scale_of(bitcast<f32>(atomicLoad(&row_peaks[own])))));
}

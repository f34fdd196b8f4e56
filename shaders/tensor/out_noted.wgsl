// As out_store.wgsl, for an epilogue that lets `consider` see what it stores: lowers the scale of a row of
// `out` to that of its largest number, whatever the order: before, it is the largest.

//use tensor/scale_of

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
// Bits of f32 [rows]; positive ones are in the order of the numbers.
@group(0) @binding(13) var<storage, read_write> noted: array<atomic<u32>>;

var<private> peak: f32 = 0.0;
var<private> folded: f32 = 0.0;

fn consider(y: f32) {
  peak = max(peak, abs(y));
}

fn end_row(row: u32) {
  atomicMin(&noted[row], bitcast<u32>(scale_of(max(peak, folded))));
  peak = 0.0;
  folded = 0.0;
}

// An invocation's outputs of a row and those of its neighbours, `lanes` together, a power of two, are one's.
fn fold(lanes: u32) {
  folded = peak;
  peak = 0.0;
  for (var apart = 1u; apart < lanes; apart *= 2u) {
    folded = max(folded, subgroupShuffleXor(folded, apart));
  }
}

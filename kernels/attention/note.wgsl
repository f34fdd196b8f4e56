//#if NOTED
// Lowers the scale of a row to that of its largest number, whatever the order: before, it is the largest.

//#import lib/scale_of

override NOTED_FIRST: u32; // row of scales of the dispatch's first one

// Bits of f32 [rows]; positive ones are in the order of the numbers.
@group(0) @binding(14) var<storage, read_write> scales: array<atomic<u32>>;

fn note(row: u32, y: vec4<f32>) {
  let size = abs(y);
  let peak = max(max(size.x, size.y), max(size.z, size.w));
  atomicMin(&scales[NOTED_FIRST + row], bitcast<u32>(scale_of(peak)));
}
//#else
// Nothing is noted beside attention's output.

fn note(row: u32, y: vec4<f32>) {}
//#endif

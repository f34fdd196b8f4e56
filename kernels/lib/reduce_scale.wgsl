//#if REDUCES_SCALE
// Reduces the scale of a row (scale_of.wgsl) by an atomic minimum to that of its largest number, whichever workgroup
// has it. Before the first number comes, a scale is LARGEST_SCALE.

//#import lib/scale_of

override FIRST_SCALE: u32; // index in `scales` of the scale of row 0

// Bits of f32 [rows]; those of positive floats are ordered like the floats.
@group(0) @binding(14) var<storage, read_write> scales: array<atomic<u32>>;

fn reduce_scale(row: u32, y: vec4<f32>) {
  let size = abs(y);
  let peak = max(max(size.x, size.y), max(size.z, size.w));
  atomicMin(&scales[FIRST_SCALE + row], bitcast<u32>(scale_of(peak)));
}
//#else
// Nobody reads the scales of these rows.

fn reduce_scale(row: u32, y: vec4<f32>) {}
//#endif

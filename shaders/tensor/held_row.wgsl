// What hold_row.wgsl declares.

@group(0) @binding(15) var<storage, read> x_scales: array<f32>; // [1]

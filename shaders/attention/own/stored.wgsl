// Where attention_row.wgsl has its heads from: what their matmul left.

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, 2 HALF (heads + 2 KV_HEADS)], in the order of raw_at

// Heads of attention_row.wgsl that are normed: rows of q, k and v are in order.

//use attention/norm_scale

@group(0) @binding(8) var<storage, read> norm_weight: array<f32>; // [2, 2 HALF]: of q, of k

// Where pair w of a head begins; the other half of it is a step further.
fn raw_at(row: u32, all: u32, head: u32, w: u32) -> u32 {
  return (row * all + head) * 2u * HALF + w;
}

fn raw_step(all: u32) -> u32 {
  return HALF;
}

fn gains(is_query: bool, w: u32) -> vec2<f32> {
  let at = select(2u * HALF, 0u, is_query) + w;
  return vec2<f32>(norm_weight[at], norm_weight[at + HALF]);
}

fn head_scale(squares: f32) -> f32 {
  return norm_scale(squares, 2u * HALF);
}

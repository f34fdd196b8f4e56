// Sums of segments are kept for combine_units.wgsl.

//use attention_units/sums_kept

struct Segment {
  number: u32,
  stat: vec2<f32>, // peak, base 2, and total
}

fn begin_segments(thread: u32) {
}

fn end_segment(thread: u32, number: u32, last: bool, stat: vec2<f32>) -> Segment {
  return Segment(number, stat);
}

fn put_segment(segment: Segment, query: u32, quad: u32, sum: vec4<f32>) {
  put(query, segment.number, quad, sum, segment.stat);
}

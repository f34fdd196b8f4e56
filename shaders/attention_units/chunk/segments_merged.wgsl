// All segments that a row sees are one workgroup's: they are merged in order, as combine_units.wgsl does, where the
// output is; zeros for padding.

@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>; // [rows, heads, 2 VEC8S]

// Of the segments before, by invocation: peak, base 2, and total. Not in registers, which are short.
var<workgroup> merged: array<vec2<f32>, THREADS>;

struct Segment {
  last: bool,
  seen: bool, // some of it
  before: f32, // the total of those before
  total: f32, // with its own
  kept: f32, // factors of the sums before and of its own
  taken: f32,
}

fn begin_segments(thread: u32) {
  merged[thread] = vec2(NEGATIVE, 0.0);
}

fn end_segment(thread: u32, number: u32, last: bool, stat: vec2<f32>) -> Segment {
  let before = merged[thread];
  let peak = max(before.x, stat.x);
  let kept = power(before.x - peak);
  let taken = power(stat.x - peak);
  let total = fma(before.y, kept, stat.y * taken);
  merged[thread] = vec2(peak, total);
  return Segment(last, stat.y > 0.0, before.y, total, kept, taken);
}

fn put_segment(segment: Segment, query: u32, quad: u32, sum: vec4<f32>) {
  let at = query * (2u * VEC8S) + quad;
  var all = vec4<f32>();
  if (segment.before > 0.0) {
    all = out[at];
  }
  if (segment.seen) {
    all = fma(all, vec4(segment.kept), sum * segment.taken);
  }
  if (segment.last && segment.total > 0.0) {
    all /= segment.total;
  }
  out[at] = all;
}

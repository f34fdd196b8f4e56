// load_rounded.wgsl where the last stage of a range is a part of one: `left` fours of it are left.
let there = vec4<bool>(2u * part < left);
let source = at + min(2u * part, left - 2u);
put_vec8(
  r,
  part,
  select(vec4<f32>(0.0), x[source], there),
  select(vec4<f32>(0.0), x[source + 1u], there),
);

// load_floats.wgsl where the last stage of a range is a part of one: `left` fours of it are left.
staged[(r * 2u + part % 2u) * $STAGEu + part / 2u] = select(
  vec4<f32>(0.0),
  x[at + min(part, left - 1u)],
  part < left,
);

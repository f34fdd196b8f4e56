// Keys and values in f32: a row is [HEAD_DIM] in order. Eight i is dims 4i .. 4i + 3 of either half.

alias Raw = Eight; // an eight as it lies in memory

fn load_key(row: u32, i: u32) -> Raw {
  let at = row * 2u * EIGHTS + i;
  return Raw(bitcast<vec4<f32>>(keys[at]), bitcast<vec4<f32>>(keys[at + EIGHTS]));
}

fn load_value(row: u32, i: u32) -> Raw {
  let at = row * 2u * EIGHTS + i;
  return Raw(bitcast<vec4<f32>>(values[at]), bitcast<vec4<f32>>(values[at + EIGHTS]));
}

fn eight(raw: Raw) -> Eight {
  return raw;
}

// Keys and values in bf16: word w of a row is (dim w, dim w + HEAD_DIM / 2), low half first, so that a
// rope pair is one word. Eight i is words 4i .. 4i + 3.

alias Raw = vec4<u32>; // an eight as it lies in memory

fn load_key(row: u32, i: u32) -> Raw {
  return keys[row * EIGHTS + i];
}

fn load_value(row: u32, i: u32) -> Raw {
  return values[row * EIGHTS + i];
}

fn eight(raw: Raw) -> Eight {
  return Eight(
    bitcast<vec4<f32>>(raw << vec4<u32>(16u)),
    bitcast<vec4<f32>>(raw & vec4<u32>(0xffff0000u)),
  );
}

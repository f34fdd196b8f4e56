// Keys and values in f16: word w of a row is (dim w, dim w + HEAD_DIM / 2), low half first, so that a
// rope pair is one word. Eight i is words 4i .. 4i + 3.

alias Raw = vec4<u32>; // an eight as it lies in memory

fn load_key(row: u32, i: u32) -> Raw {
  return keys[row * EIGHTS + i];
}

fn load_value(row: u32, i: u32) -> Raw {
  return values[row * EIGHTS + i];
}

fn eight(raw: Raw) -> Eight {
  let x = unpack2x16float(raw.x);
  let y = unpack2x16float(raw.y);
  let z = unpack2x16float(raw.z);
  let w = unpack2x16float(raw.w);
  return Eight(
    vec4<f32>(x.x, y.x, z.x, w.x),
    vec4<f32>(x.y, y.y, z.y, w.y),
  );
}

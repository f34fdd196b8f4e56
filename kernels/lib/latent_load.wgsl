// Loads latents of a KV page in fours: `load_four(row, e)` returns the words that hold elements 4e .. 4e + 3 of a
// cell's row, `four_of(words, e)` the elements themselves. Of 16 bits, word w of a row is (element w, element w + half
// the row), low half first.
//
// The kernel binds `keys` and declares WIDTH4, vec4s of a row.

//#if kv == f32
fn load_four(row: u32, e: u32) -> vec4<u32> {
  return keys[row * WIDTH4 + e];
}

fn four_of(packed: vec4<u32>, e: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(packed);
}
//#else
fn load_four(row: u32, e: u32) -> vec4<u32> {
  return keys[row * (WIDTH4 / 2u) + e % (WIDTH4 / 2u)];
}

//#if kv == f16
fn four_of(packed: vec4<u32>, e: u32) -> vec4<f32> {
  let x = unpack2x16float(packed.x);
  let y = unpack2x16float(packed.y);
  let z = unpack2x16float(packed.z);
  let w = unpack2x16float(packed.w);
  return select(vec4<f32>(x.y, y.y, z.y, w.y), vec4<f32>(x.x, y.x, z.x, w.x), e < WIDTH4 / 2u);
}
//#else
fn four_of(packed: vec4<u32>, e: u32) -> vec4<f32> {
  let words = select(packed & vec4<u32>(0xffff0000u), packed << vec4<u32>(16u), e < WIDTH4 / 2u);
  return bitcast<vec4<f32>>(words);
}
//#endif
//#endif

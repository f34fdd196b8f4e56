// Keys and values in bf16: word w of a row is (dim w, dim w + HEAD_DIM / 2), low half first, so that a
// rope pair is one word. Vec8 i is words 4i .. 4i + 3.

//use kv/vec8

alias PackedVec8 = vec4<u32>; // eight values as they are stored

fn load_key(row: u32, i: u32) -> PackedVec8 {
  return keys[row * VEC8S + i];
}

fn load_value(row: u32, i: u32) -> PackedVec8 {
  return values[row * VEC8S + i];
}

fn vec8_of(packed: PackedVec8) -> Vec8 {
  return Vec8(
    bitcast<vec4<f32>>(packed << vec4<u32>(16u)),
    bitcast<vec4<f32>>(packed & vec4<u32>(0xffff0000u)),
  );
}

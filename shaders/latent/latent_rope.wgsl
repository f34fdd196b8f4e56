// Rotary embedding of the last ROPE elements of a head in multi-head latent attention.
//
// DeepSeek turns pairs (2i, 2i + 1), as INTERLEAVED says, else (i, i + ROPE / 2) as all others do:
// (a, b) -> (a cos - b sin, b cos + a sin), both stored where they were.

//use fragments/rows

override ROPE: u32; // even
override INTERLEAVED: u32;

@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> rope: array<vec2<f32>>; // [positions, ROPE / 2]: cos, sin
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [rows]

// Element j of the rotated x[first .. first + ROPE].
fn turned(first: u32, j: u32, position: u32) -> f32 {
  let half = ROPE / 2u;
  let i = select(j % half, j / 2u, INTERLEAVED == 1u);
  let a = first + select(i, 2u * i, INTERLEAVED == 1u);
  let b = a + select(half, 1u, INTERLEAVED == 1u);
  let turn = rope[position * half + i];
  return select(
    fma(x[b], turn.x, x[a] * turn.y),
    fma(x[a], turn.x, -(x[b] * turn.y)),
    first + j == a,
  );
}

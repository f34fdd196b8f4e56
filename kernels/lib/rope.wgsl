// A rope pair turned: (a, b) -> (a cos - b sin, b cos + a sin), turn = (cos, sin).

fn turned(pair: vec2<f32>, turn: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(
    fma(pair.x, turn.x, -(pair.y * turn.y)),
    fma(pair.y, turn.x, pair.x * turn.y),
  );
}

// Eight numbers of a key or a value: four rope pairs.

const VEC8S = $VEC8Su; // of a head, or of a latent and its rotated part

struct Vec8 {
  lo: vec4<f32>, // dims 4i .. 4i + 3
  hi: vec4<f32>, // dims 4i .. 4i + 3 of the second half
}

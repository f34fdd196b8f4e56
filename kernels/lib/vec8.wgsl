// Vec8 floats in order.

struct Vec8 {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

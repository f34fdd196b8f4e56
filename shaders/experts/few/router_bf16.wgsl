// A router's weights in bf16, packed as in weights/weights_bf16.wgsl.

@group(0) @binding(5) var<storage, read> router: array<vec4<u32>>; // [EXPERTS, COLS / 8]

fn load_router(i: u32) -> vec4<u32> {
  return router[i];
}

fn router_vec8(p: vec4<u32>) -> Vec8 {
  return Vec8(
    bitcast<vec4<f32>>(vec4<u32>(p.x << 16u, p.x & 0xffff0000u, p.y << 16u, p.y & 0xffff0000u)),
    bitcast<vec4<f32>>(vec4<u32>(p.z << 16u, p.z & 0xffff0000u, p.w << 16u, p.w & 0xffff0000u)),
  );
}

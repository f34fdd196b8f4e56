// Jobs of expert_matmul.wgsl, each a tile of its own.

const NOTHING = 0xffffffffu;

@group(0) @binding(3) var<storage, read> experts: array<u32>; // [jobs]

fn place_of(workgroup: vec2<u32>) -> vec2<u32> {
  return workgroup;
}

fn expert_of(tile: u32, thread: u32) -> u32 {
  return experts[tile];
}

fn job_of(tile: u32, r: u32) -> u32 {
  return tile;
}

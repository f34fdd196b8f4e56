// Jobs of expert_matmul.wgsl in the tiles of job_lists.wgsl.

const NOTHING = 0xffffffffu;

@group(0) @binding(3) var<storage, read> tiles: array<u32>; // [tiles, 1 + TILE]

fn place_of(workgroup: vec2<u32>) -> vec2<u32> {
  return workgroup;
}

fn expert_of(tile: u32, thread: u32) -> u32 {
  return tiles[tile * (1u + $TILEu)];
}

fn job_of(tile: u32, r: u32) -> u32 {
  return tiles[tile * (1u + $TILEu) + 1u + r];
}

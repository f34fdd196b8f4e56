// Reads weights so that they are in the L2 cache.
override SECTORS: u32; // of 32 bytes
override THREADS: u32; // of all workgroups
@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var sum = 0u;
  for (var i = id.x; i < SECTORS; i += 8u * THREADS) {
    let w0 = weights[min(i, SECTORS - 1u) * 8u];
    let w1 = weights[min(i + THREADS, SECTORS - 1u) * 8u];
    let w2 = weights[min(i + 2u * THREADS, SECTORS - 1u) * 8u];
    let w3 = weights[min(i + 3u * THREADS, SECTORS - 1u) * 8u];
    let w4 = weights[min(i + 4u * THREADS, SECTORS - 1u) * 8u];
    let w5 = weights[min(i + 5u * THREADS, SECTORS - 1u) * 8u];
    let w6 = weights[min(i + 6u * THREADS, SECTORS - 1u) * 8u];
    let w7 = weights[min(i + 7u * THREADS, SECTORS - 1u) * 8u];
    sum += w0 ^ w1 ^ w2 ^ w3 ^ w4 ^ w5 ^ w6 ^ w7;
  }
  if (sum == 0x9e3779b9u) {
    out[0] = sum;
  }
}

import assert from "node:assert/strict";
import noise from "../../kernels/lib/noise.wgsl" with { type: "text" };
import { dispatch, kernel } from "../../src/gpu/kernel.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { openDevice } from "../gpu/device.ts";
import { exponential } from "../reference/noise.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HASH = kernel(
  "test_hash",
  `${noise}
@group(0) @binding(0) var<storage, read> keys: array<u32>; // [.., 3]: seed, position, token
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&out)) {
    out[id.x] = hash32(keys[3u * id.x], keys[3u * id.x + 1u], keys[3u * id.x + 2u]);
  }
}`,
  { bindings: ["keys", "out"], constants: [] },
);

const EXPONENTIAL = kernel(
  "test_exponential",
  `${noise}
@group(0) @binding(0) var<storage, read> bits: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&out)) {
    out[id.x] = exponential(bits[id.x]);
  }
}`,
  { bindings: ["bits", "out"], constants: [] },
);

const EDGES = [0, 1, 2, 0x7fffffff, 0x80000000, 0x61c88646, 0x61c88647, 0xfffffffe, 0xffffffff];

Deno.test("noise: hash32 is that of the host, bit for bit", async () => {
  const edges = EDGES.flatMap((a) => EDGES.flatMap((b) => EDGES.map((c) => [a, b, c] as const)));
  const random = Array.from({ length: 10_000 }, (_, i) => {
    return [hash32(7, 0, i), i % 4096, i % 3 ? i : hash32(7, 1, i)] as const;
  });
  const keys = [...edges, ...random];
  const out = device.filled(keys.length);
  const buffers = { keys: device.words(keys.flat()), out };
  const workgroups = [Math.ceil(keys.length / 64)] as const;
  await device.run([dispatch(HASH, { buffers, constants: {}, workgroups })]);
  const expected = keys.map((key) => hash32(...key));
  assert.deepEqual([...await device.readWords(out)], expected);
});

async function onDevice(bits: readonly number[]): Promise<Float32Array> {
  const out = device.filled(bits.length);
  const workgroups = [Math.ceil(bits.length / 64)] as const;
  const buffers = { bits: device.words(bits), out };
  await device.run([dispatch(EXPONENTIAL, { buffers, constants: {}, workgroups })]);
  return await device.readFloats(out);
}

/** Asserts the relative error of `samples` values spread evenly over lo to hi. */
async function assertRelative(lo: number, hi: number, tolerance: number): Promise<void> {
  const samples = 20_000;
  const bits = Array.from(
    { length: samples },
    (_, i) => Math.floor(lo + (hi - lo) * i / (samples - 1)),
  );
  const actual = await onDevice(bits);
  bits.forEach((h, i) => {
    const error = Math.abs((actual[i] ?? NaN) / exponential(h) - 1);
    assert.ok(error <= tolerance, `exponential(${h}) is ${actual[i]}, error ${error}`);
  });
}

Deno.test("noise: exponential, the small values that decide the race, to 1e-6", async () => {
  await assertRelative(0, 99_999, 1e-6);
  await assertRelative(0, 2 ** 26 - 4, 1e-6); // the next ones round to 2^26
});

Deno.test("noise: exponential from the logarithm, to 2e-5", async () => {
  // Near 1 WGSL promises of log an absolute 2^-21 only.
  await assertRelative(2 ** 26, 2 ** 27, 2e-5);
  await assertRelative(2 ** 27, 2 ** 32 - 1, 2e-5);
  await assertRelative(2 ** 32 - 20_000, 2 ** 32 - 1, 2e-5);
});

Deno.test("noise: exponential is positive, finite and never falls", async () => {
  const sorted = EDGES.toSorted((a, b) => a - b);
  const values = [...await onDevice(sorted)];
  assert.ok(values.every((value) => value > 0 && value < 23), `${values}`);
  values.forEach((value, i) => assert.ok(value >= (values[i - 1] ?? 0), `${values}`));
});

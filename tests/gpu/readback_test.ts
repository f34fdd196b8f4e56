import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { GpuFailure } from "../../src/errors.ts";
import { lossOf } from "../../src/gpu/device.ts";
import { openReadback, readBuffer } from "../../src/gpu/readback.ts";
import { openDevice } from "./device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const { gpu } = device;

function copy(source: GPUBuffer, to: GPUBuffer): void {
  const encoder = gpu.device.createCommandEncoder();
  encoder.copyBufferToBuffer(source, 0, to, 0, to.size);
  gpu.device.queue.submit([encoder.finish()]);
}

Deno.test("readback: 100 reads in a row, each with the values of its own submission", async () => {
  using readback = await openReadback(gpu, 8);
  const { buffer } = device.words(Array(8).fill(0));
  const before = performance.now();
  for (let i = 1; i <= 100; i++) {
    const words = Uint32Array.from({ length: 8 }, (_, j) => i * 1000 + j);
    gpu.device.queue.writeBuffer(buffer, 0, words);
    copy(buffer, readback.buffer);
    assert.deepEqual(await readback.read(), words);
  }
  // Awaiting the map costs 10 ms each in Deno; not awaiting it is what the readback is for.
  assert.ok(performance.now() - before < 900, "100 reads took 9 ms each and more");
});

Deno.test("readback: what was read stays when the next one comes", async () => {
  using readback = await openReadback(gpu, 2);
  const [a, b] = [device.words([1, 2]), device.words([3, 4])];
  copy(a.buffer, readback.buffer);
  const first = await readback.read();
  copy(b.buffer, readback.buffer);
  assert.deepEqual([...await readback.read()], [3, 4]);
  assert.deepEqual([...first], [1, 2]);
});

Deno.test("readback: two at once do not meet", async () => {
  using one = await openReadback(gpu, 1);
  using two = await openReadback(gpu, 1);
  copy(device.words([1]).buffer, one.buffer);
  copy(device.words([2]).buffer, two.buffer);
  const [second, first] = await Promise.all([two.read(), one.read()]);
  assert.deepEqual([...first, ...second], [1, 2]);
});

Deno.test("readback: an error of the device surfaces in a read two turns later", async () => {
  using readback = await openReadback(gpu, 1);
  gpu.device.createBuffer({ size: 16, usage: 0 });
  // Errors come as events; without a turn of the event loop no read ever sees one.
  await setImmediate();
  await setImmediate();
  await assert.rejects(readback.read(), /The GPU reported: /);
});

Deno.test("readBuffer: a buffer whole, or a part of it", async () => {
  const values = Float32Array.from({ length: 1000 }, (_, i) => i / 8);
  const { buffer } = device.floats(values);
  assert.deepEqual(new Float32Array(await readBuffer(gpu, { buffer })), values);
  const part = await readBuffer(gpu, { buffer, offset: 256, size: 40 });
  assert.deepEqual(new Float32Array(part), values.subarray(64, 74));
});

Deno.test("readback: a device that is lost is told, one that is not is not", async () => {
  const info = { message: "a reset", reason: "destroyed" } as GPUDeviceLostInfo;
  const error = await lossOf({ lost: Promise.resolve(info) });
  assert.ok(error instanceof GpuFailure);
  assert.equal(error.message, "The GPU device was lost: a reset");
  assert.equal(await lossOf(gpu.device), undefined);
});

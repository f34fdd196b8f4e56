import assert from "node:assert/strict";
import { leavingBuffers, MOVED_BYTES } from "../../src/engine/device/elastic/leaving_buffers.ts";
import { pagedBuffers } from "../../src/engine/device/elastic/paged_buffers.ts";
import { storage } from "../../src/gpu/arena.ts";
import { OutOfMemory } from "../../src/gpu/device.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { openDevice } from "../gpu/device.ts";

const { gpu, ...device } = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

/** A buffer of these words. */
function filled(label: string, words: Uint32Array<ArrayBuffer>): GPUBuffer {
  const buffer = storage(gpu.device, label, words.byteLength);
  gpu.device.queue.writeBuffer(buffer, 0, words);
  return buffer;
}

async function words(buffer: GPUBuffer): Promise<Uint32Array> {
  return new Uint32Array(await readBuffer(gpu, { buffer }));
}

/** Pages of `size` words, page p of them p * 100, p * 100 + 1, ... */
function pagesOf(pages: readonly number[], size: number): Uint32Array<ArrayBuffer> {
  return Uint32Array.from(
    pages.flatMap((page) => Array.from({ length: size }, (_, i) => page * 100 + i)),
  );
}

Deno.test("paged buffers grow and shrink one at a time and keep their pages", async () => {
  const bound = [4, 2].map((size, i) => filled(`pages.${i}`, pagesOf([0, 1, 2], size)));
  const now = new Map(bound.map((buffer) => [buffer, buffer]));
  const replace = (from: GPUBuffer, to: GPUBuffer) => void now.set(from, to);
  const paged = pagedBuffers(gpu, bound, { pages: 3, replace });
  assert.deepEqual([paged.pageBytes, paged.pages], [24, 3]);
  const contents = () => Promise.all(bound.map((buffer) => words(now.get(buffer) as GPUBuffer)));
  assert.equal(await paged.resize(3), true);
  assert.deepEqual([await paged.resize(5), paged.pages], [false, 3]);
  assert.deepEqual([await paged.resize(5), paged.pages], [true, 5]);
  const grown = [4, 2].map((size) => [...pagesOf([0, 1, 2], size), ...Array(2 * size).fill(0)]);
  assert.deepEqual((await contents()).map((all) => [...all]), grown);
  paged.move([{ from: 1, to: 4 }, { from: 2, to: 3 }, { from: 0, to: 2 }]);
  assert.deepEqual(await contents(), [4, 2].map((size) => pagesOf([0, 1, 0, 2, 1], size)));
  while (!await paged.resize(4));
  assert.deepEqual(await contents(), [4, 2].map((size) => pagesOf([0, 1, 0, 2], size)));
});

Deno.test("a paged buffer that there is no memory for stays as it was", async () => {
  const bound = filled("pages", pagesOf([0, 1], 4));
  const replace = () => assert.fail("nothing is replaced");
  const paged = pagedBuffers(gpu, [bound], { pages: 2, replace });
  const tooMany = gpu.limits.maxBufferSize / 16 + 16;
  await assert.rejects(paged.resize(tooMany), OutOfMemory);
  assert.deepEqual([paged.pages, await words(bound)], [2, pagesOf([0, 1], 4)]);
  gpu.check();
});

Deno.test("buffers leave and come back as they were, a chunk at a time", async () => {
  const long = Uint32Array.from({ length: MOVED_BYTES / 4 + 3 }, (_, i) => i * 2654435761);
  const weights = [long, Uint32Array.of(7, 8, 9)].map((each, i) => filled(`weights.${i}`, each));
  const kv = filled("kv", Uint32Array.of(1, 2, 3));
  const now = new Map<GPUBuffer, GPUBuffer | undefined>();
  const leaving = leavingBuffers(
    gpu,
    { kept: weights, dropped: [kv] },
    (from, to) => void now.set(from, to),
  );
  assert.equal(leaving.bytes, long.byteLength + 24);
  for (let turn = 0; turn < 2; turn++) {
    const out: boolean[] = [];
    while (out.at(-1) !== true) out.push(await leaving.copyOut());
    assert.deepEqual(out, turn === 0 ? [false, false, true] : [true], "copied once");
    leaving.leave();
    assert.deepEqual([...now.values()], [undefined, undefined, undefined]);
    await leaving.allocate();
    assert.deepEqual([leaving.copyIn(), leaving.copyIn()], [false, false]);
    assert.deepEqual([...now.values()], [undefined, undefined, undefined], "not yet whole");
    assert.equal(leaving.copyIn(), true);
    const back = await Promise.all(
      [...weights, kv].map((each) => words(now.get(each) as GPUBuffer)),
    );
    assert.deepEqual(back, [long, Uint32Array.of(7, 8, 9), new Uint32Array(3)]);
  }
});

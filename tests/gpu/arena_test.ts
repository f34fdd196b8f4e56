import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  ALIGNMENT,
  type BufferSizes,
  bufferSizes,
  openArena,
  planArena,
} from "../../src/gpu/arena.ts";
import { openDevice } from "./device.ts";

const MIB = 2 ** 20;
const aligned = (bytes: number) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
const total = (sizes: readonly number[]) => sizes.reduce((sum, bytes) => sum + bytes, 0);

const ITEMS = fc.array(fc.integer({ min: 1, max: 3000 }).map((n) => 4 * n), { maxLength: 40 });
const SIZES = fc.record({
  beyond: fc.integer({ min: 0, max: 60_000 }),
  more: fc.integer({ min: 0, max: 20_000 }),
  least: fc.integer({ min: 0, max: 10_000 }),
});

/** Any items, a limit that holds each of them, and `most` that holds two small buffers. */
function property(check: (items: number[], sizes: BufferSizes) => void) {
  fc.assert(fc.property(ITEMS, SIZES, (items, { beyond, more, least }) => {
    const limit = Math.max(...items, 0) + beyond;
    check(items, { limit, most: 2 * aligned(least) + more, least });
  }));
}

Deno.test("buffers: items lie in their order, aligned, apart, and fill the buffers to their ends", () => {
  property((items, sizes) => {
    const { buffers, places } = planArena(items, sizes);
    assert.equal(places.length, items.length);
    let [at, free] = [-1, Infinity];
    for (const [i, place] of places.entries()) {
      if (place.buffer === at) assert.equal(place.offset, aligned(free));
      else {
        assert.deepEqual(place, { buffer: at + 1, offset: 0 });
        if (at >= 0) assert.equal(buffers[at], free);
      }
      at = place.buffer;
      free = place.offset + items[i]!;
    }
    assert.equal(buffers.length, at + 1);
    if (at >= 0) assert.equal(buffers[at], free);
    assert.ok(buffers.every((bytes) => bytes <= sizes.limit));
    assert.ok(total(buffers) - total(items) <= (ALIGNMENT - 4) * items.length);
  });
});

Deno.test("buffers: there is another only past `most` or the limit, and none small but for the limit", () => {
  property((items, sizes) => {
    const { buffers, places } = planArena(items, sizes);
    const { limit, most, least } = sizes;
    for (const [i, bytes] of buffers.slice(0, -1).entries()) {
      const next = items[places.findIndex(({ buffer }) => buffer === i + 1)]!;
      assert.ok(aligned(bytes) + next > Math.min(most, limit));
      const small = Math.min(bytes, buffers[i + 1]!) <= least;
      if (small) assert.ok(aligned(bytes) + buffers[i + 1]! > limit);
    }
    const [longest, joins] = [Math.max(...items, most), aligned(least)];
    assert.ok(buffers.every((bytes) => bytes <= joins + aligned(longest) + joins));
  });
});

Deno.test("buffers: a small model has one of its own size, no model none", () => {
  const sizes = bufferSizes({ maxBufferSize: 2 ** 31 - 1 });
  assert.deepEqual(planArena([100, 40 * MIB, 256], sizes).buffers, [256 + 40 * MIB + 256]);
  assert.deepEqual(planArena([], sizes), { buffers: [], places: [] });
});

Deno.test("buffers: each of Llama-3.1-8B is more than a block of wgpu's and within 1 GiB", () => {
  const [hidden, norm] = [4096 * 2, 4096 * 4];
  const layer = [6144, 4096, 28672, 14336].map((rows) => rows * hidden);
  const table = 128256 * hidden;
  const items = [table, ...Array(32).fill([...layer, norm, norm]).flat(), norm, table];
  for (const maxBufferSize of [4_292_870_144, 2 ** 31 - 1, 2 ** 30]) {
    const { buffers } = planArena(items, bufferSizes({ maxBufferSize }));
    assert.ok(Math.min(...buffers) > 256 * MIB, `${Math.min(...buffers) / MIB} MiB`);
    assert.ok(buffers.length > 15 && buffers.length < 24, `${buffers.length} buffers`);
    assert.equal(total(buffers), total(items));
  }
  // A binding of 1 GiB - 256 MiB would be cut; where a buffer is smaller, buffers are.
  const { buffers } = planArena(items.slice(1, -1), bufferSizes({ maxBufferSize: 256 * MIB }));
  assert.ok(buffers.every((bytes) => bytes <= 256 * MIB));
});

Deno.test("buffers: what is allocated is what was measured", async () => {
  using device = await openDevice();
  const arena = openArena(device.gpu, "test", [16, 512]);
  const { buffer, ...place } = arena.allocate("a", 16);
  assert.deepEqual(place, { offset: 0, size: 16, label: "a" });
  assert.deepEqual([buffer.label, buffer.size], ["test.0", 256 + 512]);
  assert.throws(() => arena.allocate("b", 256), /b wants 256 bytes, 512 were measured/);
  assert.throws(() => arena.allocate("c", 16), /c wants 16 bytes, undefined were measured/);
});

import assert from "node:assert/strict";
import fc from "fast-check";
import { ALIGNMENT, openSlabs, planSlabs, type SlabSizes, slabSizes } from "../../src/gpu/slabs.ts";
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

/** Any items, a limit that holds each of them, and `most` that holds two small slabs. */
function property(check: (items: number[], sizes: SlabSizes) => void) {
  fc.assert(fc.property(ITEMS, SIZES, (items, { beyond, more, least }) => {
    const limit = Math.max(...items, 0) + beyond;
    check(items, { limit, most: 2 * aligned(least) + more, least });
  }));
}

Deno.test("slabs: items lie in their order, aligned, apart, and fill the slabs to their ends", () => {
  property((items, sizes) => {
    const { slabs, places } = planSlabs(items, sizes);
    assert.equal(places.length, items.length);
    let [slab, free] = [-1, Infinity];
    for (const [i, place] of places.entries()) {
      if (place.slab === slab) assert.equal(place.offset, aligned(free));
      else {
        assert.deepEqual(place, { slab: slab + 1, offset: 0 });
        if (slab >= 0) assert.equal(slabs[slab], free);
      }
      slab = place.slab;
      free = place.offset + items[i]!;
    }
    assert.equal(slabs.length, slab + 1);
    if (slab >= 0) assert.equal(slabs[slab], free);
    assert.ok(slabs.every((bytes) => bytes <= sizes.limit));
    assert.ok(total(slabs) - total(items) <= (ALIGNMENT - 4) * items.length);
  });
});

Deno.test("slabs: there is another only past `most` or the limit, and none small but for the limit", () => {
  property((items, sizes) => {
    const { slabs, places } = planSlabs(items, sizes);
    const { limit, most, least } = sizes;
    for (const [i, bytes] of slabs.slice(0, -1).entries()) {
      const next = items[places.findIndex(({ slab }) => slab === i + 1)]!;
      assert.ok(aligned(bytes) + next > Math.min(most, limit));
      const small = Math.min(bytes, slabs[i + 1]!) <= least;
      if (small) assert.ok(aligned(bytes) + slabs[i + 1]! > limit);
    }
    const [longest, joins] = [Math.max(...items, most), aligned(least)];
    assert.ok(slabs.every((bytes) => bytes <= joins + aligned(longest) + joins));
  });
});

Deno.test("slabs: a small model has one of its own size, no model none", () => {
  const sizes = slabSizes({ maxBufferSize: 2 ** 31 - 1 });
  assert.deepEqual(planSlabs([100, 40 * MIB, 256], sizes).slabs, [256 + 40 * MIB + 256]);
  assert.deepEqual(planSlabs([], sizes), { slabs: [], places: [] });
});

Deno.test("slabs: each of Llama-3.1-8B is more than a block of wgpu's and within 1 GiB", () => {
  const [hidden, norm] = [4096 * 2, 4096 * 4];
  const layer = [6144, 4096, 28672, 14336].map((rows) => rows * hidden);
  const table = 128256 * hidden;
  const items = [table, ...Array(32).fill([...layer, norm, norm]).flat(), norm, table];
  for (const maxBufferSize of [4_292_870_144, 2 ** 31 - 1, 2 ** 30]) {
    const { slabs } = planSlabs(items, slabSizes({ maxBufferSize }));
    assert.ok(Math.min(...slabs) > 256 * MIB, `${Math.min(...slabs) / MIB} MiB`);
    assert.ok(slabs.length > 15 && slabs.length < 24, `${slabs.length} slabs`);
    assert.equal(total(slabs), total(items));
  }
  // A binding of 1 GiB - 256 MiB would be cut; where a buffer is smaller, slabs are.
  const { slabs } = planSlabs(items.slice(1, -1), slabSizes({ maxBufferSize: 256 * MIB }));
  assert.ok(slabs.every((bytes) => bytes <= 256 * MIB));
});

Deno.test("slabs: what is taken is what was measured", async () => {
  using device = await openDevice();
  const slabs = openSlabs(device.gpu, "slab", [16, 512]);
  const { buffer, ...place } = slabs.take("a", 16);
  assert.deepEqual(place, { offset: 0, size: 16, label: "a" });
  assert.deepEqual([buffer.label, buffer.size], ["slab.0", 256 + 512]);
  assert.throws(() => slabs.take("b", 256), /b takes 256 bytes, 512 were measured/);
  assert.throws(() => slabs.take("c", 16), /c takes 16 bytes, undefined were measured/);
});

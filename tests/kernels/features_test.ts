// Features of tokens that were decoded without a draft: stored by cells and loaded again.
import assert from "node:assert/strict";
import { loadFeatures, storeFeatures } from "../../kernels/round/features.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { blockTable, packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const [SLOTS, TABLE_PAGES] = [3, 4];
const LEFT = 4242;

for (const cols of [1, 70, 128]) {
  Deno.test(`features: each row's are stored in its cell, and loaded from there, ${cols} columns`, async () => {
    const pages = blockTable(SLOTS, TABLE_PAGES);
    const rows = [
      { slot: 2, cell: 0 },
      { slot: 2, cell: PAGE - 1 },
      { slot: 2, cell: PAGE },
      { slot: 0, cell: TABLE_PAGES * PAGE - 1 },
      { slot: 0, cell: 5, live: 0 },
      { slot: 1, cell: 2 * PAGE + 3, position: 7 }, // of a tree: the cell decides
    ];
    const features = numbers(rows.length * cols, 3);
    const store = device.filled(SLOTS * TABLE_PAGES * PAGE * cols, LEFT);
    const buffers = { rows: device.words(packRows(rows)), pages: device.words(pages), store };
    const shape = { count: rows.length, cols, tablePages: TABLE_PAGES };
    await device.run([storeFeatures({ ...buffers, features: device.floats(features) }, shape)]);
    const wanted = new Float32Array(SLOTS * TABLE_PAGES * PAGE * cols).fill(LEFT);
    for (const [r, { slot, cell, live = 1 }] of rows.entries()) {
      const page = pages[slot * TABLE_PAGES + Math.floor(cell / PAGE)]!;
      const own = features.slice(r * cols, (r + 1) * cols);
      if (live) wanted.set(own, (page * PAGE + cell % PAGE) * cols);
    }
    assert.deepEqual(await device.readFloats(store), wanted);
    const loaded = device.filled(rows.length * cols, LEFT);
    await device.run([loadFeatures({ ...buffers, features: loaded }, shape)]);
    const padding = rows.findIndex(({ live }) => live === 0);
    assert.deepEqual(
      await device.readFloats(loaded),
      features.map((x, i) => Math.floor(i / cols) === padding ? LEFT : x),
    );
  });
}

import assert from "node:assert/strict";
import { readWords } from "../../kernels/measure/read_words.ts";
import { openDevice } from "../gpu/device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

Deno.test("read_words reads every word once, whatever the groups", async () => {
  for (const [vectors, groups] of [[1, 3], [5000, 1], [4096, 2], [9001, 4]] as const) {
    const values = Uint32Array.from({ length: 4 * vectors }, (_, i) => (i * 2654435761) >>> 0);
    const out = device.filled(groups);
    await device.run([readWords({ words: device.words(values), out }, { groups })]);
    const sum = (words: Uint32Array) => words.reduce((all, word) => (all + word) >>> 0, 0);
    assert.equal(sum(await device.readWords(out)), sum(values), `${vectors} by ${groups}`);
  }
});

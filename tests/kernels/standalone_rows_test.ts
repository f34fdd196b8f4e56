import assert from "node:assert/strict";
import {
  putDrafts,
  standaloneLastRows,
  standaloneRows,
} from "../../kernels/round/standalone_rows.ts";
import { draftWords, NO_SLOT, ROW_WORDS } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { packRows, packSlots, type RowFields } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = 4242;
const SLOTS = packSlots([{ limit: 32 }, { limit: 16 }, { limit: 0 }]);
const untouched = (count: number) => device.words(Array(count).fill(LEFT_ALONE));
const PADDING: Partial<RowFields> = { live: 0 };
/** Of a tree, of a chain, without a cell left for it, of a sequence that stopped, padding. */
const ROWS: readonly Partial<RowFields>[] = [
  { token: 9, position: 12, slot: 0, cell: 14, base: 11, path: [0, 3] },
  { token: 8, position: 14, slot: 1, cell: 14, base: 15 },
  { token: 7, position: 15, slot: 1, cell: 15, base: 16 },
  { token: 6, position: 3, slot: 2, cell: 3, base: 4 },
  { token: 5, position: 4, slot: 0, cell: 4, base: 5, live: 0 },
];
const MOVED: readonly Partial<RowFields>[] = [
  { token: 9, position: 13, slot: 0, cell: 15, base: 12, path: [0, 3] },
  { token: 8, position: 15, slot: 1, cell: 15, base: 16 },
  PADDING,
  PADDING,
  { token: 5, position: 5, slot: 0, cell: 5, base: 6, live: 0 },
];

Deno.test("standalone_rows: each row one cell further on, where the slot owns that cell", async () => {
  const out = untouched(6 * ROW_WORDS);
  const buffers = { rows: device.words(packRows(ROWS)), slots: device.words(SLOTS), out };
  await device.run([standaloneRows(buffers, 5)]);
  assert.deepEqual(
    [...await device.readWords(out)],
    [...packRows(MOVED), ...Array(ROW_WORDS).fill(LEFT_ALONE)],
  );
});

Deno.test("standalone_rows: of each sequence its last, none where there is no sequence", async () => {
  const out = untouched(3 * ROW_WORDS);
  const rows = device.words(packRows(ROWS));
  const [batchSlots, last] = [device.words([1, NO_SLOT, 0]), device.words([1, 0, 0])];
  await device.run([
    standaloneLastRows({ rows, slots: device.words(SLOTS), out, batchSlots, last }, 3),
  ]);
  const expected = packRows([MOVED[1]!, PADDING, MOVED[0]!]);
  assert.deepEqual([...await device.readWords(out)], [...expected]);
});

Deno.test("put_drafts: by slot, and never what is no token", async () => {
  const maxRows = 4;
  const words = draftWords(maxRows);
  const drafts = untouched(3 * words);
  const batchSlots = device.words([2, NO_SLOT, 0]);
  const chosen = device.words([77, 78, 0xffffffff]);
  await device.run([putDrafts({ batchSlots, chosen, drafts }, { batch: 3, step: 1, maxRows })]);
  const expected = Array<number>(3 * words).fill(LEFT_ALONE);
  expected[2 * words + 2] = 77;
  expected[2] = 0;
  assert.deepEqual([...await device.readWords(drafts)], expected);
});

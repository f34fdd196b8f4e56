import assert from "node:assert/strict";
import { copyRows, gatherRows, scatterRows } from "../../kernels/round/move_rows.ts";
import { draftEnds } from "../../kernels/round/round.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { packRows } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LEFT_ALONE = -7;
const NOWHERE = 0xffffffff;
const COLS = 70; // more than one workgroup, the last not full
const X = numbers(5 * COLS, 1);
const line = (r: number) => [...X.subarray(r * COLS, (r + 1) * COLS)];
const alone = (count: number) => Array<number>(count).fill(LEFT_ALONE);

Deno.test("copy_rows: into a window of wider rows", async () => {
  const out = device.filled(3 * (COLS + 5), LEFT_ALONE);
  const shape = { rows: 3, cols: COLS, outCols: COLS + 5, outFirst: 2, label: "test" };
  await device.run([copyRows({ x: device.floats(X), out }, shape)]);
  const expected = [0, 1, 2].flatMap((r) => [...alone(2), ...line(r), ...alone(3)]);
  assert.deepEqual([...await device.readFloats(out)], expected);
});

Deno.test("copy_rows: rows of the same width when nothing else is said", async () => {
  const out = device.filled(2 * COLS, LEFT_ALONE);
  await device.run([
    copyRows({ x: device.floats(X), out }, { rows: 2, cols: COLS, label: "test" }),
  ]);
  assert.deepEqual([...await device.readFloats(out)], [0, 1].flatMap(line));
});

Deno.test("gather_rows: any order, rows twice, and lanes without a slot left alone", async () => {
  const index = device.words([4, 0, NOWHERE, 4]);
  const out = device.filled(4 * (COLS + 3), LEFT_ALONE);
  const shape = { rows: 4, cols: COLS, outCols: COLS + 3, outFirst: 3, label: "test" };
  await device.run([gatherRows({ x: device.floats(X), index, out }, shape)]);
  const expected = [line(4), line(0), alone(COLS), line(4)].flatMap((row) => [...alone(3), ...row]);
  assert.deepEqual([...await device.readFloats(out)], expected);
});

Deno.test("scatter_rows: to the rows named, and nowhere for lanes without a slot", async () => {
  const index = device.words([3, NOWHERE, 0]);
  const out = device.filled(4 * COLS, LEFT_ALONE);
  const shape = { rows: 3, cols: COLS, label: "test" };
  await device.run([scatterRows({ x: device.floats(X), index, out }, shape)]);
  const expected = [line(2), alone(COLS), alone(COLS), line(0)].flat();
  assert.deepEqual([...await device.readFloats(out)], expected);
});

Deno.test("draft_ends: rows, queries and streams of the last rows, of a row twice too", async () => {
  const wide = COLS + 9; // queries are as wide as the stream, narrower or wider
  for (const [qCols, cols] of [[COLS, COLS], [wide, COLS], [COLS, wide]] as const) {
    const [q, x] = [numbers(5 * qCols, 2), numbers(5 * cols, 3)];
    const fields = [3, 1, 4, 1, 5].map((slot, i) => ({
      token: 70 + i,
      position: i,
      slot,
      cell: i,
    }));
    const ends = {
      rows: device.words(packRows([{ token: 1 }, { token: 2 }, { token: 3 }])),
      q: device.filled(3 * qCols, LEFT_ALONE),
      x: device.filled(3 * cols, LEFT_ALONE),
    };
    const all = {
      rows: device.words(packRows(fields)),
      q: device.floats(q),
      x: device.floats(x),
    };
    const last = device.words([4, 0, 0]);
    const reduced = qCols === cols ? device.filled(4) : undefined;
    await device.run([draftEnds({ last, all, ends, reduced }, { batch: 3, qCols, cols })]);
    const largest = [2 ** 74, 2 ** 74, 2 ** 74, 0];
    if (reduced) assert.deepEqual([...await device.readFloats(reduced)], largest);
    const of = (values: Float32Array, width: number) => (r: number) => [
      ...values.subarray(r * width, (r + 1) * width),
    ];
    const [qOf, xOf] = [of(q, qCols), of(x, cols)];
    const expected = packRows([4, 0, 0].map((r) => fields[r] ?? {}));
    assert.deepEqual([...await device.readWords(ends.rows)], [...expected]);
    assert.deepEqual([...await device.readFloats(ends.q)], [qOf(4), qOf(0), qOf(0)].flat());
    assert.deepEqual([...await device.readFloats(ends.x)], [xOf(4), xOf(0), xOf(0)].flat());
  }
});

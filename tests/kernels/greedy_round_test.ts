// Acceptance that finds the choices itself, and verify rows that the embedding's norm writes.
import assert from "node:assert/strict";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { rmsNorm, verifiesRows } from "../../kernels/norm/rms_norm.ts";
import { accept, verifyRows } from "../../kernels/round/round.ts";
import { NO_SLOT, resultWords, ROW_WORDS } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { uploadMatrix } from "./matrices.ts";
import { numbers } from "../gpu/numbers.ts";
import { choose } from "../reference/choose.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { packRows, packSlots } from "./rows.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const MAX_ROWS = 9;
const SLOTS = [
  { length: 5, pending: 3, limit: 400 },
  { length: 40, pending: 4, limit: 400, stops: [9] },
  { length: 7, pending: 5, limit: 9 },
];
const PLACES = [1, NO_SLOT, 0];

/** Bits in the order of the floats, as lib/argmax.wgsl has them. */
function keyOf(logit: number): number {
  if (Number.isNaN(logit) || logit === Infinity) return 0xffffffff;
  const [bits = 0] = new Uint32Array(Float32Array.of(logit === 0 ? 0 : logit).buffer);
  return (bits >>> 31 ? ~bits : bits | 0x80000000) >>> 0;
}

/** What the target takes of a row; NOT_A_TOKEN of a broken one. */
function chosenOf(logits: readonly number[]): number {
  try {
    return choose(logits, GREEDY, 0);
  } catch {
    return NOT_A_TOKEN;
  }
}

/** The largest logit of each of `count` parts of the columns, the lowest token of equal ones. */
function partialsOf(logits: readonly number[], count: number): number[] {
  const size = Math.ceil(logits.length / count);
  return Array.from({ length: count }, (_, part) => {
    const keys = logits.slice(part * size, (part + 1) * size).map(keyOf);
    if (keys.length === 0) return [0, NOT_A_TOKEN];
    const most = keys.reduce((a, b) => Math.max(a, b));
    return [most, part * size + keys.indexOf(most)];
  }).flat();
}

const CASES = [
  { perSlot: 1, parts: 1, lanes: 16 },
  { perSlot: 1, parts: 75, lanes: 256 },
  { perSlot: 1, parts: 4711, lanes: 512 },
  { perSlot: 2, parts: 3, lanes: 16 },
  { perSlot: 3, parts: 130, lanes: 256 },
  { perSlot: 5, parts: 700, lanes: 512 },
  { perSlot: 8, parts: 1, lanes: 16 },
  { perSlot: 8, parts: 333, lanes: 64 },
];

for (const { perSlot, parts, lanes } of CASES) {
  const title = `${perSlot} rows of ${parts} parts, at most ${lanes} lanes`;
  Deno.test(`accept, greedy: as with choices that are stored: ${title}`, async () => {
    const count = PLACES.length * perSlot;
    const vocab = 3 * parts + 1;
    const tokens = numbers(count * vocab, perSlot + parts);
    // Few values, so that many are equal.
    const logits = Array.from(
      { length: count },
      (_, row) =>
        Array.from({ length: vocab }, (_, i) => {
          const u = tokens[row * vocab + i] ?? 0;
          return Math.fround(Math.round(u * 40) / 8 - (row % 2 ? 100 : 2));
        }),
    );
    if (perSlot > 2) logits[count - 1]?.fill(-Infinity);
    if (perSlot > 4) (logits[count - 2] as number[])[parts] = NaN;
    const chosen = logits.map(chosenOf);
    const drafts = SLOTS.flatMap((_, slot) => {
      const first = PLACES.indexOf(slot) * perSlot;
      const own = Array.from({ length: MAX_ROWS - 1 }, (_, i) => chosen[first + i] ?? 1);
      if (slot === 1) own[2] = 77_777;
      return [MAX_ROWS, ...own, ...Array(MAX_ROWS - 1).fill(0)];
    });
    const depth = perSlot - 1;
    const shape = { batch: PLACES.length, rows: perSlot, depth, maxRows: MAX_ROWS };
    const buffersOf = async () => {
      const buffers = {
        batchSlots: device.words(PLACES),
        slots: device.words(packSlots(SLOTS)),
        drafts: device.words(drafts),
        rows: device.words(Array(count * ROW_WORDS).fill(1)),
        chosen: device.words(chosen),
        extend: device.words(Array(count * ROW_WORDS).fill(1)),
        last: device.words(Array(PLACES.length).fill(1)),
        results: device.words(Array(PLACES.length * resultWords(perSlot)).fill(1)),
      };
      await device.run([verifyRows(buffers, shape)]);
      return buffers;
    };
    const [own, stored] = [await buffersOf(), await buffersOf()];
    const partials = device.words(logits.flatMap((row) => partialsOf(row, parts)));
    await device.run([accept(own, { ...shape, greedy: { partials, count: parts, lanes } })]);
    await device.run([accept(stored, shape)]);
    for (const name of ["slots", "extend", "last", "results"] as const) {
      const found = await device.readWords(own[name]);
      assert.deepEqual(found, await device.readWords(stored[name]), name);
    }
    const results = await device.readWords(own.results);
    assert.equal(results[1], chosen[0]);
    assert.ok((results[0] ?? 0) >= 1);
  });
}

for (const perSlot of [1, 3]) {
  Deno.test(`rms_norm, verified: rows and tokens as verify_rows has them, ${perSlot} a sequence`, async () => {
    const [cols, vocab] = [72, 11];
    const count = 4 * perSlot;
    const places = [1, NO_SLOT, 2, 0];
    const table = numbers(vocab * cols, 5);
    const matrix = uploadMatrix(device, table, { format: "bf16", cols, shards: [vocab] });
    assert.ok(verifiesRows(matrix));
    const sources = {
      batchSlots: device.words(places),
      slots: device.words(packSlots(SLOTS)),
      drafts: device.words(SLOTS.flatMap((_, slot) => [
        ...[slot === 0 ? 1 : MAX_ROWS, 6, 7, ...Array(2 * MAX_ROWS - 4).fill(2)],
      ])),
    };
    const shape = { batch: places.length, rows: perSlot, maxRows: MAX_ROWS };
    const rows = () => device.words(Array(count * ROW_WORDS).fill(1));
    const [own, stored] = [rows(), rows()];
    const floats = () => device.filled(count * cols, 3);
    const [out, expected, kept, expectedKept] = [floats(), floats(), floats(), floats()];
    const weight = device.floats(numbers(cols, 6));
    const norm = { rows: count, cols, eps: 1e-5, lanes: 16, label: "norm" };
    const verified = { ...sources, perSlot, maxRows: MAX_ROWS };
    await device.run(rmsNorm({
      from: { matrix, rows: own, verified },
      weight,
      out,
      keep: { what: "input", out: kept },
    }, norm));
    await device.run([
      verifyRows({ ...sources, rows: stored }, shape),
      ...rmsNorm({
        from: { matrix, rows: stored },
        weight,
        out: expected,
        keep: { what: "input", out: expectedKept },
      }, norm),
    ]);
    assert.deepEqual(await device.readWords(own), await device.readWords(stored));
    assert.deepEqual(await device.readWords(out), await device.readWords(expected));
    assert.deepEqual(await device.readWords(kept), await device.readWords(expectedKept));
    const words = await device.readWords(own);
    assert.equal(words[0], SLOTS[1]?.pending);
    assert.deepEqual(
      words.subarray(perSlot * ROW_WORDS, (perSlot + 1) * ROW_WORDS),
      packRows([{ live: 0 }]),
    );
  });
}

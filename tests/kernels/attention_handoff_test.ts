// q, k and v of one row and its attention in one dispatch: to the bit what two dispatches give, whether heads are
// waited for or made again. Those two are held against float64 by attention_own_test and matmul_resident_test.

import assert from "node:assert/strict";
import { attention, partialWords } from "../../kernels/attention/attention.ts";
import {
  handsOffHeads,
  headsWithHandoff,
  headWords,
} from "../../kernels/attention/handoff_heads.ts";
import type { OwnHeads } from "../../kernels/attention/attention_row.ts";
import { normedRows, PLAIN_ROWS, type Prologue } from "../../kernels/matmul/prologue/prologue.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { normLanes } from "../../kernels/norm/rms_norm.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { Dispatch } from "../../src/gpu/kernel.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { blockTable, packRows } from "./rows.ts";
import { drawn } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HIDDEN = 256;
const [SLOTS, TABLE_PAGES] = [2, 12];
const CELLS = TABLE_PAGES * PAGE;
const EPS = 1e-6;
const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 20,
});
const NO_TURNS = 0;

interface Shape {
  readonly group: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly normed: boolean;
  /** Whether x is normed already; default false. */
  readonly entered?: boolean;
  readonly window?: number;
  /** Of the row's cell; the row is of the last slot. */
  readonly cell: number;
}

const SHAPES: readonly Shape[] = [
  { group: 2, kvHeads: 2, headDim: 128, normed: true, cell: 100 },
  { group: 2, kvHeads: 2, headDim: 128, normed: true, cell: 63 }, // all but one split without cells
  { group: 4, kvHeads: 1, headDim: 64, normed: false, cell: 191 },
  { group: 3, kvHeads: 2, headDim: 80, normed: true, window: 70, cell: 130 },
  { group: 2, kvHeads: 4, headDim: 32, normed: false, entered: true, cell: 20 },
];

interface Left {
  readonly out: Uint32Array;
  readonly keys: Uint32Array;
  readonly values: Uint32Array;
  readonly stream: Uint32Array;
}

/** @param plan of the scores, given the buffers. */
async function run(
  { group, kvHeads, headDim, normed, entered = false, window, cell }: Shape,
  plan: (
    of: {
      readonly matrix: Matrix;
      readonly x: ReturnType<typeof device.words>;
      readonly prologue: Prologue;
      readonly own: OwnHeads;
    },
    scored: (own: OwnHeads) => Dispatch,
  ) => Dispatch[],
): Promise<Left> {
  const heads = { heads: group * kvHeads, kvHeads, headDim, tablePages: TABLE_PAGES };
  const all = { ...heads, kvDtype: "f32" } as const;
  const width = (group + 2) * kvHeads * headDim;
  const slot = SLOTS - 1;
  const rows = device.words(packRows([{ slot, position: cell, cell, base: cell + 1, live: 1 }]));
  const words = partialWords(all, 1, HARDWARE);
  const kv = SLOTS * CELLS * kvHeads * headDim;
  const [keys, values] = [device.floats(numbers(kv, 3)), device.floats(numbers(kv, 4))];
  const table = { theta: 1e4, width: headDim, scaling: { kind: "default" } } as const;
  const rope = device.floats(
    new Float32Array(ropeTable(table, headDim, { positions: CELLS, context: CELLS })),
  );
  const matrix = uploadMatrix(device, weights("bf16", width, HIDDEN), {
    format: "bf16",
    cols: HIDDEN,
    lanes: 16,
    shards: [width],
  });
  const stream = device.filled(HIDDEN, -7);
  const lanes = normLanes({ cols: HIDDEN, lanes: HARDWARE.rowLanes });
  const sums = device.floats(numbers(2 * HIDDEN, 8));
  const prologue = entered ? PLAIN_ROWS : normedRows({
    weight: device.floats(numbers(HIDDEN, 7)),
    eps: EPS,
    lanes,
    added: { sums, splitK: 2, stream },
  }, { cols: HIDDEN, rows: 1 });
  const gain = device.floats(numbers(2 * headDim, 2).map((value) => value + 2));
  const own: OwnHeads = {
    qkv: device.filled(width),
    rope,
    ...normed ? { norm: { weight: gain, eps: EPS } } : {},
  };
  const out = device.filled(group * kvHeads * headDim, -7);
  const partial = { sums: device.filled(words.sums, NaN), stats: device.filled(words.stats, NaN) };
  const launch = { ...all, count: 1, perSlot: 1, paths: false, tuning: HARDWARE, label: "test" };
  const attended = (own: OwnHeads) =>
    attention({
      q: out,
      keys,
      values,
      rows,
      pages: device.words(blockTable(SLOTS, TABLE_PAGES)),
      out,
      partial,
      own,
    }, { ...launch, scale: 1 / Math.sqrt(headDim), window });
  const x = device.floats(numbers(HIDDEN, 6));
  const of = { matrix, x, prologue, own };
  const scored = plan(of, (own) => attended(own)[0] as Dispatch);
  const [, ...combined] = attended(own);
  await device.run([...scored, ...combined]);
  const [all_out, all_keys, all_values, all_stream] = await Promise.all(
    [out, keys, values, stream].map((one) => device.readWords(one)),
  ) as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];
  return { out: all_out, keys: all_keys, values: all_values, stream: all_stream };
}

for (const [place, shape] of SHAPES.entries()) {
  const { group, kvHeads, headDim, normed, cell, window } = shape;
  const kind = `${normed ? "normed" : "plain"}, cell ${cell}, window ${window}`;
  const { test } = place === 3 ? Deno : drawn;
  test(`attention with its heads: ${group} x ${kvHeads} of ${headDim}, ${kind}`, async () => {
    const width = (group + 2) * kvHeads * headDim;
    const wanted = await run(shape, ({ matrix, x, prologue, own }, scored) => [
      ...matmul({ matrix, x, out: own.qkv }, {
        rows: 1,
        epilogue: "store",
        prologue,
        tuning: HARDWARE,
        label: "qkv",
      }),
      scored(own),
    ]);
    assert.ok(wanted.out.some((word) => word << 1 !== 0));
    const handoff = device.words(new Uint32Array(headWords(width)));
    for (const turns of [NO_TURNS, 50_000, 50_000]) {
      const found = await run(shape, ({ matrix, x, prologue, own }, scored) => {
        assert.ok(handsOffHeads(matrix, { headDim: 128, tuning: HARDWARE }));
        const of = { prologue, tuning: HARDWARE, turns, label: "joined" };
        return [
          headsWithHandoff(
            { matrix, x, words: handoff },
            of,
            (from) => scored({ ...own, handoff: from }),
          ),
        ];
      });
      assert.deepEqual(found, wanted);
      // The next dispatch finds no words.
      assert.ok((await device.readWords(handoff)).every((word) => word === 0));
    }
    // Where the matmul's workgroups never run, attention's make the heads.
    const alone = await run(shape, ({ matrix, x, prologue, own }, scored) => {
      const of = { prologue, tuning: HARDWARE, turns: NO_TURNS, label: "joined" };
      const joined = headsWithHandoff(
        { matrix, x, words: handoff },
        of,
        (from) => scored({ ...own, handoff: from }),
      );
      const [, y, z] = joined.workgroups;
      const { groupsBefore = 0, ...launch } = joined;
      const workgroups = [1, y, z - groupsBefore] as const;
      return [{ ...launch, constants: { ...joined.constants, b_PLACES_BEFORE: 0 }, workgroups }];
    });
    assert.deepEqual(alone, wanted);
  });
}

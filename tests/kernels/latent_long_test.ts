// Attention over latents of few rows at long contexts: against f64, and the bits of the kernel of many rows.

import assert from "node:assert/strict";
import { longBytes } from "../../kernels/mla/latent_long.ts";
import { latentAttention, latentPartialWords } from "../../kernels/mla/latent_attention.ts";
import { type LatentTile, TILES } from "../../kernels/mla/latent_kernels.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { kept, packedKv } from "./kv.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const NEEDED = longBytes(576);
/** Deno's own WebGPU holds no kernel to the limit, and a processor has the memory. */
const ROOMY = device.gpu.info.webgpu === "builtin" ||
  device.gpu.limits.maxComputeWorkgroupStorageSize >= NEEDED;
const HARDWARE = { ...tuning(false, device.gpu.limits), workgroupBytes: NEEDED };
const SCALE = 0.3;
/** More pages than runs of one chunk are for. */
const TABLE_PAGES = 150;

interface Case {
  readonly heads: number;
  readonly rank: number;
  readonly rope: number;
  readonly kvDtype: "f32" | "bf16" | "f16";
  /** Positions of each slot's rows; negative: padding. */
  readonly slots: readonly (readonly number[])[];
  readonly window?: number;
  /** Queries of the tiles of its kernels, those of shorter contexts first. */
  readonly tiles: readonly string[];
}

const CASES: readonly Case[] = [
  { heads: 16, rank: 136, rope: 24, kvDtype: "f16", slots: [[2063]], tiles: ["4", "8"] },
  {
    heads: 5,
    rank: 136,
    rope: 24,
    kvDtype: "f16",
    slots: [[2100, 2101, -1]],
    window: 150,
    tiles: ["4", "8"],
  },
  {
    heads: 3,
    rank: 64,
    rope: 16,
    kvDtype: "bf16",
    slots: [[2304, 5], [127, 128]],
    tiles: ["4", "8"],
  },
  {
    heads: 12,
    rank: 8,
    rope: 8,
    kvDtype: "f32",
    slots: [[0, 16, 2398, 2399]],
    window: 700,
    tiles: ["8"],
  },
  { heads: 1, rank: 264, rope: 56, kvDtype: "bf16", slots: [[2047]], tiles: ["4", "8"] },
  ...EXHAUSTIVE
    ? [
      { heads: 16, rank: 136, rope: 24, kvDtype: "f32", slots: [[2063]], tiles: ["4", "8"] },
    ] as const
    : [],
  // What is wide is in the one before; these take seconds to compile.
  ...!ROOMY || !EXHAUSTIVE ? [] : [
    { heads: 16, rank: 512, rope: 64, kvDtype: "f32", slots: [[2240]], tiles: ["4", "8"] },
    {
      heads: 18,
      rank: 520,
      rope: 56,
      kvDtype: "f16",
      slots: [[2238, 2239]],
      window: 2000,
      tiles: ["8"],
    },
  ] as const,
];

const widthOf = ({ rank, rope }: Case) => rank + rope;

function rowsOf({ slots }: Case): RowFields[] {
  return slots.flatMap((positions, slot) =>
    positions.map((at) => {
      const position = Math.max(0, at);
      const live = Number(at >= 0);
      return { token: 0, position, slot, cell: position, base: position + 1, path: [], live };
    })
  );
}

/** [slots, cells, width], NaN where no row may read. */
function latentsOf(of: Case): Float32Array {
  const [width, cells] = [widthOf(of), TABLE_PAGES * PAGE];
  const values = kept(of.kvDtype, numbers(of.slots.length * cells * width, 7));
  for (const [slot, positions] of of.slots.entries()) {
    const written = Math.max(...positions) + 1;
    values.fill(NaN, (slot * cells + written) * width, (slot + 1) * cells * width);
  }
  return values;
}

/** softmax(SCALE q . k) v of a head of a row. */
function reference(of: Case, latents: Float32Array, row: RowFields, q: Float32Array): number[] {
  const { rank, window = Infinity } = of;
  const width = widthOf(of);
  if (!row.live) return Array<number>(rank).fill(0);
  const first = Math.max(0, row.position + 1 - window);
  const seen = Array.from({ length: row.position + 1 - first }, (_, i) => {
    const at = (row.slot * TABLE_PAGES * PAGE + first + i) * width;
    return latents.subarray(at, at + width);
  });
  const scores = seen.map((key) => SCALE * key.reduce((sum, k, i) => sum + k * q[i]!, 0));
  const peak = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - peak));
  const total = weights.reduce((a, b) => a + b, 0);
  return Array.from(
    { length: rank },
    (_, d) => weights.reduce((sum, w, c) => sum + w * seen[c]![d]!, 0) / total,
  );
}

for (const of of ROOMY ? CASES : []) {
  const { heads, rank, kvDtype, slots, window, tiles } = of;
  const name = `${heads} heads, ${rank}, ${kvDtype}, rows at ${slots.join("; ")}, ${window}`;
  // The first two share kernels.
  const { test } = CASES.indexOf(of) < 2 ? Deno : drawn;
  test(`latent attention at long contexts: ${name}`, async () => {
    const width = widthOf(of);
    const rows = rowsOf(of);
    const latents = latentsOf(of);
    const table = blockTable(slots.length, TABLE_PAGES);
    const stored = new Float32Array(latents.length);
    for (let at = 0; at < latents.length / width; at++) {
      const to = (table[Math.floor(at / PAGE)]! * PAGE + at % PAGE) * width;
      stored.set(latents.subarray(at * width, (at + 1) * width), to);
    }
    const sizes = { heads, kvHeads: 1, headDim: width, rank, tablePages: TABLE_PAGES, kvDtype };
    const words = latentPartialWords(sizes, rows.length, {});
    const queries = numbers(rows.length * heads * width, 5);
    const inputs = {
      q: device.floats(queries),
      latents: device.words(packedKv(kvDtype, stored, width)),
      rows: device.words(packRows(rows)),
      pages: device.words(table),
    };
    /** What each pass over segments finds, by its kernel. */
    async function passes(tile?: LatentTile): Promise<Map<string, Float32Array>> {
      const [out, sums, stats] = [rows.length * heads * width, words.sums, words.stats]
        .map((count) => device.filled(count, NaN));
      const plan = latentAttention({
        ...inputs,
        out: out!,
        partial: { sums: sums!, stats: stats! },
      }, {
        ...sizes,
        count: rows.length,
        perSlot: slots[0]!.length,
        paths: false,
        scale: SCALE,
        window,
        tuning: HARDWARE,
        tile,
        label: "test",
      });
      const found = new Map<string, Float32Array>();
      for (let i = 0; i < plan.length; i += 2) {
        const [attention, combined] = plan.slice(i, i + 2);
        if (attention?.forCells?.from === 0) continue; // chunks
        await device.run([attention!, combined!]);
        found.set(
          attention!.kernel.name,
          new Float32Array((await device.readWords(out!)).buffer),
        );
      }
      return found;
    }
    const expected = (await passes(TILES.long)).values().next().value!;
    const found = await passes();
    assert.deepEqual([...found.keys()].map((name) => name.match(/long_.*_(\d+)$/)?.[1]), tiles);
    const values = ({ from, count }: { from: number; count: number }, of: Float32Array) =>
      of.subarray(from, from + count);
    for (const one of found.values()) {
      for (let at = 0; at < rows.length * heads; at++) {
        const part = { from: at * width, count: rank };
        assert.deepEqual(values(part, one), values(part, expected));
      }
    }
    for (const [at, row] of rows.entries()) {
      for (const head of new Set([0, heads - 1])) {
        const from = (at * heads + head) * width;
        const wanted = reference(of, latents, row, queries.subarray(from, from + width));
        assertClose(
          expected.subarray(from, from + rank),
          wanted,
          2e-5,
          `row ${at}, head ${head}`,
        );
      }
    }
  });
}

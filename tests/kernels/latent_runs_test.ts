// The kernel that adds the runs of cells which latent attention leaves: against f64. Where it also makes values of
// them, it has the bits of doing so apart, whatever the workgroup.

import assert from "node:assert/strict";
import {
  latentAttention,
  latentPartialWords,
  type LatentRuns,
} from "../../kernels/mla/latent_attention.ts";
import { latentRunsValue, latentValue } from "../../kernels/mla/latent_value.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { packRows, type RowFields } from "./rows.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());
const HARDWARE = tuning(false, device.gpu.limits);
const THREADS = [128, 256, 512].filter((threads) => threads <= HARDWARE.rowLanes);
/** Workgroup sizes that a case runs with: one of them in turn, or all if exhaustive, as each is its own kernel. */
const threadsOf = (place: number) =>
  EXHAUSTIVE ? THREADS : [THREADS[(place + 1) % THREADS.length] as number];

interface Case {
  readonly rank: number;
  readonly value: number;
  /** Pages of the one slot; from 129 on runs are segments where contexts are long. */
  readonly tablePages: number;
  /** Position of each row; negative: padding. */
  readonly positions: readonly number[];
  readonly window?: number;
  /** Invocations of a workgroup; default: `threadsOf`. */
  readonly threads?: number;
}

const CASES: readonly Case[] = [
  { rank: 64, value: 40, tablePages: 40, positions: [0] },
  { rank: 512, value: 128, tablePages: 64, positions: [511, 639, 12, -1] },
  { rank: 136, value: 24, tablePages: 128, positions: [2047, 300], window: 150 },
  { rank: 1032, value: 16, tablePages: 8, positions: [100] },
  { rank: 64, value: 40, tablePages: 700, positions: [9000, -1, 11199] },
  { rank: 136, value: 72, tablePages: 256, positions: [4000], window: 1000 },
  // Each invocation has three pairs of a lane and a four, for more than 60 segments.
  { rank: 384, value: 8, tablePages: 520, positions: [8191, 8000], threads: 128 },
];
const [HEADS, NOPE, ROPE] = [3, 8, 8];

for (const [place, of] of CASES.entries()) {
  const { rank, value, tablePages, positions, window, threads: only } = of;
  const name = `rank ${rank}, rows at ${positions}, window ${window ?? "none"}`;
  const { test } = [0, 2, 6].includes(place) ? Deno : drawn;
  test(`latent: values of runs, ${name}`, async () => {
    const count = positions.length;
    const width = rank + ROPE;
    const rows: RowFields[] = positions.map((at) => {
      const position = Math.max(0, at);
      const live = Number(at >= 0);
      return { token: 0, position, slot: 0, cell: position, base: position + 1, path: [], live };
    });
    const sizes = {
      heads: HEADS,
      kvHeads: 1,
      headDim: width,
      rank,
      tablePages,
      kvDtype: "f32",
    } as const;
    const words = latentPartialWords(sizes, count, {});
    const [sums, peaks] = [numbers(words.sums, 1), numbers(words.stats, 2)];
    // Each run has a peak, and a total that counts at least the cell which has the peak.
    const stats = peaks.map((x, i) => i % 2 === 0 ? 4 * x : 1 + Math.abs(x));
    const run = tablePages * PAGE > 2048 ? 128 : 16;
    const places = Math.ceil(tablePages * PAGE / run);
    // Places that a row does not use may hold NaN, left by longer contexts.
    for (let at = 0; at < count * HEADS * places; at++) {
      const end = positions[Math.floor(at / places / HEADS)]! + 1;
      const begin = Math.max(0, end - (window ?? Infinity));
      const cells = [at % places * run, at % places * run + run] as const;
      if (cells[0] < end && cells[1] > begin) continue;
      stats.fill(NaN, 2 * at, 2 * at + 2);
      sums.fill(NaN, at * rank, (at + 1) * rank);
    }
    const kvB = weights("bf16", HEADS * (NOPE + value), rank);
    const matrix = uploadMatrix(device, kvB, {
      format: "bf16",
      cols: rank,
      shards: [HEADS * (NOPE + value)],
    });
    const mixed = device.filled(count * HEADS * width, NaN);
    const buffers = {
      q: device.filled(count * HEADS * width),
      latents: device.filled(4),
      rows: device.words(packRows(rows)),
      pages: device.words([0]),
      out: mixed,
      partial: { sums: device.floats(sums), stats: device.floats(stats) },
    };
    const launch = {
      ...sizes,
      count,
      perSlot: count,
      paths: false,
      scale: 1,
      window,
      tuning: HARDWARE,
      label: "test",
    } as const;
    const found: LatentRuns[] = [];
    const shape = {
      heads: HEADS,
      nope: NOPE,
      rope: ROPE,
      value,
      rank,
      interleaved: true,
      count,
      tuning: HARDWARE,
      label: "test",
    };
    const apart = latentAttention(buffers, launch);
    latentAttention(buffers, {
      ...launch,
      finish: (
        runs,
      ) => (found.push(runs), latentRunsValue({ kvB: matrix, out: mixed }, runs, shape)),
    });
    const runs = found.at(-1)!;
    assert.deepEqual([runs.run, runs.runs], [run, places]);

    const output = () => device.filled(count * HEADS * value, -7);
    const out = output();
    await device.run([
      apart.at(-1)!,
      latentValue({ kvB: matrix, attentionOutput: mixed, out }, shape),
    ]);
    const expected = await device.readWords(out);
    for (const threads of only ? [only] : threadsOf(place)) {
      const merged = output();
      await device.run([
        latentRunsValue({ kvB: matrix, out: merged }, runs, { ...shape, threads }),
      ]);
      assert.deepEqual(await device.readWords(merged), expected, `${threads} invocations`);
    }
    // The scales of the rows, as a dispatch of their own finds them.
    const scales = [2 ** 74, 2 ** 74].map((before) => device.filled(count, before));
    const [alone, noted, mixedNoted] = [device.filled(count), ...scales] as [
      Operand,
      Operand,
      Operand,
    ];
    await device.run([
      rowScales({ x: out, scales: alone }, { rows: count, cols: HEADS * value }),
      latentRunsValue({ kvB: matrix, out: output(), scales: noted }, runs, shape),
      latentValue(
        { kvB: matrix, attentionOutput: mixed, out: output(), scales: mixedNoted },
        shape,
      ),
    ]);
    const wantedScales = await device.readWords(alone);
    assert.deepEqual(await device.readWords(noted), wantedScales);
    assert.deepEqual(await device.readWords(mixedNoted), wantedScales);
    assert.ok(new Float32Array(wantedScales.buffer).some((scale) => scale < 2 ** 30));

    const latent = (query: number): number[] => {
      const { position, live } = rows[Math.floor(query / HEADS)]!;
      const first = Math.floor(Math.max(0, position + 1 - (window ?? Infinity)) / runs.run);
      const seen = Array.from(
        { length: live ? Math.floor(position / runs.run) + 1 - first : 0 },
        (_, i) => query * runs.runs + first + i,
      );
      const top = Math.max(...seen.map((at) => stats[2 * at]!));
      const shares = seen.map((at) => Math.exp(stats[2 * at]! - top));
      const total = seen.reduce((sum, at, i) => sum + shares[i]! * stats[2 * at + 1]!, 0) || 1;
      return Array.from(
        { length: rank },
        (_, d) => seen.reduce((sum, at, i) => sum + shares[i]! * sums[at * rank + d]!, 0) / total,
      );
    };
    const wanted = Array.from({ length: count * HEADS }, (_, query) => {
      const x = latent(query);
      const first = query % HEADS * (NOPE + value) + NOPE;
      return Array.from(
        { length: value },
        (_, v) => x.reduce((sum, own, k) => sum + own * kvB[(first + v) * rank + k]!, 0),
      );
    }).flat();
    assertClose(new Float32Array(expected.buffer), wanted, 2e-5, name);
  });
}

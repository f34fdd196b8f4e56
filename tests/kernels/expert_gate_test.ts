import assert from "node:assert/strict";
import { gateExperts } from "../../kernels/experts/expert_gate.ts";
import { tileSize } from "../../kernels/experts/expert_shape.ts";
import { expertMatmul, expertTiles, tileWords } from "../../kernels/experts/experts.ts";
import { clampedEpilogue } from "../../kernels/lib/epilogue.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

Deno.test("the gate of gpt-oss's experts: biases, limits, and numbers far beyond them", async () => {
  const [experts, cols, limit] = [[2, 0, 2, 1], 70, 7];
  const x = numbers(experts.length * 2 * cols, 1).map((value) => 12 * value);
  x.set([-1e30, 1e30, 1e30, -1e30, -50, 3]);
  const bias = numbers(3 * 2 * cols, 2);
  const out = device.filled(experts.length * cols, -7);
  const buffers = {
    x: device.floats(x),
    bias: device.floats(bias),
    experts: device.words(experts),
    out,
  };
  await device.run([
    gateExperts(buffers, { rows: experts.length, cols, limit, label: "test" }),
  ]);
  const expected = Array.from({ length: experts.length * cols }, (_, at) => {
    const [job, c] = [Math.floor(at / cols), at % cols];
    const [gate, up] = [0, 1].map((i) =>
      (x[2 * at + i] ?? NaN) + (bias[((experts[job] ?? NaN) * cols + c) * 2 + i] ?? NaN)
    ) as [number, number];
    const g = Math.min(gate, limit);
    const u = Math.min(Math.max(up, -limit), limit);
    return g / (1 + Math.exp(-1.702 * g)) * (u + 1);
  });
  assertClose(await device.readFloats(out), expected, 1e-5, "gated");
});

for (const [software, rows] of [[true, 3], [false, 1], [false, 3], [false, 9]] as const) {
  const kernels = software ? "software" : "hardware";
  Deno.test(`experts gate ${rows} rows themselves as a dispatch behind them does, ${kernels}`, async () => {
    const [numExperts, topK, n, k, limit] = [4, 2, 44, 256, 2];
    const tuned = tuning(software);
    const matrix = uploadMatrix(device, weights("bf16", numExperts * n, k), {
      format: "bf16",
      cols: k,
      lanes: tuned.lanes,
      shards: [n, 3 * n],
    });
    const jobs = { rows, topK, numExperts };
    const of = { ...jobs, tile: tileSize(jobs, tuned, "bf16"), tuning: tuned, label: "test" };
    const lists = {
      experts: device.words(Array.from({ length: rows * topK }, (_, i) => (i * 3 + 1) % 4)),
      tiles: device.filled(tileWords(jobs, tuned)),
    };
    const bias = device.floats(numbers(numExperts * n, 3));
    const io = { matrix, x: device.floats(numbers(rows * k, 1)), ...lists };
    const [both, apart, out] = [n, n / 2, n / 2].map((cols) => device.filled(rows * topK * cols));
    await device.run([
      ...expertTiles(lists, { ...of, matrix }),
      ...expertMatmul({ ...io, out: both! }, { ...of, epilogue: "store", perJob: false }),
      gateExperts({ x: both!, bias, experts: lists.experts, out: apart! }, {
        rows: rows * topK,
        cols: n / 2,
        limit,
        label: "test",
      }),
      ...expertMatmul({ ...io, out: out! }, {
        ...of,
        epilogue: clampedEpilogue({ bias, limit }),
        perJob: false,
      }),
    ]);
    const found = await device.readWords(out!);
    assert.ok(found.every((word) => word << 1 !== 0));
    assert.deepEqual(found, await device.readWords(apart!));
  });
}

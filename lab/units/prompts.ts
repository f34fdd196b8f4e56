/**
 * `EYRIE_WEBGPU=dawn deno run -A lab/units/prompts.ts [ROWS,...]`: times workgroups of matmul_tensor.wgsl for the many
 * rows of prompts, with x as one f16 number, on matrix units.
 */
import {
  fitsTile,
  matmulTensor,
  type TensorTile,
} from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { halveWeights } from "../../kernels/matmul/tensor/weight_scales.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler } from "../../src/gpu/program.ts";
import { type Bench, buffersOf, free, run, timeOf } from "./tensor_buffers.ts";
import { tileText } from "./tensor_tiles.ts";

const say = (text: string) => process.stdout.write(`${text}\n`);

const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
say(`${gpu.info.adapter} ${JSON.stringify(unit)}`);
const bench: Bench = {
  gpu,
  make: compiler(gpu),
  profiler: await openProfiler(gpu, { queries: 2 }),
  unit,
  tiles: 9,
};
const rowsOf = Deno.args[0]?.split(",").map(Number) ?? [512];
const SHAPES = [
  { name: "gateUp", n: 28672, k: 4096 },
  { name: "down", n: 4096, k: 14336 },
  { name: "qkv", n: 6144, k: 4096 },
  { name: "o", n: 4096, k: 4096 },
  { name: "0.6B gateUp", n: 6144, k: 1024 },
  { name: "0.6B down", n: 1024, k: 3072 },
].slice(0, Number(Deno.args[1] ?? 6));
const T = (
  subgroups: number,
  grid: [number, number],
  own: [number, number],
  stage: number,
  ahead: number,
  more: Partial<TensorTile> = {},
): TensorTile => ({ subgroups, grid, own, stage, ahead, ...more });
/** Clocks fall while the next kernel is compiled. */
const WARM_MS = 120;
const early = { early: true };
const turn = { early: true, inTurn: true };
const TILES: TensorTile[] = [
  T(4, [2, 2], [4, 4], 32, 1, early),
  T(4, [2, 2], [4, 4], 64, 1, early),
  T(4, [2, 2], [4, 5], 32, 1, early),
  T(4, [2, 2], [4, 3], 32, 1, early),
  T(4, [2, 2], [2, 3], 64, 1, early),
  T(8, [2, 4], [4, 3], 64, 1, early),
  T(8, [2, 4], [4, 3], 64, 2, turn),
  T(8, [2, 4], [4, 3], 32, 2, turn),
  T(8, [4, 2], [2, 6], 64, 2, turn),
  T(4, [2, 2], [4, 4], 64, 2, turn),
  T(4, [2, 2], [4, 4], 32, 2, turn),
  T(4, [2, 2], [4, 3], 64, 2, turn),
  T(4, [2, 2], [4, 3], 32, 2, turn),
  T(8, [2, 4], [4, 2], 64, 2, turn),
  T(8, [4, 2], [2, 4], 64, 2, turn),
  T(4, [2, 2], [4, 5], 32, 2, turn),
  T(8, [2, 4], [4, 4], 32, 2, turn),
  T(4, [2, 2], [2, 4], 64, 2, turn),
  T(4, [2, 2], [2, 3], 64, 2, turn),
];
for (const shape of SHAPES) {
  for (const rows of rowsOf) {
    const flops = 2 * rows * shape.n * shape.k;
    const lines: [number, string][] = [];
    const buffers = await buffersOf(bench, shape, rows, 1);
    await run(bench, [
      rowScales({ x: buffers.x, scales: buffers.xScales }, { rows, cols: shape.k }),
    ]);
    await run(bench, [
      halveWeights({ weights: buffers.weights, scales: buffers.wScales }, {
        rows: shape.n,
        cols: shape.k,
      }),
    ]);
    for (const tile of TILES) {
      if (!fitsTile(unit, tile, gpu.limits, 0)) continue;
      const what = `${tileText(tile)}${tile.early ? " early" : ""}${tile.inTurn ? " turn" : ""}`;
      try {
        const shard = { operand: buffers.weights, first: 0, rows: shape.n };
        const matrix = { rows: shape.n, cols: shape.k };
        const of = { unit, tile, rows, matrix, shard, halved: true, label: shape.name };
        const half = { precision: "f16", paired: true } as const;
        const program = await bench.make.compile([matmulTensor(buffers, { ...of, ...half })]);
        const us = await timeOf(bench, [program], WARM_MS);
        const rate = (flops / us / 1e6).toFixed(0).padStart(4);
        lines.push([us, `${us.toFixed(1).padStart(8)} us ${rate} TFLOP/s  ${what}`]);
      } catch (error) {
        say(`FAILED ${what}: ${String(error).slice(0, 150)}`);
      }
    }
    say(`\n${shape.name} [${shape.n}, ${shape.k}] ${rows} rows`);
    for (const [, line] of lines.toSorted((a, b) => a[0] - b[0])) say(line);
    free(buffers);
  }
}
Deno.exit(0);

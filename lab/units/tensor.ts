/**
 * `deno run -A lab/units/tensor.ts [--webgpu dawn|builtin] [--small] [ROWS...]`: matmuls on matrix units
 * beside Eyrie's other matmuls, on one adapter. It tells whether results are right, whether bits are independent
 * of rows and tiles, and how fast the matrices of Llama-3.1-8B are. It also tells how long a read takes after work.
 *
 * Prints as it goes. A kernel that an adapter or a compiler refuses is printed and skipped. With --small
 * the matrices are cut, for software adapters.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { type TensorTile } from "../../kernels/matmul/tensor/matmul_tensor.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { median } from "../../src/measure/statistics.ts";
import { reason } from "../../src/errors.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../../src/gpu/program.ts";
import { openReadback, readBuffer } from "../../src/gpu/readback.ts";
import {
  type Bench,
  type Buffers,
  buffersOf,
  digest,
  errorsOf,
  free,
  run,
  type Shape,
  simtPlan,
  tensorPlan,
  timeOf,
} from "./tensor_buffers.ts";
import { tilesFor, tileText } from "./tensor_tiles.ts";

const SHAPES: readonly Shape[] = [
  { name: "gateUp", n: 28672, k: 4096 },
  { name: "down", n: 4096, k: 14336 },
  { name: "qkv", n: 6144, k: 4096 },
  { name: "o", n: 4096, k: 4096 },
  { name: "head", n: 128256, k: 4096 },
];
const SMALL: readonly Shape[] = [{ name: "odd", n: 84, k: 256 }];
const ROWS = [1, 8, 16, 32, 64, 512];
/** Bytes of the matrices that are read in turn: more than caches hold. */
const COLD_BYTES = 256 << 20;
const WARM_MS = 150;
function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function attempt(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    say(`FAILED ${what}: ${reason(error).split("\n").slice(0, 4).join(" | ")}`);
  }
}

function tilesOf({ unit, gpu, tiles }: Bench, { k }: Shape, rows: number): TensorTile[] {
  return tilesFor(unit, rows, gpu.limits).filter(({ stage }) => k % stage === 0).slice(0, tiles);
}

/** Compares with float64, and checks that the first row's bits are the same at all numbers of rows and all tiles. */
async function checkShape(bench: Bench, shape: Shape, allRows: readonly number[]): Promise<void> {
  const most = Math.max(...allRows);
  const buffers = await buffersOf(bench, shape, most, 1);
  const faults = new Uint32Array(await readBuffer(bench.gpu, buffers.faults));
  const inexact = faults.reduce((sum, count) => sum + count, 0);
  const bits = new Map<string, string[]>();
  for (const rows of allRows) {
    const { x, xScales } = buffers;
    const scale = rowScales({ x, scales: xScales }, { rows, cols: shape.k });
    await attempt(`${shape.name} ${rows} rows, SIMT`, async () => {
      await run(bench, simtPlan(bench, buffers, shape, rows));
      const error = await errorsOf(bench, buffers, shape, rows);
      say(
        `check ${shape.name} [${shape.n}, ${shape.k}] ${rows} rows: SIMT error ${
          error.toExponential(1)
        }`,
      );
    });
    for (
      const tile of tilesOf(bench, shape, rows)
    ) {
      await attempt(`${shape.name} ${rows} rows, ${tileText(tile)}`, async () => {
        await run(bench, [scale, ...tensorPlan(bench, buffers, shape, rows, tile)]);
        const key = await digest(bench, buffers, shape, 1);
        bits.set(key, [...bits.get(key) ?? [], `${rows} rows, ${tileText(tile)}`]);
        if ((bits.get(key)?.length ?? 0) > 1 && rows !== most) return;
        const error = await errorsOf(bench, buffers, shape, rows);
        say(`  ${rows} rows, ${tileText(tile)}: error ${error.toExponential(1)} of sum |x w|`);
      });
    }
  }
  const verdict = bits.size === 1
    ? "the same bits in all"
    : `DIFFERENT BITS: ${JSON.stringify([...bits])}`;
  say(`check ${shape.name}: ${inexact} weights that are no f16; row 0: ${verdict}`);
  free(buffers);
}

async function timeShape(bench: Bench, shape: Shape, allRows: readonly number[]): Promise<void> {
  const bytes = 2 * shape.n * shape.k;
  const copies = Math.max(1, Math.ceil(COLD_BYTES / bytes));
  const all: Buffers[] = [];
  for (let i = 0; i < copies; i++) {
    all.push(await buffersOf(bench, shape, Math.max(...allRows), 10 + i));
  }
  const first = all[0] as Buffers;
  const timed = async (planOf: (buffers: Buffers) => Plan, warmMs: number) => {
    const programs: Program[] = [];
    for (const buffers of all) programs.push(await bench.make.compile(planOf(buffers)));
    return await timeOf(bench, programs, warmMs);
  };
  let one = NaN;
  for (const rows of allRows) {
    let simt = NaN;
    const flops = 2 * rows * shape.n * shape.k;
    const rate = (us: number) =>
      `${us.toFixed(1)} us ${(bytes / us / 1e6).toFixed(2)} TB/s ${
        (flops / us / 1e6).toFixed(1)
      } TFLOP/s`;
    await attempt(`time ${shape.name} ${rows} rows, SIMT`, async () => {
      simt = await timed((buffers) => simtPlan(bench, buffers, shape, rows), WARM_MS);
      if (rows === 1) one = simt;
    });
    const found: { us: number; tile: TensorTile }[] = [];
    const { x, xScales } = first;
    for (const { xScales, x } of all) {
      await run(bench, [rowScales({ x, scales: xScales }, { rows, cols: shape.k })]);
    }
    const scaling = await timed(
      () => [rowScales({ x, scales: xScales }, { rows, cols: shape.k })],
      0,
    );
    for (
      const tile of tilesOf(bench, shape, rows)
    ) {
      await attempt(`time ${shape.name} ${rows} rows, ${tileText(tile)}`, async () => {
        found.push({
          us: await timed(
            (buffers) => tensorPlan(bench, buffers, shape, rows, tile),
            found.length ? 0 : WARM_MS,
          ),
          tile,
        });
      });
    }
    found.sort((a, b) => a.us - b.us);
    const [best] = found;
    say(
      `\n${shape.name} [${shape.n}, ${shape.k}] ${rows} rows: SIMT ${rate(simt)}; row scales ${
        scaling.toFixed(1)
      } us`,
    );
    if (!best) continue;
    say(
      `  best ${rate(best.us)}, ${(best.us / simt).toFixed(2)} of SIMT, ${
        (best.us / one).toFixed(2)
      } of SIMT's 1 row`,
    );
    for (const { us, tile } of found) say(`    ${us.toFixed(1).padStart(8)} us  ${tileText(tile)}`);
  }
  all.forEach(free);
}

/** Times work of some milliseconds with a read behind it, and the work alone. The difference is the read's cost. */
async function timeReads(bench: Bench, small: boolean): Promise<void> {
  const { gpu, profiler, make } = bench;
  const size = small ? 256 : 4096;
  const shape = { name: "reads", n: size, k: size };
  const buffers = await buffersOf(bench, shape, 16, 1);
  const { steps } = await make.compile(simtPlan(bench, buffers, shape, 16));
  using readback = await openReadback(gpu, 64);
  for (const runs of [0, 20, 200]) {
    const program = { steps: Array.from({ length: runs }, () => steps).flat() };
    const busy: number[] = [];
    for (let i = 0; i < 9; i++) busy.push((await profiler.time([program]))[0]?.end ?? NaN);
    const walls: number[] = [];
    for (let i = 0; i < 40; i++) {
      const from = performance.now();
      submit(gpu, program);
      await readback.read();
      walls.push(performance.now() - from);
    }
    const [wall, largest] = [median(walls), Math.max(...walls)].map((ms) => ms.toFixed(3));
    say(
      `read behind ${median(busy).toFixed(3)} ms of work: median ${wall} ms, largest ${largest} ms`,
    );
  }
  free(buffers);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    options: {
      webgpu: { type: "string", default: "dawn" },
      small: { type: "boolean", default: false },
    },
    allowPositionals: true,
  });
  const gpu = await openGpu({ webgpu: values.webgpu === "builtin" ? "builtin" : "dawn" });
  say(
    `${gpu.info.adapter}, ${gpu.info.backend}, ${gpu.info.webgpu}; ${gpu.info.features.join(" ")}`,
  );
  say(
    `unit ${
      JSON.stringify(gpu.matrixUnit)
    }, workgroup memory ${gpu.limits.maxComputeWorkgroupStorageSize}`,
  );
  const profiler = await openProfiler(gpu, { queries: 2 });
  const bench: Bench = {
    gpu,
    make: compiler(gpu),
    profiler,
    unit: gpu.matrixUnit as MatrixUnit,
    tiles: values.small ? 2 : Infinity,
  };
  await attempt("reads", () => timeReads(bench, values.small));
  if (gpu.matrixUnit === undefined) return say("no matrix unit: nothing else to compare");
  const rows = positionals.length > 0 ? positionals.map(Number) : values.small ? [1, 9] : ROWS;
  const shapes = values.small ? SMALL : SHAPES;
  for (const shape of shapes.slice(0, 2)) {
    await attempt(`check ${shape.name}`, () => checkShape(bench, shape, rows));
  }
  for (const shape of shapes) {
    await attempt(`time ${shape.name}`, () => timeShape(bench, shape, rows));
  }
}

if (import.meta.main) {
  await attempt("lab/units/tensor.ts", main);
  Deno.exit(0);
}

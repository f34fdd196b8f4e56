/**
 * `deno run -A bench/experts.ts [--small] [--shapes NAME,...] [--tiles few|many] ROWS...`: matmuls of experts on matrix units beside the others, with random routing, by `--webgpu dawn`. The weights of
 * all experts of one layer; at few rows several routings in turn, so that no cache holds what they read.
 *
 * Prints as it goes; what a compiler refuses is a line and ends nothing else. With --small the matrices are
 * cut, for software adapters.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { expertMatmul, expertTiles, tileWords } from "../shaders/experts/experts.ts";
import { expertTensor, scaleWeights } from "../shaders/experts/expert_tensor.ts";
import { rowScales, weightScales } from "../shaders/tensor/matmul_tensor.ts";
import { fillParams, fillRandom } from "../shaders/weights/fill_random.ts";
import { reason } from "../src/errors.ts";
import { storage } from "../src/gpu/arena.ts";
import { openGpu } from "../src/gpu/device.ts";
import type { Operand, Plan } from "../src/gpu/kernel.ts";
import { lanesFor, type Matrix, tuning } from "../src/gpu/matrix.ts";
import type { MatrixUnit } from "../src/gpu/matrix_unit.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../src/gpu/program.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { hash32 } from "../src/speculate/noise.ts";
import { type Bench, timeOf } from "./tensor_buffers.ts";
import { type ExpertTile, expertTilesFor, tileText } from "./experts_tiles.ts";

interface Shape {
  readonly name: string;
  readonly numExperts: number;
  readonly topK: number;
  readonly n: number;
  readonly k: number;
  readonly epilogue: "store" | "swiglu";
}

const DEEPSEEK = { numExperts: 64, topK: 6 };
const QWEN = { numExperts: 128, topK: 8 };
const SHAPES: readonly Shape[] = [
  { name: "deepseek.gateUp", ...DEEPSEEK, n: 2816, k: 2048, epilogue: "swiglu" },
  { name: "deepseek.down", ...DEEPSEEK, n: 2048, k: 1408, epilogue: "store" },
  { name: "qwen.gateUp", ...QWEN, n: 1536, k: 2048, epilogue: "swiglu" },
  { name: "qwen.down", ...QWEN, n: 2048, k: 768, epilogue: "store" },
];
const SMALL = { numExperts: 6, topK: 2, n: 48, k: 256 };
const NOTHING = 0xffffffff;
/** Bytes of weights read before a routing comes again. */
const COLD_BYTES = 256 << 20;
const WARM_MS = 300;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** topK different experts of each row. */
function routing({ numExperts, topK }: Shape, rows: number, stream: number): number[] {
  return Array.from({ length: rows }, (_, r) => {
    const order = Array.from(
      { length: numExperts },
      (_, e) => ({ e, at: hash32(stream, r, e) }),
    );
    return order.toSorted((a, b) => a.at - b.at).slice(0, topK).map(({ e }) => e);
  }).flat();
}

/** Words of the tiles of expert_tiles.wgsl, of `size` jobs each. */
function tilesOf(experts: readonly number[], numExperts: number, size: number): Uint32Array {
  const jobsOf = Map.groupBy(experts.keys(), (job) => experts[job] as number);
  const words: number[] = [];
  for (let e = 0; e < numExperts; e++) {
    const jobs = jobsOf.get(e) ?? [];
    for (let at = 0; at < jobs.length; at += size) {
      const some = jobs.slice(at, at + size);
      words.push(e, ...some, ...Array<number>(size - some.length).fill(NOTHING));
    }
  }
  return Uint32Array.from(words);
}

/** Device buffers of one shape, for up to `rows` rows. */
class Buffers {
  readonly bench: Bench;
  readonly shape: Shape;
  readonly rows: number;
  readonly weights: Operand;
  readonly wScales: Operand;
  readonly faults: Operand;
  readonly x: Operand;
  readonly xScales: Operand;
  readonly out: Operand;

  constructor(
    bench: Bench,
    shape: Shape,
    rows: number,
  ) {
    this.bench = bench;
    this.shape = shape;
    this.rows = rows;
    const { numExperts, topK, n, k } = shape;
    const { device } = bench.gpu;
    const of = (label: string, bytes: number): Operand => ({
      buffer: storage(device, label, bytes),
    });
    const xRows = shape.epilogue === "swiglu" ? rows : rows * topK;
    this.weights = of("weights", 2 * numExperts * n * k);
    this.wScales = of("wScales", 4 * numExperts * n);
    this.faults = of("faults", 4 * numExperts * n);
    this.x = of("x", 4 * xRows * k);
    this.xScales = of("xScales", 4 * xRows);
    this.out = of("out", 4 * rows * topK * n);
  }

  words(values: ArrayLike<number>): Operand {
    const words = Uint32Array.from(values);
    const buffer = storage(this.bench.gpu.device, "words", words.byteLength);
    this.bench.gpu.device.queue.writeBuffer(buffer, 0, words);
    return { buffer };
  }

  async fill(): Promise<void> {
    const { shape: { numExperts, n, k }, weights, x, wScales: scales, faults } = this;
    const plan = [[weights, 1], [x, 1001]] as const;
    await this.run([
      ...plan.map(([out, stream]) => {
        const params = this.words(new Uint32Array(fillParams({ seed: 1, stream, std: 0.02 })));
        return fillRandom({ params, out }, "fill");
      }),
      weightScales({ weights, scales, faults }, { rows: numExperts * n, cols: k }),
      ...this.scaling(this.rows),
    ]);
  }

  scaling(rows: number): Plan {
    const { shape: { topK, k, epilogue }, x, xScales: scales } = this;
    return [
      rowScales({ x, scales }, { rows: epilogue === "swiglu" ? rows : rows * topK, cols: k }),
    ];
  }

  async run(plan: Plan): Promise<void> {
    submit(this.bench.gpu, await this.bench.make.compile(plan));
  }

  simt(experts: readonly number[], rows: number): Plan {
    const { bench: { gpu }, shape, weights, x, out } = this;
    const { numExperts, topK, n, k, epilogue } = shape;
    const tuned = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
    const shards = [{ operand: weights, first: 0, rows: numExperts * n }];
    const matrix: Matrix = {
      ...{ format: "bf16", rows: numExperts * n, cols: k, shards },
      lanes: lanesFor("bf16", k, tuned.lanes),
    };
    const jobs = { rows, topK, numExperts };
    const lists = {
      experts: this.words(experts),
      tiles: { buffer: storage(gpu.device, "tiles", 4 * tileWords(jobs)) },
    };
    const perJob = epilogue === "store";
    this.simtTiles = expertTiles(lists, { ...jobs, matrix, tuning: tuned, label: "tiles" });
    return expertMatmul({ matrix, x, out, ...lists }, {
      ...{ ...jobs, epilogue, perJob, tuning: tuned, label: shape.name },
    });
  }
  simtTiles: Plan = [];

  units(experts: readonly number[], tile: ExpertTile): Plan {
    const { shape, weights, x, out, wScales, xScales } = this;
    const { numExperts, topK, n, k, epilogue } = shape;
    const lists = tile.jobs === 1 ? experts : tilesOf(experts, numExperts, tile.jobs);
    return [
      expertTensor(
        { x, out, lists: this.words(lists), wScales, xScales },
        {
          ...{ unit: this.bench.unit, tile, matrix: { cols: k }, expertRows: n, epilogue },
          shard: { operand: weights, first: 0, rows: numExperts * n },
          tiles: lists.length / (tile.jobs === 1 ? 1 : 1 + tile.jobs),
          rowJobs: epilogue === "swiglu" ? topK : 1,
          label: shape.name,
        },
      ),
    ];
  }

  async outputs(jobs: number): Promise<Float32Array> {
    const { n, epilogue } = this.shape;
    const size = 4 * jobs * (epilogue === "swiglu" ? n / 2 : n);
    return new Float32Array(
      await readBuffer(this.bench.gpu, { buffer: this.out.buffer, size }),
    );
  }

  free(): void {
    const { weights, wScales, faults, x, xScales, out } = this;
    for (const { buffer } of [weights, wScales, faults, x, xScales, out]) buffer.destroy();
  }
}

/** Largest difference over the largest output. */
function difference(a: Float32Array, b: Float32Array): number {
  const largest = b.reduce((most, y) => Math.max(most, Math.abs(y)), 0);
  return a.reduce((most, y, i) => Math.max(most, Math.abs(y - (b[i] ?? NaN))), 0) / largest;
}

async function timeShape(
  bench: Bench,
  shape: Shape,
  { rows: allRows, tiles }: {
    readonly rows: readonly number[];
    readonly tiles: string;
  },
): Promise<void> {
  const { numExperts, topK, n, k } = shape;
  const buffers = new Buffers(bench, shape, Math.max(...allRows));
  await buffers.fill();
  const checked = (jobs: number) => Math.min(jobs, 64);
  const simt = new Map<number, { programs: Program[]; y: Float32Array; routings: number[][] }>();
  for (const rows of allRows) {
    const read = Math.min(numExperts, rows * topK) * 2 * n * k;
    const count = Math.min(12, Math.max(1, Math.ceil(COLD_BYTES / read)));
    const routings = Array.from({ length: count }, (_, i) => routing(shape, rows, 7 + i));
    const programs: Program[] = [];
    for (const experts of routings) {
      const plan = buffers.simt(experts, rows);
      await buffers.run(buffers.simtTiles);
      programs.push(await bench.make.compile(plan));
    }
    submit(bench.gpu, programs[0] as Program);
    simt.set(rows, { programs, y: await buffers.outputs(checked(rows * topK)), routings });
  }
  const bits = new Map<number, Float32Array>();
  const of = { rows: numExperts * n, cols: k };
  await buffers.run([scaleWeights({ weights: buffers.weights, scales: buffers.wScales }, of)]);
  for (const rows of allRows) {
    const { programs: others, y, routings } = simt.get(rows)!;
    const jobs = rows * topK;
    const made: { programs: Program[]; tile: ExpertTile }[] = [];
    // A compilation lets the clocks drop: all of them come before what is timed.
    for (const tile of expertTilesFor(bench, tiles, k, jobs / numExperts, rows)) {
      try {
        const programs: Program[] = [];
        for (const experts of routings) {
          programs.push(await bench.make.compile(buffers.units(experts, tile)));
        }
        submit(bench.gpu, programs[0] as Program);
        const out = await buffers.outputs(checked(jobs));
        const first = bits.getOrInsertComputed(rows, () => out);
        const same = out.every((value, i) => value === first[i]);
        const apart = difference(out, y);
        if (!same || !(apart < 1e-5)) {
          say(`WRONG ${tileText(tile)}: ${apart.toExponential(1)} from SIMT, same bits ${same}`);
        }
        made.push({ programs, tile });
      } catch (error) {
        say(`FAILED ${tileText(tile)}: ${reason(error).split("\n").slice(0, 3).join(" | ")}`);
      }
    }
    const simtUs = await timeOf(bench, others, WARM_MS);
    const found: { us: number; tile: ExpertTile }[] = [];
    for (const { programs, tile } of made) {
      found.push({ us: await timeOf(bench, programs, 0), tile });
    }
    const again = await timeOf(bench, others, 0);
    found.sort((a, b) => a.us - b.us);
    const flops = 2 * jobs * n * k / 1e6;
    const read = new Set(routings[0]).size * 2 * n * k / 1e6;
    const rates = (us: number) =>
      `${us.toFixed(1).padStart(7)} us ${(flops / us).toFixed(1).padStart(5)} TFLOP/s ${
        (read / us).toFixed(2)
      } TB/s`;
    say(
      `${shape.name} ${rows} rows\n  ${rates(simtUs)}  SIMT, after all ${again.toFixed(1)} us`,
    );
    for (const { us, tile } of found) say(`  ${rates(us)}  ${tileText(tile)}`);
  }
  buffers.free();
}

async function timeScaling(bench: Bench, shape: Shape, rows: number): Promise<void> {
  const buffers = new Buffers(bench, { ...shape, n: 16 }, rows);
  const us = await timeOf(bench, [await bench.make.compile(buffers.scaling(rows))], 0);
  say(`${shape.name} ${rows} rows: row scales ${us.toFixed(1)} us`);
  buffers.free();
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    options: {
      small: { type: "boolean", default: false },
      shapes: { type: "string", default: "deepseek.gateUp,deepseek.down,qwen.gateUp,qwen.down" },
      tiles: { type: "string", default: "few" },
    },
    allowPositionals: true,
  });
  const gpu = await openGpu({ webgpu: "dawn" });
  say(`${gpu.info.adapter}, ${gpu.info.webgpu}, unit ${JSON.stringify(gpu.matrixUnit)}`);
  if (gpu.matrixUnit === undefined) return;
  const profiler = await openProfiler(gpu, { queries: 2 });
  const unit: MatrixUnit = gpu.matrixUnit;
  const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: Infinity };
  const rows = positionals.length > 0 ? positionals.map(Number) : [1, 8];
  const names = values.shapes.split(",");
  for (const shape of SHAPES.filter(({ name }) => names.includes(name))) {
    const cut = values.small ? { ...shape, ...SMALL } : shape;
    await timeShape(bench, cut, { rows, tiles: values.tiles });
    for (const count of rows) await timeScaling(bench, cut, count);
  }
}

if (import.meta.main) {
  await main();
  Deno.exit(0);
}

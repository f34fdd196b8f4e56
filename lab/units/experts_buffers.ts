/** For lab/units/experts.ts: buffers of the experts of a layer, and the plans of their matmuls. */
import { expertMatmul, expertTile, expertTiles, tileWords } from "../../kernels/experts/experts.ts";
import { expertTensor } from "../../kernels/experts/expert_tensor.ts";
import { tileWeights } from "../../kernels/experts/tile_weights.ts";
import { rowScales } from "../../kernels/matmul/tensor/row_scales.ts";
import { weightScales } from "../../kernels/matmul/tensor/weight_scales.ts";
import { fillParams, fillRandom } from "../../kernels/matmul/fill_random.ts";
import { storage } from "../../src/gpu/arena.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { lanesFor } from "../../src/gpu/weight_format.ts";
import { submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import type { ExpertTile } from "./experts_tiles.ts";
import type { Bench } from "./tensor_buffers.ts";

export interface Shape {
  readonly name: string;
  readonly numExperts: number;
  readonly topK: number;
  readonly n: number;
  readonly k: number;
  readonly epilogue: "store" | "swiglu";
}

const NOTHING = 0xffffffff;

/** Words of the tiles that kernels/experts/job_lists.wgsl lists, of `size` jobs each. */
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
export class ExpertBuffers {
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

  /** Converts the bf16 weights once to the format that matrix units take. */
  async scale(): Promise<void> {
    const { bench: { gpu: { device }, unit }, shape: { numExperts, n, k }, wScales: scales } = this;
    const weights = { buffer: this.weights.buffer };
    const tiles = { buffer: storage(device, "tiles", 2 * numExperts * n * k) };
    await this.run([
      tileWeights({ weights, scales, tiles }, { unit, rows: numExperts * n, cols: k }),
    ]);
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(tiles.buffer, 0, weights.buffer, 0, weights.buffer.size);
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    tiles.buffer.destroy();
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
      format: "bf16",
      rowOrder: "stacked",
      rows: numExperts * n,
      cols: k,
      shards,
      lanes: lanesFor("bf16", k, tuned.lanes),
    };
    const jobs = { rows, topK, numExperts };
    const lists = {
      experts: this.words(experts),
      tiles: { buffer: storage(gpu.device, "tiles", 4 * tileWords(jobs, tuned)) },
    };
    const perJob = epilogue === "store";
    const tiled = { ...jobs, tile: expertTile(jobs, matrix, tuned), tuning: tuned };
    this.simtTiles = expertTiles(lists, { ...tiled, matrix, label: "tiles" });
    return expertMatmul({ matrix, x, out, ...lists }, {
      ...tiled,
      epilogue,
      perJob,
      label: shape.name,
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
          unit: this.bench.unit,
          tile,
          matrix: { cols: k },
          expertRows: n,
          epilogue,
          shard: { operand: weights, first: 0, rows: numExperts * n },
          tiled: true,
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

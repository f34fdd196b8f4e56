import { fillParams, fillRandom } from "../kernels/matmul/fill_random.ts";
import { type Gpu, largestBinding } from "../src/gpu/device.ts";
import type { Operand } from "../src/gpu/kernel.ts";
import type { Matrix, RowOrder } from "../src/gpu/matrix.ts";
import { tuning } from "../src/gpu/tuning.ts";
import { lanesFor, scaleBytes, WEIGHT_BYTES, type WeightFormat } from "../src/gpu/weight_format.ts";
import { compiler, encode } from "../src/gpu/program.ts";
import { ScratchPool } from "../src/gpu/scratch_pool.ts";

/** Buffers of one case, all freed together. */
export interface Allocations extends Disposable {
  readonly gpu: Gpu;
  words(values: Uint32Array<ArrayBuffer>): Operand;
  /** `count` 4-byte elements, finite and all different: a GPU needs less power for zeros. */
  random(count: number): Operand;
  /** A matrix [rows, cols] with even `rows`, sharded if one binding cannot hold it. `rowOrder` defaults to stacked. */
  matrix(rows: number, cols: number, format: WeightFormat, rowOrder?: RowOrder): Matrix;
  /** Scratch memory for graphs. Its buffers are created when values need them. */
  scratch(): ScratchPool;
  /** Runs the dispatches that fill the buffers. */
  filled(): Promise<void>;
}

export function openAllocations(gpu: Gpu): Allocations {
  const { device } = gpu;
  const stack = new DisposableStack();
  const fills: ReturnType<typeof fillRandom>[] = [];
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  const createBuffer = (of: GPUBufferDescriptor) =>
    stack.adopt(device.createBuffer(of), (made) => made.destroy());
  const buffer = (size: number) => createBuffer({ label: "bench", size, usage });

  function words(values: Uint32Array<ArrayBuffer>): Operand {
    const made = buffer(Math.max(16, values.byteLength));
    device.queue.writeBuffer(made, 0, values);
    return { buffer: made };
  }

  function random(count: number): Operand {
    const out = { buffer: buffer(Math.max(16, count * 4)) };
    const params = words(fillParams({ seed: 1, stream: fills.length, std: 0.02 }));
    fills.push(fillRandom({ params, out }, "fill"));
    return out;
  }

  return {
    gpu,
    words,
    random,
    matrix: (rows, cols, format, rowOrder = "stacked") =>
      randomMatrix(gpu, { random, words }, { rows, cols, format, rowOrder }),
    scratch() {
      const pool = new ScratchPool({ ...gpu, device: { createBuffer } as GPUDevice }, "bench");
      pool.allocate();
      return pool;
    },
    async filled() {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      encode(pass, await compiler(gpu).compile(fills.splice(0)));
      pass.end();
      device.queue.submit([encoder.finish()]);
    },
    [Symbol.dispose]: () => stack.dispose(),
  };
}

/**
 * Different scales from `least` to twice `least`. Most are copies of the first period: computing each one would take
 * seconds, and a GPU that waits that long lowers its clocks.
 */
function groupScales(count: number, least: number): Float16Array<ArrayBuffer> {
  const period = 97;
  const halves = new Float16Array(count);
  for (let i = 0; i < Math.min(count, period); i++) halves[i] = least * (1 + i / period);
  for (let done = period; done < count; done *= 2) halves.copyWithin(done, 0, done);
  return halves;
}

/** The least f16 scale of a format. Formats without an entry get zeros as scales. */
const SCALES: Partial<Record<WeightFormat, number>> = { q8: 2 ** -12, q4: 2 ** -8 };

function randomMatrix(
  { limits, info }: Gpu,
  { random, words }: Pick<Allocations, "random" | "words">,
  { rows, cols, format, rowOrder }: Pick<Matrix, "rows" | "cols" | "format" | "rowOrder">,
): Matrix {
  const limit = largestBinding(limits);
  const rowBytes = cols * WEIGHT_BYTES[format];
  const most = Math.min(rows, 2 * Math.floor(limit / rowBytes / 2));
  const shards = Array.from({ length: Math.ceil(rows / most) }, (_, i) => {
    const own = Math.min(most, rows - i * most);
    const operand = random(own * rowBytes / 4);
    const scales = own * scaleBytes(format, cols) / 4;
    if (scales === 0) return { operand, first: i * most, rows: own };
    // Scales that make weights of about 0.02: with random scales the activations would overflow after some layers.
    const least = SCALES[format] ?? 0;
    const groups = words(new Uint32Array(groupScales(2 * scales, least).buffer));
    return { operand, first: i * most, rows: own, scales: groups };
  });
  const lanes = lanesFor(format, cols, tuning(info.software).lanes);
  return { format, rowOrder, rows, cols, lanes, shards };
}

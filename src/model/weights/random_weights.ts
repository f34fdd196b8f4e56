/** Weights of real shapes and no meaning (`--model random:FILE`), made on the GPU. */
import { fillParams, fillRandom } from "../../../kernels/matmul/fill_random.ts";
import type { Gpu } from "../../gpu/device.ts";
import { bytesOf, labelOf, type Operand, type Plan } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import { tuning } from "../../gpu/tuning.ts";
import {
  isQuantizable,
  isQuantized,
  lanesFor,
  type Quantization,
  type WeightFormat,
} from "../../gpu/weight_format.ts";
import { compiler, submit } from "../../gpu/program.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { Shape, WeightSource } from "./loader.ts";
import type { Quantizer } from "./quantizer.ts";
import { uploader, vectorBuffer, write } from "./upload.ts";
import { hash32 } from "../../speculate/noise.ts";

/** Weights that need tensor shapes only. Matrices are zeros until `fillAll`. */
export interface RandomWeights extends WeightSource {
  /** Fills all matrices made since the last call. */
  fillAll(): void;
}

interface RandomOptions {
  /** u32. The same seed gives the same weights wherever matrices are cut alike. */
  readonly seed: number;
  /** Numbers the shards' random streams; default 0, 1, 2, ... Models that share the counter get different weights. */
  readonly nextStream?: () => number;
  /**
   * Standard deviation of matrices; default 1 / sqrt(columns), which makes each output of a matrix
   * as large as the inputs. Norms (all ones) give every matrix inputs of size 1, so a layer adds
   * about 1 to the residual stream's variance, whatever its width: after 32 layers the stream is
   * near 6, attention scores and logits near 1, and softmax neither saturates nor overflows.
   * The usual 0.02 holds for 2500 columns and would be 2.4 times too large over 14336.
   */
  readonly std?: number;
  /** Quantizes matrices, if their width allows it. */
  readonly quantize?: { readonly to: Quantization; readonly quantizer: Quantizer };
}

/** A matrix to be filled, with the number of the random stream of each shard. */
interface Fill {
  readonly matrix: Matrix;
  readonly streams: readonly number[];
}

/** With the buffer of `fillParams`. */
type Filling = Fill & { readonly params: Operand };

/** Matrices are bf16, quantized if asked for, or MXFP4. Norms are ones, biases and sinks zeros. */
export function randomWeights(gpu: Gpu, options: RandomOptions): RandomWeights {
  const { seed, std, quantize, nextStream = counter() } = options;
  const fills: Fill[] = [];
  const { lanes } = tuning(gpu.info.software);

  function shapeOf<Format extends WeightFormat>(format: Format, cols: number): Shape<Format> {
    return { from: "bf16", format, cols, lanes: lanesFor(format, cols, lanes) };
  }

  /** The plan that fills `out` with the weights of a shard from row `row` on. */
  function fillRows(
    { matrix, streams, params }: Filling,
    shard: number,
    out: Operand,
    row: number,
  ): Plan {
    const { cols } = matrix;
    const fill = { seed, stream: streams[shard] ?? 0, std: std ?? 1 / Math.sqrt(cols) };
    gpu.device.queue.writeBuffer(params.buffer, 0, fillParams({ ...fill, first: row * cols / 2 }));
    return [fillRandom({ params, out }, labelOf(out))];
  }

  function fillQuantized(fill: Filling) {
    const { quantizer } = quantize as NonNullable<typeof quantize>;
    const rowBytes = 2 * fill.matrix.cols;
    const most = quantizer.rows(rowBytes);
    for (const [shard, { rows: all }] of fill.matrix.shards.entries()) {
      for (let shardRow = 0; shardRow < all; shardRow += most) {
        const rows = Math.min(most, all - shardRow);
        const out = { buffer: quantizer.staging, size: rows * rowBytes };
        const plan = fillRows(fill, shard, out, shardRow);
        quantizer.pack(fill.matrix, [{ shard, shardRow, rows }], "bf16", plan);
      }
    }
  }

  /** Fills in random codes, and one power of two as scale that comes nearest to the other matrices' deviation. */
  function fillMxfp4({ matrix: { cols, shards }, streams }: Fill) {
    const upload = uploader(gpu);
    const exponent = Math.round(127 + Math.log2((std ?? 1 / Math.sqrt(cols)) / E2M1_DEVIATION));
    for (const [i, { operand, scales }] of shards.entries()) {
      const codes = new Uint8Array(randomWords(hash32(seed, streams[i] ?? 0, 0)).buffer);
      fillWith(upload, operand, codes);
      if (scales) fillWith(upload, scales, new Uint8Array(codes.length).fill(exponent));
    }
  }

  return {
    matrixShape([tensor]) {
      const { shape: [, cols = 0], dtype } = tensor as TensorInfo;
      if (dtype === "GROUPED_MXFP4") return { ...shapeOf("mxfp4", cols), from: "mxfp4" };
      return shapeOf(quantize && isQuantizable(cols) ? quantize.to : "bf16", cols);
    },
    tableShape: ({ shape: [, cols = 0] }) => shapeOf("bf16", cols),
    fill(matrix) {
      fills.push({ matrix, streams: matrix.shards.map(nextStream) });
    },
    vector(out, tensors, _, factor = 1) {
      const added = tensors.every(({ name }) => /(bias|sinks)$/.test(name));
      write(gpu, out, new Float32Array(bytesOf(out) / 4).fill(added ? 0 : factor));
    },
    ids: (out, values) => write(gpu, out, values()),
    fillAll() {
      const { prepare } = compiler(gpu);
      const params = vectorBuffer(gpu, "fill.params", new Uint32Array(4));
      for (const { matrix, streams } of fills.splice(0)) {
        const fill = { matrix, streams, params };
        if (fill.matrix.format === "mxfp4") fillMxfp4(fill);
        else if (isQuantized(fill.matrix.format)) fillQuantized(fill);
        else {
          // One submission a shard: a whole model in one could outlast a driver's watchdog.
          for (const [shard, { operand }] of fill.matrix.shards.entries()) {
            submit(gpu, prepare(fillRows(fill, shard, operand, 0)));
          }
        }
      }
      params.buffer.destroy();
      gpu.check();
    },
  };
}

/** Standard deviation of e2m1 numbers if all codes are equally frequent. */
const E2M1_DEVIATION = 2.93;
const RANDOM_WORDS = 1 << 20;

/** Marsaglia's xorshift. */
function randomWords(seed: number): Uint32Array<ArrayBuffer> {
  let state = seed | 1;
  return new Uint32Array(RANDOM_WORDS).map(() => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  });
}

/** Repeats `part` over all of an operand. */
function fillWith(upload: ReturnType<typeof uploader>, to: Operand, part: Uint8Array): void {
  const size = bytesOf(to);
  for (let at = 0; at < size; at += part.length) {
    upload(to, at, part.subarray(0, Math.min(part.length, size - at)));
  }
}

/** 0, 1, 2, ... */
export function counter(): () => number {
  let next = 0;
  return () => next++;
}

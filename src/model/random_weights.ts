/** Weights of real shapes and no meaning (`--random-weights`), made on the GPU. */
import { fillParams, fillRandom } from "../../shaders/fill_random.ts";
import type { Gpu } from "../gpu/device.ts";
import type { Operand, Plan } from "../gpu/kernel.ts";
import {
  isQuantizable,
  isQuantized,
  lanesFor,
  type Matrix,
  type Quantization,
  tuning,
  WEIGHT_BYTES,
  type WeightFormat,
} from "../gpu/matrix.ts";
import { compiler, submit } from "../gpu/program.ts";
import type { TensorInfo } from "./checkpoint.ts";
import type { Quantizer } from "./quantizer.ts";
import { emptyMatrix, headHalves, type Layout, paired, stacked, wholeStacks } from "./shards.ts";
import { type Loader, vectorBuffer } from "./weights.ts";

/** A loader that needs tensor shapes only. Its matrices are zeros until `fill`. */
export interface RandomLoader extends Loader {
  /** Fills all matrices made since the last call. */
  fill(): void;
  /** A loader that goes on from here makes other weights than this one. */
  nextStream(): number;
}

interface RandomOptions {
  /** u32. The same seed gives the same weights wherever matrices are cut alike. */
  readonly seed: number;
  /** Number of the first shard's stream of weights; default 0. */
  readonly firstStream?: number;
  /**
   * Standard deviation of matrices; default 1 / sqrt(columns), which makes each output of a matrix
   * as large as the inputs. Norms (all ones) hand every matrix inputs of size 1, so a layer adds
   * about 1 to the residual stream's variance, whatever its width: after 32 layers the stream is
   * near 6, attention scores and logits near 1, and softmax neither saturates nor overflows.
   * The usual 0.02 holds for 2500 columns and would be 2.4 times too large over 14336.
   */
  readonly std?: number;
  /** What matrices become, where their width allows it. */
  readonly quantize?: { readonly to: Quantization; readonly quantizer: Quantizer };
}

/** A matrix to be filled, with the stream of each of its shards. */
interface Fill {
  readonly matrix: Matrix;
  readonly streams: readonly number[];
}

/** Opens a loader of bf16 matrices or of what they are quantized to, and of vectors of ones. */
export function randomLoader(gpu: Gpu, options: RandomOptions): RandomLoader {
  const { seed, std, quantize, firstStream = 0 } = options;
  const fills: Fill[] = [];
  const { lanes } = tuning(gpu.info.software);
  const params = vectorBuffer(gpu, "fill.params", new Uint32Array(4));
  let stream = firstStream;

  function build<Format extends WeightFormat>(
    label: string,
    { cols, format }: { readonly cols: number; readonly format: Format },
    { cuts }: Layout,
  ): Matrix & { readonly format: Format } {
    const shape = { cols, format, lanes: lanesFor(format, cols, lanes) };
    const matrix = { ...emptyMatrix(gpu, label, cuts, shape), format };
    fills.push({ matrix, streams: cuts.map(() => stream++) });
    return matrix;
  }

  function shapeOf({ shape: [, cols = 0] }: TensorInfo) {
    const format: WeightFormat = quantize && isQuantizable(cols) ? quantize.to : "bf16";
    return { format, cols, rowBytes: cols * WEIGHT_BYTES[format] };
  }

  /** The plan that fills `out` with the weights of a shard from row `row` on. */
  function fillRows({ matrix, streams }: Fill, shard: number, out: Operand, row: number): Plan {
    const { cols } = matrix;
    const fill = { seed, stream: streams[shard] ?? 0, std: std ?? 1 / Math.sqrt(cols) };
    gpu.device.queue.writeBuffer(params.buffer, 0, fillParams({ ...fill, first: row * cols / 2 }));
    return [fillRandom({ params, out }, matrix.shards[shard]?.operand.buffer.label ?? "fill")];
  }

  function fillQuantized(fill: Fill) {
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

  function ones(label: string, ...tensors: readonly TensorInfo[]) {
    const size = tensors.reduce((sum, { shape: [length = 0] }) => sum + length, 0);
    return vectorBuffer(gpu, label, new Float32Array(size).fill(1));
  }

  return {
    matrix(label, tensors) {
      const shape = shapeOf(tensors[0] as TensorInfo);
      return build(label, shape, stacked(gpu, tensors, shape.rowBytes));
    },
    pair(label, a, b) {
      const shape = shapeOf(a);
      return build(label, shape, paired(gpu, a, b, shape.rowBytes));
    },
    table(label, tensor) {
      const [, cols = 0] = tensor.shape;
      return build(label, { cols, format: "bf16" }, stacked(gpu, [tensor], 2 * cols));
    },
    heads(label, tensors, heads) {
      const shape = shapeOf(tensors.plain[0] as TensorInfo);
      return build(label, shape, headHalves(gpu, tensors, heads, shape.rowBytes));
    },
    experts(label, experts) {
      const shape = shapeOf(experts[0]?.[0] as TensorInfo);
      return build(label, shape, wholeStacks(gpu, experts, shape.rowBytes));
    },
    vector: ones,
    norm: (label, _offset, ...tensors) => ones(label, ...tensors),
    fill() {
      const { prepare } = compiler(gpu);
      for (const fill of fills.splice(0)) {
        if (isQuantized(fill.matrix.format)) fillQuantized(fill);
        else {
          // One submission a shard: a whole model in one could outlast a driver's watchdog.
          for (const [shard, { operand }] of fill.matrix.shards.entries()) {
            submit(gpu, prepare(fillRows(fill, shard, operand, 0)));
          }
        }
      }
      gpu.check();
    },
    nextStream: () => stream,
  };
}

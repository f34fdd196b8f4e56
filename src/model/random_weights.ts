/** Weights of real shapes and no meaning (`--random-weights`), made on the GPU. */
import { fillParams, fillRandom } from "../../shaders/fill_random.ts";
import type { Gpu } from "../gpu/device.ts";
import type { Plan } from "../gpu/kernel.ts";
import type { Matrix } from "../gpu/matrix.ts";
import { compiler, encode } from "../gpu/program.ts";
import type { TensorInfo } from "./checkpoint.ts";
import { emptyMatrix, type Layout, paired, stacked } from "./shards.ts";
import { type Loader, vectorBuffer } from "./weights.ts";

/** A loader that needs tensor shapes only. Its matrices are zeros until `fill`. */
export interface RandomLoader extends Loader {
  /** Fills all matrices made since the last call. */
  fill(): Promise<void>;
}

interface RandomOptions {
  /** u32. The same seed gives the same weights wherever matrices are cut alike. */
  readonly seed: number;
  /**
   * Standard deviation of matrices; default 1 / sqrt(columns), which makes each output of a matrix
   * as large as the inputs. Norms (all ones) hand every matrix inputs of size 1, so a layer adds
   * about 1 to the residual stream's variance, whatever its width: after 32 layers the stream is
   * near 6, attention scores and logits near 1, and softmax neither saturates nor overflows.
   * The usual 0.02 holds for 2500 columns and would be 2.4 times too large over 14336.
   */
  readonly std?: number;
}

/** Opens a loader of bf16 matrices, uniform around 0, and vectors of ones. */
export function randomLoader(gpu: Gpu, { seed, std }: RandomOptions): RandomLoader {
  const { compile } = compiler(gpu);
  const fills: { readonly plan: Plan; readonly params: GPUBuffer }[] = [];
  let stream = 0;

  function build(label: string, tensor: TensorInfo, { cuts }: Layout): Matrix {
    const cols = tensor.shape[1] as number;
    const matrix = emptyMatrix(gpu, label, cuts, { cols, format: "bf16" });
    for (const { operand: out } of matrix.shards) {
      const words = fillParams({ seed, stream: stream++, std: std ?? 1 / Math.sqrt(cols) });
      const params = vectorBuffer(gpu, "fill.params", words);
      fills.push({ plan: [fillRandom({ params, out }, label)], params: params.buffer });
    }
    return matrix;
  }

  return {
    matrix: (label, tensors) => build(label, tensors[0] as TensorInfo, stacked(gpu, tensors)),
    pair: (label, a, b) => build(label, a, paired(gpu, a, b)),
    vector: (label, { shape: [size = 0] }) =>
      vectorBuffer(gpu, label, new Float32Array(size).fill(1)),
    async fill() {
      for (const { plan, params } of fills.splice(0)) {
        const program = await compile(plan);
        const encoder = gpu.device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        encode(pass, program);
        pass.end();
        // One submission each: a whole model in one could outlast a driver's watchdog.
        gpu.device.queue.submit([encoder.finish()]);
        params.destroy();
      }
      gpu.check();
    },
  };
}

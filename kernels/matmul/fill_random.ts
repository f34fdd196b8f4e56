import {
  bytesOf,
  type Dispatch,
  dispatch,
  MAX_DISPATCHED,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const FILL = kernelOf("matmul/fill_random")({}, {
  name: "fill_random",
  bindings: ["params", "out"],
  constants: [],
});

const WORKGROUP = 256;

/**
 * The `params` of a fill.
 *
 * @param fill.seed u32; with `stream` it decides every weight.
 * @param fill.stream u32, another one for each buffer.
 * @param fill.std standard deviation of the weights.
 * @param fill.first word of the stream that `out` begins with; default 0.
 */
export function fillParams(
  fill: {
    readonly seed: number;
    readonly stream: number;
    readonly std: number;
    readonly first?: number;
  },
): Uint32Array<ArrayBuffer> {
  const words = Uint32Array.of(fill.seed, fill.stream, 0, fill.first ?? 0);
  new Float32Array(words.buffer)[2] = fill.std * Math.sqrt(3) / 65536;
  return words;
}

/** Records bf16 weights, pseudo-random and repeatable, into the whole of `out`. */
export function fillRandom(
  buffers: { readonly params: Operand; readonly out: Operand },
  label: string,
): Dispatch {
  const workgroups = Math.ceil(bytesOf(buffers.out) / 4 / WORKGROUP);
  const rows = Math.ceil(workgroups / MAX_DISPATCHED);
  return dispatch(FILL, {
    buffers,
    constants: {},
    workgroups: [Math.ceil(workgroups / rows), rows],
    label,
  });
}

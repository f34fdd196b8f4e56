/**
 * gpt-oss stores tensors of all experts of a layer, [experts, ..]. This presents them as matrices and vectors in which
 * each expert has consecutive rows. The tensors alone, not config.json, decide what they are:
 *
 *     X_blocks, X_scales  MXFP4: u8 [experts, out, in / 32, 16] and [experts, out, in / 32]
 *     X                   with X_bias beside it: [experts, in, out], transposed here
 *     X_bias              [experts, out]
 */
import { GROUP } from "../../../gpu/weight_format.ts";
import type { Checkpoint } from "../../files/checkpoint_type.ts";
import { DTYPE_BYTES, type TensorInfo } from "../../files/safetensors.ts";
import { badTensor } from "./groups.ts";
import { checkShape, rowWords } from "./modules.ts";

const STACK = /^(.*\.experts\.(?:gate_up_proj|down_proj))(_blocks|_scales|_bias|)$/;

/** Fills `into` with bytes of the rows of a view, from byte `offset` on. */
type ReadBytes = (offset: number, into: Uint8Array) => void;

interface View {
  readonly tensor: TensorInfo;
  readonly read: ReadBytes;
}

/** The checkpoint with its stacks of experts as such matrices. @throws UsageError if tensors do not fit together. */
export function expertStacks(checkpoint: Checkpoint): Checkpoint {
  const views = new Map<string, View>();
  const tensors = new Map<string, TensorInfo>();
  for (const [name, tensor] of checkpoint.tensors) {
    const [, stack = "", part] = STACK.exec(name) ?? [];
    if (part === undefined) tensors.set(name, tensor);
    else if (part === "_bias") tensors.set(name, flattened(tensor));
    else if (part !== "_scales") {
      const view = part === "_blocks"
        ? blocksView(checkpoint, stack, tensor)
        : transposedView(checkpoint, tensor);
      if (view) views.set(stack, view);
      tensors.set(stack, view?.tensor ?? tensor);
    }
  }
  if (views.size === 0) return checkpoint;
  return {
    ...checkpoint,
    tensors,
    read(tensor, offset, into) {
      const view = views.get(tensor.name);
      if (view === undefined) return checkpoint.read(tensor, offset, into);
      view.read(tensor.begin + offset, into);
    },
    [Symbol.dispose]: () => checkpoint[Symbol.dispose](),
  };
}

function flattened(tensor: TensorInfo): TensorInfo {
  return { ...tensor, shape: [tensor.shape.reduce((product, size) => product * size, 1)] };
}

/** MXFP4 as `ReadRows` fills it: a row of blocks, then for each block its scale, an f32 power of two. */
function blocksView(from: Checkpoint, name: string, blocks: TensorInfo): View {
  const [experts = 0, out = 0, groups = 0] = blocks.shape;
  const scales = from.tensors.get(`${name}_scales`);
  if (scales === undefined) throw badTensor(from, blocks, "has no scales");
  checkShape(from, blocks, [experts, out, groups, GROUP / 2]);
  checkShape(from, scales, [experts, out, groups]);
  for (const tensor of [blocks, scales]) {
    if (tensor.dtypeName === "U8") continue;
    throw badTensor(from, tensor, `has dtype ${tensor.dtypeName}, expected U8`);
  }
  if (out * groups % 4 !== 0) {
    throw badTensor(
      from,
      scales,
      `has ${out * groups} scales of an expert, expected a multiple of 4`,
    );
  }
  const [rows, cols] = [experts * out, groups * GROUP];
  const { weights, all } = rowWords({ format: "mxfp4", cols });
  const { file } = blocks;
  return {
    tensor: {
      name,
      dtype: "GROUPED_MXFP4",
      dtypeName: "MXFP4",
      shape: [rows, cols],
      file,
      begin: 0,
      size: 4 * rows * all,
    },
    read(offset, into) {
      const [first, count] = [offset / (4 * all), into.length / (4 * all)];
      const numbers = new Uint32Array(count * weights);
      from.read(blocks, first * weights * 4, new Uint8Array(numbers.buffer));
      const exponents = new Uint8Array(count * groups);
      from.read(scales, first * groups, exponents);
      const words = new Uint32Array(count * all);
      let largest = 0;
      for (let row = 0; row < count; row++) {
        words.set(numbers.subarray(row * weights, (row + 1) * weights), row * all);
        for (let group = 0; group < groups; group++) {
          const exponent = exponents[row * groups + group] ?? 0;
          if (exponent > largest) largest = exponent;
          words[row * all + weights + group] = powerBits(exponent);
        }
      }
      // The kernels compute 2^14 times the scale, which would overflow for a larger one.
      if (largest > 240) throw badTensor(from, scales, "has a scale above 2^113");
      into.set(new Uint8Array(words.buffer));
    },
  };
}

/** f32 bits of 2^(exponent - 127); the smallest is subnormal. */
function powerBits(exponent: number): number {
  return exponent === 0 ? 1 << 22 : exponent << 23;
}

/** A transposed view with one row per output of all experts; undefined if the tensor is stored that way. */
function transposedView(from: Checkpoint, stored: TensorInfo): View | undefined {
  const { name, shape, dtype, file } = stored;
  const [experts = 0, width = 0, out = 0] = shape;
  if (shape.length !== 3 || !from.tensors.has(`${name}_bias`)) return undefined;
  const bytes = DTYPE_BYTES[dtype];
  if (bytes !== 2 && bytes !== 4) return undefined;
  const size = out * width * bytes;
  const Numbers = bytes === 2 ? Uint16Array : Uint32Array;
  /** The expert that was read last; kept because its rows are read one after the other. */
  let last: { readonly expert: number; readonly rows: Uint8Array } | undefined;
  const rowsOf = (expert: number): Uint8Array => {
    if (last?.expert === expert) return last.rows;
    const columns = new Uint8Array(size);
    from.read(stored, expert * size, columns);
    const source = new Numbers(columns.buffer);
    const rows = new Numbers(source.length);
    for (let k = 0; k < width; k++) {
      for (let n = 0; n < out; n++) rows[n * width + k] = source[k * out + n] ?? 0;
    }
    last = { expert, rows: new Uint8Array(rows.buffer) };
    return last.rows;
  };
  return {
    tensor: { ...stored, shape: [experts * out, width], file, begin: 0 },
    read(offset, into) {
      for (let done = 0; done < into.length;) {
        const [expert, at] = [Math.floor((offset + done) / size), (offset + done) % size];
        const part = rowsOf(expert).subarray(at, at + into.length - done);
        into.set(part, done);
        done += part.length;
      }
    },
  };
}

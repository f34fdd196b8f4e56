/** Turns tensors into weights on the GPU: shapes are decided here, bytes come from a source, memory from an arena. */
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import {
  type FloatFormat,
  isPrequantized,
  type Prequantized,
  type Quantization,
  WEIGHT_BYTES,
  type WeightFormat,
} from "../../gpu/weight_format.ts";
import type { Arena } from "../../gpu/arena.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import {
  emptyMatrix,
  gateUp,
  headHalves,
  type HeadShape,
  type HeadTensors,
  type Layout,
  type Segment,
  shardRows,
  stacked,
  wholeStacks,
} from "./shards.ts";

/** Makes weights on the GPU from the tensors of one checkpoint. */
export interface Loader {
  /**
   * Stacks tensors of equal width by rows into one matrix, quantized if asked for; float32 if they have
   * different types.
   */
  matrix(label: string, tensors: readonly TensorInfo[]): Matrix;
  /** Stacks two tensors in the row order gate_up. */
  pair(label: string, a: TensorInfo, b: TensorInfo): Matrix;
  /**
   * A matrix to look up rows in; never quantized. Tensors of equal width are stacked by rows, as float32 if they have
   * different types.
   */
  table(label: string, tensor: TensorInfo, ...others: readonly TensorInfo[]): Table;
  /** Stacks tensors of heads (q, k and v) in the row order rope_halves. */
  heads(label: string, tensors: HeadTensors, shape: HeadShape): Matrix;
  /**
   * Whether tensors can be stacked to one matrix of experts in one binding, rows being counted in the width of
   * the first. They must have one format, not that of a quantized checkpoint, and lanes must share outputs.
   */
  stackable(tensors: readonly TensorInfo[]): boolean;
  /** Whether tensors have one type, which `matrix` then keeps. */
  alike(tensors: readonly TensorInfo[]): boolean;
  /** Stacks experts, each of them several tensors stacked by rows. A shard has whole experts. */
  experts(label: string, experts: readonly (readonly TensorInfo[])[]): Matrix;
  /** Concatenates vectors, widened to f32. */
  vector(label: string, ...tensors: readonly TensorInfo[]): Operand;
  /** Like `vector`, with `offset` added to each element: weights of norms. */
  norm(label: string, offset: number, ...tensors: readonly TensorInfo[]): Operand;
  /** A vector with each element multiplied by `factor`. */
  scaled(label: string, factor: number, tensor: TensorInfo): Operand;
  /** A vector that repeats each of the numbers `times` times, f32. */
  constants(label: string, numbers: readonly number[], times: number): Operand;
  /** `count` token ids or their offsets, i32. `values` is called only if the source writes to real memory. */
  ids(label: string, count: number, values: () => Int32Array<ArrayBuffer>): Operand;
}

/** How checkpoints store weights. */
export type StoredFormat = FloatFormat | Prequantized | Quantization;

/** The stored format of tensors, and the format and layout they get on the GPU. */
export interface Shape<Format extends WeightFormat = WeightFormat> {
  readonly from: StoredFormat;
  readonly format: Format;
  readonly cols: number;
  readonly lanes: number;
}

/** Where weights come from. */
export interface WeightSource {
  /** @throws UsageError if the tensors differ in width, or have a type that weights cannot have. */
  matrixShape(tensors: readonly TensorInfo[]): Shape;
  tableShape(tensor: TensorInfo, ...others: readonly TensorInfo[]): Shape<FloatFormat>;
  /** Writes the tensors' rows into a matrix that is filled with zeros. */
  fill(matrix: Matrix, segments: readonly Segment[], from: Shape["from"]): void;
  /** Writes the vectors as f32, each element times `factor` plus `offset`. */
  vector(out: Operand, tensors: readonly TensorInfo[], offset: number, factor?: number): void;
  ids(out: Operand, values: () => Int32Array<ArrayBuffer>): void;
}

/** The part of a source that decides the shapes of weights on the GPU. */
export type WeightShapes = Pick<WeightSource, "matrixShape" | "tableShape">;

/** A source with the same shapes that writes nothing: for an arena that only measures. */
export function shapesAlone({ matrixShape, tableShape }: WeightShapes): WeightSource {
  return { matrixShape, tableShape, fill: () => {}, vector: () => {}, ids: () => {} };
}

/** Opens a loader. */
export function loader(
  gpu: Pick<Gpu, "limits">,
  source: WeightSource,
  arena: Arena,
): Loader {
  function build<Format extends WeightFormat>(
    label: string,
    { from, ...shape }: Shape<Format>,
    layoutOf: (rowBytes: number) => Layout,
  ): Matrix & { readonly format: Format } {
    const { rowOrder, cuts, segments } = layoutOf(shape.cols * WEIGHT_BYTES[shape.format]);
    const matrix = emptyMatrix(arena, label, cuts, { ...shape, rowOrder });
    source.fill(matrix, segments, from);
    return matrix;
  }

  function vector(
    label: string,
    tensors: readonly TensorInfo[],
    offset: number,
    factor?: number,
  ): Operand {
    const count = tensors.reduce((sum, { shape: [length = 0] }) => sum + length, 0);
    const out = arena.allocate(label, vectorBytes(count));
    source.vector(out, tensors, offset, factor);
    return out;
  }

  return {
    matrix: (label, tensors) =>
      build(label, source.matrixShape(tensors), (bytes) => stacked(gpu, tensors, bytes)),
    pair: (label, a, b) =>
      build(label, source.matrixShape([a, b]), (bytes) => gateUp(gpu, a, b, bytes)),
    table: (label, tensor, ...others) =>
      build(
        label,
        source.tableShape(tensor, ...others),
        (bytes) => stacked(gpu, [tensor, ...others], bytes),
      ),
    heads(label, tensors, heads) {
      const shape = source.matrixShape([...tensors.turned, ...tensors.plain]);
      return build(label, shape, (bytes) => headHalves(gpu, tensors, heads, bytes));
    },
    stackable(tensors) {
      const [first, ...others] = tensors.map((tensor) => source.matrixShape([tensor]));
      if (!first || first.lanes === 1 || isPrequantized(first.from)) return false;
      const alike = others.every(({ from, format }) =>
        from === first.from && format === first.format
      );
      const rows = tensors.reduce((sum, { shape: [rows = 0, cols = 0] }) => sum + rows * cols, 0) /
        first.cols;
      return alike && rows <= shardRows(gpu, first.cols * WEIGHT_BYTES[first.format]);
    },
    alike: (tensors) => new Set(tensors.map((each) => source.matrixShape([each]).from)).size === 1,
    experts: (label, experts) =>
      build(label, source.matrixShape(experts.flat()), (bytes) => wholeStacks(gpu, experts, bytes)),
    vector: (label, ...tensors) => vector(label, tensors, 0),
    norm: (label, offset, ...tensors) => vector(label, tensors, offset),
    scaled: (label, factor, tensor) => vector(label, [tensor], 0, factor),
    constants(label, numbers, times) {
      const out = arena.allocate(label, vectorBytes(numbers.length * times));
      const values = numbers.flatMap((number) => Array<number>(times).fill(number));
      source.ids(out, () => new Int32Array(Float32Array.from(values).buffer));
      return out;
    },
    ids(label, count, values) {
      const out = arena.allocate(label, vectorBytes(count));
      source.ids(out, values);
      return out;
    },
  };
}

/** Bytes of a vector of 4-byte elements; at least 16, because a binding must hold at least one vec4. */
export function vectorBytes(count: number): number {
  return Math.max(16, count * 4);
}

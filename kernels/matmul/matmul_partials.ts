import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { PARTIAL_WORDS, type PartialKind } from "../lib/partial.ts";
import { tensorShards } from "./tensor/common.ts";
import { type Epilogue, matmul } from "./matmul.ts";
import type { Prologue } from "./prologue/prologue.ts";
import { columnWorkgroups, matmulShape, residentShape } from "./matmul_shape.ts";

/** What the number of partial results depends on beside the matrix. */
interface Use {
  /** Rows of x. */
  readonly rows: number;
  readonly tuning: Tuning;
  /** As `matmul` takes it. */
  readonly prologue?: Prologue | undefined;
}

/**
 * Whether a matmul can store partial results instead of its outputs: the kernel must add the sums of several lanes, for
 * all columns of a workgroup at once. Software adapters have few lanes to look through the outputs; matrix units store
 * all outputs.
 */
export function canStorePartials(matrix: Matrix, { software, pairs, tensor }: Tuning): boolean {
  return !software && matrix.lanes > 1 && pairs === 2 && !tensorShards(matrix, tensor);
}

/** Partial results of each row: one for every part of the columns, which is two pairs of every group of a workgroup. */
export function matmulPartialCount(matrix: Matrix, use: Use): number {
  return countBefore(matrix, use, matrix.shards.length);
}

/**
 * Records the partial results of each row of x W^T over the first `vocab` columns: one dispatch per shard. See
 * `canStorePartials`.
 */
export function matmulPartials(
  { matrix, x, partials }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** u32 [rows, matmulPartialCount, PARTIAL_WORDS[kind]] */
    readonly partials: Operand;
  },
  shape: Use & { readonly kind: PartialKind; readonly vocab: number; readonly label: string },
): Dispatch[] {
  const { kind, vocab, prologue, ...use } = shape;
  const count = matmulPartialCount(matrix, shape);
  return matrix.shards.flatMap((shard, i) => {
    const first = countBefore(matrix, shape, i);
    const epilogue = partialEpilogue(matrix, { kind, vocab, count, first });
    return matmul({ matrix: { ...matrix, shards: [shard] }, x, out: partials }, {
      ...use,
      ...prologue && { prologue },
      epilogue,
    });
  });
}

/** The epilogue that stores the partial results of one shard, from number `first` of the `count` of each row. */
export function partialEpilogue(
  { rows }: Matrix,
  { kind, vocab, count, first }: {
    readonly kind: PartialKind;
    readonly vocab: number;
    readonly count: number;
    readonly first: number;
  },
): Epilogue {
  const words = PARTIAL_WORDS[kind];
  return {
    name: kind,
    parameters: { epilogue: "partial", partial: kind, PARTIAL_PAIRS: words / 2 },
    out: "partials",
    buffers: {},
    constants: { VOCAB: vocab, FIRST_PARTIAL: first },
    outShare: count / rows,
    moved: words * count / rows,
  };
}

/** Partial results of a row that the first `shards` shards make. */
function countBefore(matrix: Matrix, { rows, tuning, prologue }: Use, shards: number): number {
  const shapeOf = prologue ? residentShape : matmulShape;
  const launch = shapeOf(matrix, { rows, splitK: 1, tuning, partial: true });
  return matrix.shards.slice(0, shards)
    .reduce((sum, shard) => sum + columnWorkgroups(shard, launch) * launch.pairs / 2, 0);
}

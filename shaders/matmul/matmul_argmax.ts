import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix, Tuning } from "../../src/gpu/matrix.ts";
import { type Epilogue, matmul } from "./matmul.ts";
import { columnWorkgroups, matmulShape } from "./matmul_shape.ts";

/** What the number of partial argmaxes depends on beside the matrix. */
interface Use {
  /** Of x. */
  readonly rows: number;
  readonly tuning: Tuning;
}

/**
 * Whether a matmul can store partial argmaxes instead of its outputs: where lanes are added, all columns of a
 * workgroup at once. Software adapters have few lanes to look through the outputs.
 */
export function canStoreArgmax({ lanes }: Matrix, { software, pairs }: Tuning): boolean {
  return !software && lanes > 1 && pairs === 2;
}

/** Partial argmaxes that each row has: one of every part of the columns, two pairs of a workgroup's groups. */
export function matmulArgmaxCount(matrix: Matrix, use: Use): number {
  return countBefore(matrix, use, matrix.shards.length);
}

/** Words that the partial argmaxes take of any number of rows up to `rows`. */
export function matmulArgmaxWords(matrix: Matrix, { rows: most, tuning }: Use): number {
  const counts = Array.from({ length: most }, (_, i) => i + 1);
  return Math.max(...counts.map((rows) => 2 * rows * matmulArgmaxCount(matrix, { rows, tuning })));
}

/**
 * Records the partial argmaxes of the columns of x W^T, of each row over the first `vocab` columns: a dispatch a
 * shard. See `canStoreArgmax`.
 */
export function matmulArgmax(
  { matrix, x, partials }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** (key, token) u32, [rows, matmulArgmaxCount, 2] */
    readonly partials: Operand;
  },
  shape: Use & { readonly vocab: number; readonly label: string },
): Dispatch[] {
  const { vocab, ...use } = shape;
  const count = matmulArgmaxCount(matrix, use);
  return matrix.shards.flatMap((shard, i) => {
    const epilogue = argmaxEpilogue(matrix, { vocab, count, first: countBefore(matrix, use, i) });
    return matmul({ matrix: { ...matrix, shards: [shard] }, x, out: partials }, {
      ...use,
      epilogue,
    });
  });
}

/** Stores `count` partial argmaxes a row, those of this shard from `first` on. */
export function argmaxEpilogue(
  { rows }: Matrix,
  { vocab, count, first }: {
    readonly vocab: number;
    readonly count: number;
    readonly first: number;
  },
): Epilogue {
  return {
    name: "argmax",
    slots: { epilogue: "matmul/epilogue/argmax", out: "matmul/out_argmax" },
    buffers: {},
    constants: { VOCAB: vocab, FIRST_PARTIAL: first },
    outShare: count / rows,
    moved: 2 * count / rows,
  };
}

/** Partial argmaxes of a row that the first `shards` shards make. */
function countBefore(matrix: Matrix, { rows, tuning }: Use, shards: number): number {
  const launch = matmulShape(matrix, { rows, splitK: 1, tuning });
  return matrix.shards.slice(0, shards)
    .reduce((sum, shard) => sum + columnWorkgroups(shard, launch) * launch.pairs / 2, 0);
}

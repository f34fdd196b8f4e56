/** For tensors whose rows are not in the order of the loaded matrix: runs of rows, each treated as a tensor. */
import type { DeltaNet, HeadAttention } from "../config/layer_config.ts";

/** Runs of rows of one tensor, in the order of the loaded matrix. */
export interface RowRuns {
  /** Rows of the tensor. */
  readonly of: number;
  /** First row and how many. */
  readonly runs: readonly (readonly [first: number, rows: number])[];
}

/** Whether queries, keys and their norms have to be loaded in runs of rows instead of whole tensors. */
export function hasRuns({ turned, gateInQuery = false }: HeadAttention): boolean {
  return turned !== undefined || gateInQuery;
}

/** Rows of q_proj that are queries. With `gateInQuery` each head's queries are followed by its gate. */
export function queryRuns(spec: HeadAttention): RowRuns {
  const { numHeads, headDim, gateInQuery } = spec;
  return headRuns(spec, numHeads, gateInQuery ? 2 * headDim : headDim);
}

export function keyRuns(spec: HeadAttention): RowRuns {
  return headRuns(spec, spec.numKvHeads, spec.headDim);
}

/** Weights of a head's norm, in the order of the head's rows. */
export function normRuns(spec: HeadAttention): RowRuns {
  return headRuns(spec, 1, spec.headDim);
}

/** Rows of q_proj that are gates. */
export function gateRuns({ numHeads, headDim }: HeadAttention): RowRuns {
  const runs = Array.from({ length: numHeads }, (_, head) => {
    return [(2 * head + 1) * headDim, headDim] as const;
  });
  return { of: 2 * numHeads * headDim, runs };
}

/**
 * Runs for heads of `stride` rows each, of which the first `headDim` are the head's. A partial rope rotates the first
 * `turned` numbers in pairs (i, i + turned / 2). Each half of a loaded head begins with one half of these, so that a
 * pair is half a head apart. q and k are reordered alike, so their dot product stays the same.
 */
function headRuns({ headDim, turned = headDim }: HeadAttention, heads: number, stride: number) {
  const [half, rest] = [turned / 2, (headDim - turned) / 2];
  const ofHead = [[0, half], [turned, rest], [half, half], [turned + rest, rest]] as const;
  const runs = Array.from(
    { length: heads },
    (_, head) => ofHead.map(([first, rows]) => [head * stride + first, rows] as const),
  ).flat();
  const joined = turned === headDim
    ? Array.from({ length: heads }, (_, head) => [head * stride, headDim] as const)
    : runs;
  return { of: heads * stride, runs: joined };
}

/** Rows of Qwen3-Next's in_proj_qkvz: q, k, v and z of a head of keys together. */
export function qkvzRuns({ keyHeads, valueHeads, keyDim, valueDim }: DeltaNet): RowRuns {
  const values = valueHeads / keyHeads * valueDim;
  return interleaved(keyHeads, [keyDim, keyDim, values, values]);
}

/** Rows of its in_proj_ba: b and a of a head of keys together. */
export function ratesRuns({ keyHeads, valueHeads }: DeltaNet): RowRuns {
  const each = valueHeads / keyHeads;
  return interleaved(keyHeads, [each, each]);
}

/** Runs that reorder a tensor stored head by head: part 0 of all heads, then part 1 of all heads, and so on. */
function interleaved(heads: number, parts: readonly number[]): RowRuns {
  const stride = parts.reduce((sum, rows) => sum + rows, 0);
  const runs = parts.flatMap((rows, part) => {
    const first = parts.slice(0, part).reduce((sum, before) => sum + before, 0);
    return Array.from({ length: heads }, (_, head) => [head * stride + first, rows] as const);
  });
  return { of: heads * stride, runs };
}

/** The two norms that an EAGLE-3 draft begins with, in one dispatch. */
import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { FloatFormat, Table } from "../../src/gpu/matrix.ts";
import { foldCounts } from "../fragments/workgroup.ts";
import { shader } from "../shader.ts";
import { normLanes, type NormShape } from "./rms_norm.ts";

interface Variant {
  readonly format: FloatFormat;
  readonly indexed: boolean;
  readonly normed: boolean;
  readonly cols: number;
  readonly lanes: number;
}

const kernels = new Map<string, Kernel>();

function pairKernel({ format, indexed, normed, cols, lanes }: Variant): Kernel {
  const each = Math.ceil(cols / 8 / lanes);
  const kinds = [format, indexed ? "index" : "rows", normed ? "output" : "input"];
  const name = `norm_pair_${kinds.join("_")}_${lanes}x${each}`;
  return kernels.getOrInsertComputed(name, () => {
    const [INDEXED, KEEPS_NORMED] = [Number(indexed), Number(normed)];
    const code = shader("norm/norm_pair", {
      slots: { weights: `weights/weights_${format}` },
      counts: {
        ...{ EACH: each, INDEXED, ALL: 1 - INDEXED },
        ...{ KEEPS_NORMED, KEEPS_INPUT: 1 - KEEPS_NORMED, ...foldCounts(lanes) },
      },
    });
    const hidden = ["x", "hidden_weight", "kept", ...indexed ? ["index"] : []];
    return kernel(name, code, {
      bindings: ["weights", "token_weight", "out", "rows", ...hidden],
      constants: ["COLS", "EPS", "LANES", "TOKENS"],
    });
  });
}

/** Whether `normPair` takes tokens of this embedding: it is in one binding. */
export function pairsNorms({ shards }: Table): boolean {
  return shards.length === 1;
}

/**
 * Records out[r] = [norm(E[token of r]) weight, norm(h of r) weight], [rows, 2 cols], with the bits of two
 * `rmsNorm`; see `pairsNorms`.
 */
export function normPair(
  { token, hidden, out, kept }: {
    readonly token: { readonly matrix: Table; readonly rows: Operand; readonly weight: Operand };
    /** x is [.., cols]; `index` names its row for each r, 0xffffffff for none; absent: row r. */
    readonly hidden: {
      readonly x: Operand;
      readonly index?: Operand | undefined;
      readonly weight: Operand;
    };
    readonly out: Operand;
    /** [rows, cols]: h as it is, or normed. */
    readonly kept: { readonly what: "input" | "output"; readonly out: Operand };
  },
  shape: Pick<NormShape, "rows" | "cols" | "eps" | "lanes" | "label">,
): Dispatch {
  const { rows, cols, eps, label } = shape;
  const { matrix: { format, shards: [shard] }, rows: list, weight: token_weight } = token;
  if (!shard) throw new Error(`${label}: an embedding without rows`);
  const { x, index, weight: hidden_weight } = hidden;
  const lanes = normLanes(shape);
  const normed = kept.what === "output";
  return dispatch(pairKernel({ format, indexed: index !== undefined, normed, cols, lanes }), {
    buffers: {
      ...{ weights: shard.operand, token_weight, out, rows: list, x, hidden_weight },
      ...{ kept: kept.out, ...index ? { index } : {} },
    },
    constants: { COLS: cols, EPS: eps, LANES: lanes, TOKENS: shard.rows },
    workgroups: [rows, 2],
    label,
    work: { bytes: (4 * 5 + 2) * rows * cols + 8 * cols, flops: 8 * rows * cols },
  });
}

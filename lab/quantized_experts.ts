/** Experts of many rows, for lab/quantized_rows.ts. */
import { expertEpilogue, expertKernel, sharedRows } from "../kernels/experts/expert_kernels.ts";
import type { ExpertShape } from "../kernels/experts/expert_shape.ts";
import { maxTiles } from "../kernels/experts/job_lists.ts";
import { storage } from "../src/gpu/arena.ts";
import type { Gpu } from "../src/gpu/device.ts";
import { type Dispatch, dispatch, type Operand } from "../src/gpu/kernel.ts";
import type { Matrix } from "../src/gpu/matrix.ts";
import { shuffled } from "../tests/gpu/numbers.ts";
import { jobLists } from "./job_lists.ts";

export interface Mixture {
  readonly experts: number;
  readonly topK: number;
  readonly epilogue: "swiglu" | "store";
}

/** Buffer of the job lists for rows that choose their experts independently. */
export function lists(
  { device }: Gpu,
  { experts: numExperts, topK }: Mixture,
  { rows, tile }: { readonly rows: number; readonly tile: number },
): Operand {
  const experts = Array.from(
    { length: rows },
    (_, row) => [...shuffled(numExperts, 1000 + row).slice(0, topK)],
  ).flat();
  const words = jobLists(experts, { rows, topK, numExperts, tile });
  const buffer = storage(device, "tiles", words.byteLength);
  device.queue.writeBuffer(buffer, 0, words);
  return { buffer };
}

export function expertDispatch(
  matrix: Matrix,
  { x, out, tiles }: { readonly x: Operand; readonly out: Operand; readonly tiles: Operand },
  { shape, mixture, rows }: {
    readonly shape: ExpertShape;
    readonly mixture: Mixture;
    readonly rows: number;
  },
): Dispatch {
  const { experts: numExperts, topK } = mixture;
  const epilogue = expertEpilogue(mixture.epilogue);
  const { cols, lanes } = matrix;
  const expertRows = matrix.rows / numExperts;
  const shard = matrix.shards[0]!;
  return dispatch(expertKernel(matrix, epilogue, { ...shape, lanes }, "tiled"), {
    buffers: {
      weights: shard.operand,
      x,
      out,
      tiles,
      ...shard.scales ? { scales: shard.scales } : {},
    },
    constants: {
      COLS: cols,
      MATRIX_ROWS: expertRows,
      FIRST_EXPERT: 0,
      SHARD_EXPERTS: numExperts,
      ...sharedRows(numExperts, expertRows / 2, { epilogue }),
      ROW_JOBS: mixture.epilogue === "swiglu" ? topK : 1,
      OUT_COLS: expertRows * epilogue.outShare,
      LANES: lanes,
      GROUPS: shape.groups,
    },
    workgroups: [
      maxTiles({ rows, topK, numExperts }, shape.tile),
      Math.ceil(expertRows / 2 / shape.pairs / shape.groups),
    ],
    label: "experts",
  });
}

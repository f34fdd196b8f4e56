// What graphs of a layer on paper need.
import type { Operand } from "../../src/gpu/kernel.ts";
import type { Matrix, RowOrder } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { DecoderContext } from "../../src/model/graph/context.ts";
import { ScratchPool } from "../../src/gpu/scratch_pool.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { paperGpu } from "../gpu/paper.ts";

/** An operand that has room for everything. */
export const LARGE: Operand = { buffer: { size: 2 ** 30 } as GPUBuffer };

/** A bf16 matrix without numbers. */
export function matrix(rows: number, cols: number, rowOrder: RowOrder = "stacked"): Matrix {
  return {
    format: "bf16",
    rowOrder,
    rows,
    cols,
    lanes: 16,
    shards: [{ operand: LARGE, first: 0, rows }],
  };
}

/** The context of a model of such a width, whose slots have so many cells at most. */
export function contextOf(
  { hidden, cells, rows = 8, tuning }: {
    readonly hidden: number;
    readonly cells: number;
    readonly rows?: number;
    readonly tuning: Tuning;
  },
): DecoderContext {
  return {
    config: { hiddenSize: hidden, rmsNormEps: 1e-6, residualScale: 1 } as DecoderContext["config"],
    tuning,
    ropes: [LARGE],
    pages: LARGE,
    tablePages: cells / PAGE,
    kvDtype: "f32",
    widestRows: rows,
    scratch: new ScratchPool(paperGpu({ software: false }), "scratch"),
    handoff: { act: LARGE, heads: LARGE },
  };
}

/** Matmuls as dispatches, with what they do to their inputs and outputs. */
import { splitsOf } from "../../../../kernels/attention/splits.ts";
import {
  biasEpilogue,
  capEpilogue,
  gatedByEpilogue,
  scaledEpilogue,
  scaleEpilogue,
} from "../../../../kernels/lib/epilogue.ts";
import { from } from "../../../../kernels/lib/row_blocks.ts";
import { GATES } from "../../../../kernels/lib/gate.ts";
import { type Epilogue, matmul, type PlainEpilogue } from "../../../../kernels/matmul/matmul.ts";
import { matmulPartialCount, matmulPartials } from "../../../../kernels/matmul/matmul_partials.ts";
import {
  combinedHeads,
  gatedHeads,
  normedRows,
  type NormOfRows,
  type Prologue,
} from "../../../../kernels/matmul/prologue/prologue.ts";
import { QKV_BUFFERS, qkvEpilogue } from "../../../../kernels/matmul/qkv.ts";
import { normLanes } from "../../../../kernels/norm/rms_norm.ts";
import type { Dispatch } from "../../../gpu/kernel.ts";
import type { MatmulEpilogue, MatmulOp, MatmulPrologue, OpOf } from "../ops.ts";
import { type Emitting, gatesOf, missing, type Placing, scalesOf } from "./emitting.ts";

export function emitMatmul(to: Emitting, op: OpOf<"matmul">): Dispatch[] {
  const { context, at } = to;
  const { x, matrix, out, epilogue, xScales, xIsF16, onUnits, label } = op;
  const tuning = onUnits ? context.tuning : { ...context.tuning, tensor: undefined };
  const prologue = op.prologue && prologueOf(to, op, op.prologue);
  const launch = { rows: x.rows, tuning, label, ...prologue && { prologue } };
  if (epilogue.of === "partials") {
    const { choice: kind, vocab } = epilogue;
    to.partials.set(out, matmulPartialCount(matrix, { rows: x.rows, tuning, prologue }));
    return matmulPartials({ matrix, x: at(x), partials: at(out) }, { ...launch, kind, vocab });
  }
  return matmul(
    { matrix, x: at(x), xScales: scalesOf(context, xScales), xIsF16, out: at(out) },
    { ...launch, epilogue: epilogueOf(to, op), splitK: out.parts },
  );
}

/** The kernel's parameter for a matmul's epilogue. */
export function epilogueOf(
  { context, at }: Placing,
  { epilogue }: Pick<MatmulOp, "epilogue">,
): PlainEpilogue | Epilogue {
  switch (epilogue.of) {
    case "store":
    case "add":
      return epilogue.of;
    case "bias":
      return biasEpilogue(epilogue.values);
    case "gate": {
      const scales = epilogue.storesScales ? scalesOf(context, "act") : undefined;
      return scales
        ? scaledEpilogue(epilogue.activation, scales)
        : GATES[epilogue.activation].epilogue;
    }
    case "gate_by":
      return gatedByEpilogue(from(at(epilogue.by), 4 * epilogue.first));
    case "cap":
      return capEpilogue(epilogue.most);
    case "scale":
      return scaleEpilogue(epilogue.by);
    case "heads": {
      const { bias, store: { heads, to: { kv, rope, of } } } = epilogue;
      const { pages = context.pages } = kv;
      return qkvEpilogue({ ...kv, rope, rows: of.rows, pages, bias }, heads);
    }
    case "partials":
      throw new Error("partial results are recorded by their own function");
  }
}

/** Storage buffers that an epilogue binds. */
export function epilogueBuffers(epilogue: MatmulEpilogue): number {
  if (epilogue.of === "heads") return QKV_BUFFERS + Number(epilogue.bias !== undefined);
  const storesScales = epilogue.of === "gate" && epilogue.storesScales;
  return Number(epilogue.of === "bias" || epilogue.of === "gate_by" || storesScales);
}

/** The kernel's parameter for how a matmul brings x to workgroup memory. */
export function prologueOf(
  { context, at }: Placing,
  { x, matrix }: Pick<MatmulOp, "x" | "matrix">,
  prologue: MatmulPrologue,
): Prologue {
  if (prologue.of === "norm") {
    const { widen } = prologue;
    return normedRows(normOf({ context, at }, prologue), {
      cols: matrix.cols,
      rows: x.rows,
      widen,
    });
  }
  if (prologue.of === "gated_norm") {
    const { weight, headDim, eps, gate, first } = prologue.norm;
    return gatedHeads({
      weight,
      headDim,
      eps,
      gate: { values: at(gate), cols: gate.cols, first },
    });
  }
  const { attention: { partial, of, heads, window, sinks, gate }, widen } = prologue;
  const splits = splitsOf(heads);
  const sums = { sums: at(partial.sums), stats: at(partial.stats) };
  const partials = {
    ...sums,
    rows: of.rows,
    ...heads,
    window,
    splits,
    sinks,
    gate: gate && gatesOf(at, gate),
  };
  return combinedHeads(partials, widen);
}

export function normOf(
  { context, at }: Placing,
  { from, weight, eps, window, resets, stores }: Extract<MatmulPrologue, { of: "norm" }>,
): NormOfRows {
  const { config: { hiddenSize: cols }, tuning, scales } = context;
  return {
    weight,
    eps,
    lanes: normLanes({ cols, lanes: tuning.rowLanes }),
    resets: resets ? scales : undefined,
    kept: window,
    added: addedOf(at, from, stores),
  };
}

function addedOf(
  at: Emitting["at"],
  from: Extract<MatmulPrologue, { of: "norm" }>["from"],
  stores: boolean,
): NormOfRows["added"] {
  if (from.of === "rows") return undefined;
  const stream = stores ? at(from.stream ?? missing("stream of a norm")) : undefined;
  if (from.of === "sums") return { sums: at(from.y), splitK: from.y.parts, stream };
  if (from.of === "normed") {
    const { y, weight, eps, scalar } = from;
    return { sums: at(y), splitK: y.parts, branch: { weight, eps, scalar }, stream };
  }
  return {
    outputs: at(from.outputs),
    shares: at(from.shares),
    experts: from.shares.cols,
    stream,
  };
}

/** Norms as dispatches. */
import { gatedNorm } from "../../../../kernels/norm/gated_norm.ts";
import { normPair } from "../../../../kernels/norm/norm_pair.ts";
import { normSum } from "../../../../kernels/norm/norm_sum.ts";
import {
  type NormedExperts,
  type NormInput,
  type NormKept,
  rmsNorm,
} from "../../../../kernels/norm/rms_norm.ts";
import type { Dispatch } from "../../../gpu/kernel.ts";
import type { NormKeep, NormOp, NormSource, NormSumOp, OpOf } from "../ops.ts";
import type { Emitting } from "./emitting.ts";

export function emitNorm(
  { context, at }: Emitting,
  op: OpOf<"norm"> | NormOp & { label: string },
): Dispatch[] {
  const { from, weight, eps, cols, out, first, put, keep, storesScales, label } = op;
  return rmsNorm({
    from: normInput(at, from),
    weight,
    out: at(out),
    keep: keep && normKept(at, keep),
    scales: storesScales ? context.scales : undefined,
  }, {
    rows: out.rows,
    cols,
    eps,
    lanes: context.tuning.rowLanes,
    outCols: out.cols,
    outFirst: first,
    put,
    label,
  });
}

function normInput(at: Emitting["at"], from: NormSource): NormInput {
  switch (from.of) {
    case "rows": {
      const x = at(from.x);
      return from.index ? { x, index: from.index } : { x };
    }
    case "sums": {
      const sums = { sums: at(from.y), splitK: from.y.parts };
      return from.x ? { x: at(from.x), ...sums } : sums;
    }
    case "normed": {
      const { x, y, weight, eps, experts, scalar } = from;
      const added = experts &&
        { ...normedExperts(at, experts), sumsWeight: experts.sumsWeight };
      return {
        x: at(x),
        branch: { sums: at(y), splitK: y.parts, weight, eps, experts: added },
        scalar,
      };
    }
    case "experts":
      return {
        stream: at(from.x),
        outputs: at(from.outputs),
        shares: at(from.shares),
        experts: from.shares.cols,
        bias: from.bias && { values: from.bias.values, experts: at(from.bias.experts) },
      };
    case "tokens": {
      const { table: matrix, rows, scale, verified } = from;
      return { matrix, rows, scale, verified };
    }
  }
}

function normedExperts(
  at: Emitting["at"],
  { outputs, shares, weight }: NormSumOp["experts"],
): NormedExperts {
  return { outputs: at(outputs), shares: at(shares), count: shares.cols, weight };
}

function normKept(at: Emitting["at"], keep: NormKeep): NormKept {
  if (keep.what === "slot") return { what: "slot", out: at(keep.out), slot: keep.slot };
  return "window" in keep
    ? { what: keep.what, ...keep.window }
    : { what: keep.what, out: at(keep.out) };
}

export function emitGatedNorm({ context, at }: Emitting, op: OpOf<"gated_norm">): Dispatch[] {
  const { x, gate, first, weight, headDim, eps, put, storesScales, out, label } = op;
  const { rows, cols } = out;
  const values = { x: at(x), gate: at(gate), weight, out: at(out) };
  return [
    gatedNorm({ ...values, scales: storesScales ? context.scales : undefined }, {
      rows,
      cols,
      headDim,
      eps,
      put,
      label,
      gate: { cols: gate.cols, first },
      lanes: context.tuning.rowLanes,
    }),
  ];
}

export function emitNormPair({ context, at }: Emitting, op: OpOf<"norm_pair">): Dispatch[] {
  const { token: { table: matrix, ...token }, hidden, keep, out, eps, label } = op;
  const { x, index, weight } = hidden;
  const both = {
    token: { matrix, ...token },
    hidden: { x: at(x), splitK: x.parts, index, weight },
    out: at(out),
    kept: { what: keep.what, out: at(keep.out) },
    scales: op.storesScales ? context.scales : undefined,
    put: op.put,
  };
  const { config, tuning } = context;
  const shape = { rows: out.rows, cols: config.hiddenSize, eps, lanes: tuning.rowLanes };
  return [normPair(both, { ...shape, label })];
}

export function emitNormSum(
  { context: { tuning }, at }: Emitting,
  op: OpOf<"norm_sum">,
): Dispatch[] {
  const { x: { y, weight }, experts, eps, out, label } = op;
  return [
    normSum({
      x: { sums: at(y), splitK: y.parts, weight },
      experts: normedExperts(at, experts),
      out: at(out),
    }, { rows: out.rows, cols: out.cols, eps, lanes: tuning.rowLanes, label }),
  ];
}

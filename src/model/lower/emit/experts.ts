/** Mixtures of experts as dispatches. */
import { gateExperts } from "../../../../kernels/experts/expert_gate.ts";
import { expertSums } from "../../../../kernels/experts/expert_sums.ts";
import { combineExperts, expertMatmul } from "../../../../kernels/experts/experts.ts";
import { jobLists } from "../../../../kernels/experts/job_lists.ts";
import { route } from "../../../../kernels/experts/route.ts";
import { routerLogits } from "../../../../kernels/experts/router_logits.ts";
import { clampedEpilogue, scaledEpilogue } from "../../../../kernels/lib/epilogue.ts";
import { GATES } from "../../../../kernels/lib/gate.ts";
import type { Dispatch, Operand } from "../../../gpu/kernel.ts";
import { jobCounts } from "../../graph/graph.ts";
import type { ExpertMatmulOp, OpOf } from "../ops.ts";
import { type Emitting, scalesOf } from "./emitting.ts";

export function emitRoute({ context: { tuning }, at }: Emitting, op: OpOf<"route">): Dispatch[] {
  const { logits, bias, factors, jobs, out, shares, label } = op;
  const { routing, ...behind } = jobs;
  const choice = { experts: at(out), weights: at(shares) };
  const buffers = { logits: at(logits), bias, factors, ...choice };
  const stride = logits.cols;
  // Few rows do not use matrix units, so more rows must not either: the bits have to be the same.
  const rules = { ...tuning, tensor: undefined };
  return [
    route(buffers, {
      ...routing,
      ...behind,
      rows: logits.rows,
      tuning: rules,
      stride,
      label,
    }),
  ];
}

export function emitNormedRouter({ context, at }: Emitting, op: OpOf<"normed_router">): Dispatch[] {
  const {
    from,
    weight: norm,
    expertsWeight,
    eps,
    matrix,
    bias,
    normed,
    logits,
    storesScales,
    label,
  } = op;
  const added = from.of === "sums"
    ? { sums: at(from.y), splitK: from.y.parts, stream: at(from.stream) }
    : undefined;
  const row = { x: at(from.x), added, norm, expertsNorm: expertsWeight, normed: at(normed) };
  const scales = storesScales ? context.scales : undefined;
  return [
    routerLogits({ matrix, bias, ...row, logits: at(logits), scales }, {
      rows: from.x.rows,
      eps,
      tuning: { ...context.tuning, tensor: undefined },
      label,
    }),
  ];
}

export function emitExpertTiles(
  { context: { tuning }, at }: Emitting,
  op: OpOf<"expert_tiles">,
): Dispatch[] {
  const { tile, experts, jobs, out: tiles, label } = op;
  const lists = { experts: at(experts), tiles: at(tiles) };
  return [jobLists(lists, { ...jobCounts(jobs, experts.rows), tile, tuning, label })];
}

export function emitExpertMatmul(
  to: Emitting,
  op: ExpertMatmulOp & { readonly label: string },
): Dispatch[] {
  const { context, at } = to;
  const { tuning } = context;
  const {
    x,
    perJob,
    matrix,
    experts,
    jobs,
    tile,
    out,
    gated,
    xScales,
    xIsF16,
    storesScales,
    choice,
    tiles,
    label,
  } = op;
  const outScales = storesScales ? scalesOf(context, "act") : undefined;
  return expertMatmul({
    matrix,
    x: at(x),
    xScales: scalesOf(context, xScales),
    xIsF16,
    out: at(out),
    experts: at(experts),
    tiles: at(tiles ?? experts),
    choice: choice && {
      routing: jobs.routing,
      sharedGate: jobs.sharedGate,
      logits: at(choice.logits),
      stride: choice.logits.cols,
      weights: at(choice.shares),
      factors: choice.factors,
    },
  }, {
    ...jobCounts(jobs, experts.rows),
    tile,
    shared: jobs.shared,
    tuning,
    epilogue: expertEpilogueOf(gated, outScales),
    perJob,
    label,
  });
}

function expertEpilogueOf(gated: ExpertMatmulOp["gated"], outScales: Operand | undefined) {
  if (!gated) return "store";
  if (typeof gated !== "string") return clampedEpilogue(gated, outScales);
  return outScales ? scaledEpilogue(gated, outScales) : GATES[gated].epilogue;
}

export function emitExpertSums(
  { context: { tuning }, at }: Emitting,
  op: OpOf<"expert_sums">,
): Dispatch[] {
  const { matrix, x, experts, shares, bias, jobs, stream: out, label } = op;
  const shape = { ...jobCounts(jobs, out.rows), shared: jobs.shared, tuning, label };
  const buffers = { x: at(x), experts: at(experts), weights: at(shares), out: at(out) };
  return expertSums({ matrix, bias, ...buffers }, shape);
}

export function emitExpertGate({ at }: Emitting, op: OpOf<"expert_gate">): Dispatch[] {
  const { x, bias, experts, limit, out, label } = op;
  const { rows, cols } = out;
  const buffers = { x: at(x), bias, experts: at(experts), out: at(out) };
  return [gateExperts(buffers, { rows, cols, limit, label })];
}

export function emitCombine({ at }: Emitting, op: OpOf<"combine">): Dispatch[] {
  const { x, shares, bias, to: added, out, label } = op;
  const shape = { rows: out.rows, topK: shares.cols, cols: out.cols, label };
  const buffers = {
    y: at(x),
    weights: at(shares),
    out: at(out),
    bias: bias && { values: bias.values, experts: at(bias.experts) },
  };
  return [combineExperts(buffers, { ...shape, add: added !== undefined })];
}

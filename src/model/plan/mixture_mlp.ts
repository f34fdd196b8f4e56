/** Mixture of experts: a router chooses a few gated MLPs for each row. */
import {
  combineExperts,
  expertMatmul,
  expertTile,
  expertTiles,
} from "../../../shaders/experts/experts.ts";
import { notesExperts } from "../../../shaders/experts/experts_on_units.ts";
import { route } from "../../../shaders/router/route.ts";
import { canRoute, router as routerOf, routerNotes } from "../../../shaders/router/router.ts";
import { matmul } from "../../../shaders/matmul/matmul.ts";
import type { ExpertSums, NormInput } from "../../../shaders/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { streamOf } from "./branch_input.ts";
import {
  type Branch,
  type DecoderContext,
  type End,
  type MixtureScratch,
  norm,
  scalesOf,
} from "./decoder_context.ts";
import { denseMlp } from "./dense_mlp.ts";
import type { MixtureWeights } from "./mixture_weights.ts";

/** What a mixture is given. */
export interface MixtureInput {
  /** The residual stream before the branch. */
  readonly stream: NormInput;
  /** Of the norm before it; undefined: the stream is in x, and goes in as it is. */
  readonly norm: Operand | undefined;
  readonly rows: number;
  readonly end: End;
  /** Whether the next norm can add the experts' outputs to the stream itself. */
  readonly normFollows: boolean;
  /** Of the layer. */
  readonly label: string;
}

/** A branch, or the experts' outputs where the next norm is to add them. */
export interface MixtureBranch extends Branch {
  readonly outputs?: ExpertSums;
}

/** Most experts of a row whose outputs a norm adds: it has them all on their way. */
const MOST_NORMED = 16;

/**
 * shared(x) + sum_k weight_k down_k(silu(gate_k x) * up_k x) over a row's experts, the first choice first, x
 * being the stream, normed.
 */
export function mixtureMlp(
  context: DecoderContext,
  weights: MixtureWeights,
  of: MixtureInput,
): MixtureBranch {
  const { scratch: { normed }, tuning } = context;
  const { rows, end, normFollows, label } = of;
  const x = streamOf(context, of.stream);
  const xScales = of.norm && notesRows(context) ? scalesOf(context, "normed", rows) : undefined;
  const io = { input: of.norm ? normed : x, xScales, rows, label };
  const { topK } = jobsOf(weights, rows);
  const routed = routeRows(context, weights, of);
  const experts = expertOutputs(context, weights, io);
  const hardware = !tuning.software && topK <= MOST_NORMED;
  if (hardware && normFollows && end === "sums" && !weights.shared) {
    const { weights: shares, outputs } = context.scratch.mixture as MixtureScratch;
    return {
      plan: [...routed.before, ...routed.after, ...experts],
      splitK: 0,
      outputs: { stream: x, outputs, shares, experts: topK },
    };
  }
  const left = weights.shared
    ? denseMlp(context, weights.shared, {
      rows,
      input: { x: io.input, xScales },
      end,
      label: `${label}.shared`,
    })
    : { plan: [], splitK: end === "sums" ? 1 : 0 };
  return {
    ...left,
    plan: [
      ...routed.before,
      ...left.plan,
      ...routed.after,
      ...experts,
      combined(context, weights, of),
    ],
  };
}

/** Jobs of rows: the chosen experts, and those that every row has. */
function jobsOf({ spec: { routing }, stacked }: MixtureWeights, rows: number) {
  return {
    rows,
    topK: routing.topK + stacked,
    numExperts: routing.numExperts + stacked,
  };
}

/** Whether what norms the rows notes their scales, whichever kernel it is. */
function notesRows({ tuning, scratch: { scales } }: DecoderContext): boolean {
  return scales !== undefined && routerNotes(tuning);
}

/** Norms the rows and chooses their experts: on hardware in one dispatch, before all that reads normed rows. */
function routeRows(
  context: DecoderContext,
  { spec: { routing }, router, bias, stacked }: MixtureWeights,
  of: MixtureInput,
): { readonly before: Dispatch[]; readonly after: Dispatch[] } {
  const { stream, norm: weight, rows, label } = of;
  const { tuning, config, scratch: { normed, mixture, scales } } = context;
  const { logits, experts, weights } = mixture as MixtureScratch;
  const x = streamOf(context, of.stream);
  const noted = notesRows(context) ? scales : undefined;
  const chosen = { bias, experts, weights };
  const choice = { ...routing, rows, tuning, shared: stacked };
  const sums = "sums" in stream && stream.x ? stream : undefined;
  if (weight && sums && canRoute(router, routing.numExperts, tuning)) {
    const { splitK } = sums;
    const buffers = { matrix: router, x, sums: sums.sums, norm: weight, normed, noted, ...chosen };
    const shape = { ...choice, splitK, eps: config.rmsNormEps, label: `${label}.router` };
    return { before: [routerOf(buffers, shape)], after: [] };
  }
  const input = weight ? normed : x;
  const xScales = weight && noted ? scalesOf(context, "normed", rows) : undefined;
  const launch = { rows, tuning, epilogue: "store", label: `${label}.router` } as const;
  return {
    before: weight
      ? norm(context, { from: stream, weight, out: normed, noted }, rows, `${label}.postNorm`)
      : [],
    after: [
      ...matmul({ matrix: router, x: input, xScales, out: logits }, launch),
      route({ logits, ...chosen }, { ...choice, stride: router.rows, label: `${label}.route` }),
    ],
  };
}

/** outputs = what each of a row's experts makes of it. */
function expertOutputs(
  context: DecoderContext,
  weights: MixtureWeights,
  { input, xScales, rows, label }: {
    readonly input: Operand;
    readonly xScales: Operand | undefined;
    readonly rows: number;
    readonly label: string;
  },
): Dispatch[] {
  const { tuning, scratch: { act, mixture } } = context;
  const { experts, tiles, outputs } = mixture as MixtureScratch;
  const { gateUp, down, stacked: shared } = weights;
  // A shared expert apart has lowered the scales before.
  const notes = xScales && !weights.shared && notesExperts(gateUp, { rows, tensor: tuning.tensor });
  const noted = notes ? scalesOf(context, "act", rows) : undefined;
  const lists = { experts, tiles };
  const jobs = jobsOf(weights, rows);
  const launch = { ...jobs, tile: expertTile(jobs, gateUp, tuning), shared, tuning };
  return [
    ...expertTiles(lists, { ...launch, matrix: gateUp, label: `${label}.tiles` }),
    ...expertMatmul(
      { matrix: gateUp, x: input, xScales, out: act, noted, ...lists },
      { ...launch, epilogue: "swiglu", perJob: false, label: `${label}.experts.gateUp` },
    ),
    ...expertMatmul(
      { matrix: down, x: act, xScales: noted, out: outputs, ...lists },
      { ...launch, epilogue: "store", perJob: true, label: `${label}.experts.down` },
    ),
  ];
}

/** Adds the weighted outputs to what the branch leaves. */
function combined(
  context: DecoderContext,
  weights: MixtureWeights,
  of: MixtureInput,
): Dispatch {
  const { rows, end, label } = of;
  const { config, scratch: { sums, mixture } } = context;
  const { weights: shares, outputs } = mixture as MixtureScratch;
  return combineExperts(
    // Where the shared expert left several sums, the first gets the experts'.
    { y: outputs, weights: shares, out: end === "sums" ? sums : streamOf(context, of.stream) },
    {
      rows,
      topK: jobsOf(weights, rows).topK,
      cols: config.hiddenSize,
      add: end === "x" || weights.shared !== undefined,
      label: `${label}.experts`,
    },
  );
}

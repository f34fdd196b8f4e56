/** Mixture of experts: a router chooses a few gated MLPs for each row. */
import {
  canChoose,
  combineExperts,
  type ExpertChoice,
  expertMatmul,
  expertTile,
  expertTiles,
} from "../../../kernels/experts/experts.ts";
import { notesExperts } from "../../../kernels/experts/experts_on_units.ts";
import { canSum, expertSums } from "../../../kernels/experts/expert_sums.ts";
import { route } from "../../../kernels/experts/route.ts";
import { canNormRouted, logitsNote, rowLogits } from "../../../kernels/experts/row_logits.ts";
import { matmul } from "../../../kernels/matmul/matmul.ts";
import type { ExpertSums, NormInput } from "../../../kernels/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { type BranchInput, otherStream, streamOf } from "./branch_input.ts";
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
  /** The residual stream that it is added to. */
  readonly stream: Operand;
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
  const xScales = of.norm && notesRows(context) ? scalesOf(context, "normed", rows) : undefined;
  const routed = routeRows(context, weights, of);
  const { before, after, stream, choice } = routed;
  const input = of.norm ? normed : stream;
  const io = { x: input, xScales };
  const jobs = jobsOf(weights, rows);
  const { gated, down } = expertPlans(context, weights, { input, xScales, rows, label, choice });
  const hardware = !tuning.software && jobs.topK <= MOST_NORMED;
  if (!hardware || !normFollows || end !== "sums" || weights.shared) {
    return besideShared(context, weights, of, { routed, input: io, experts: [...gated, ...down] });
  }
  const plan = [...before, ...after, ...gated];
  if (canSum(weights.down, jobs, tuning)) {
    const adding = { rows, label: `${label}.experts.down`, stream };
    return { plan: [...plan, ...addExperts(context, weights, adding)], splitK: 0, stream };
  }
  const { weights: shares, outputs } = context.scratch.mixture as MixtureScratch;
  const added = { stream, outputs, shares, experts: jobs.topK };
  return { plan: [...plan, ...down], splitK: 0, stream, outputs: added };
}

/** The experts' weighted outputs, with what a shared expert that is apart makes. */
function besideShared(
  context: DecoderContext,
  weights: MixtureWeights,
  of: MixtureInput,
  { routed: { before, after, stream }, input, experts }: {
    readonly routed: Routed;
    readonly input: Omit<BranchInput, "stream">;
    readonly experts: Dispatch[];
  },
): MixtureBranch {
  const { rows, end, label } = of;
  const left = weights.shared
    ? denseMlp(context, weights.shared, {
      rows,
      input,
      end,
      label: `${label}.shared`,
    })
    : { plan: [], splitK: end === "sums" ? 1 : 0 };
  const combining = combined(context, weights, { ...of, stream: { x: stream } });
  return {
    ...left,
    stream,
    plan: [...before, ...left.plan, ...after, ...experts, combining],
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
  return scales !== undefined && logitsNote(tuning);
}

/** How rows come to their experts. */
interface Routed {
  /** Before all that reads normed rows. */
  readonly before: Dispatch[];
  readonly after: Dispatch[];
  /** The residual stream, when it has what is still to be added to it. */
  readonly stream: Operand;
  /** Where the experts' first matmul chooses them itself. */
  readonly choice?: ExpertChoice | undefined;
}

/** Norms the rows and chooses their experts: few rows on hardware in one dispatch and the experts' first matmul. */
function routeRows(context: DecoderContext, weights: MixtureWeights, of: MixtureInput): Routed {
  const { spec: { routing }, router, bias, stacked } = weights;
  const { stream, norm: weight, rows, end, label } = of;
  const { config, scratch: { normed, mixture, scales } } = context;
  const noted = notesRows(context) ? scales : undefined;
  // Few rows are multiplied by no matrix unit: neither are others, for the same bits.
  const tuning = { ...context.tuning, tensor: undefined };
  const { logits, experts, weights: shares } = mixture as MixtureScratch;
  const x = streamOf(context, of.stream);
  const named = `${label}.router`;
  const chosen = route({ logits, bias, experts, weights: shares }, {
    ...routing,
    rows,
    tuning,
    shared: stacked,
    stride: router.rows,
    label: `${label}.route`,
  });
  const sums = "sums" in stream && stream.x ? stream : undefined;
  if (weight && sums && end === "sums" && canNormRouted(router, rows, context.tuning)) {
    const { splitK } = sums;
    const moved = otherStream(context, x);
    const row = { x, sums: sums.sums, norm: weight, stream: moved, normed, logits, noted };
    const shape = { rows, splitK, eps: config.rmsNormEps, tuning, label: named };
    const before = [rowLogits({ matrix: router, ...row }, shape)];
    const choice = { routing, logits, stride: router.rows, weights: shares };
    const { gateUp } = weights;
    const tile = expertTile(jobsOf(weights, rows), gateUp, context.tuning);
    return canChoose(gateUp, routing, { tile, tuning: context.tuning })
      ? { before, after: [], stream: moved, choice }
      : { before, after: [chosen], stream: moved };
  }
  const input = weight ? normed : x;
  const launch = { rows, tuning, epilogue: "store", label: named } as const;
  return {
    before: weight
      ? norm(context, { from: stream, weight, out: normed, noted }, rows, `${label}.postNorm`)
      : [],
    after: [...matmul({ matrix: router, x: input, out: logits }, launch), chosen],
    stream: x,
  };
}

/** outputs = what each of a row's experts makes of it: gate and up, then down. */
function expertPlans(
  context: DecoderContext,
  weights: MixtureWeights,
  { input, xScales, rows, label, choice }: {
    readonly input: Operand;
    readonly xScales: Operand | undefined;
    readonly rows: number;
    readonly label: string;
    readonly choice: ExpertChoice | undefined;
  },
): { readonly gated: Dispatch[]; readonly down: Dispatch[] } {
  const { tuning, scratch: { act, mixture } } = context;
  const { experts, tiles, outputs } = mixture as MixtureScratch;
  const { gateUp, down, stacked: shared } = weights;
  // A shared expert apart has lowered the scales before.
  const notes = xScales && !weights.shared && notesExperts(gateUp, { rows, tensor: tuning.tensor });
  const noted = notes ? scalesOf(context, "act", rows) : undefined;
  const lists = { experts, tiles };
  const jobs = jobsOf(weights, rows);
  const launch = { ...jobs, tile: expertTile(jobs, gateUp, tuning), shared, tuning };
  return {
    gated: [
      ...expertTiles(lists, { ...launch, matrix: gateUp, label: `${label}.tiles` }),
      ...expertMatmul(
        { matrix: gateUp, x: input, xScales, out: act, noted, ...lists, choice },
        { ...launch, epilogue: "swiglu", perJob: false, label: `${label}.experts.gateUp` },
      ),
    ],
    down: expertMatmul(
      { matrix: down, x: act, xScales: noted, out: outputs, ...lists },
      { ...launch, epilogue: "store", perJob: true, label: `${label}.experts.down` },
    ),
  };
}

/** stream += the weighted outputs of few rows' experts. */
function addExperts(
  { tuning, scratch: { act, mixture } }: DecoderContext,
  weights: MixtureWeights,
  { rows, stream: out, label }: {
    readonly rows: number;
    readonly stream: Operand;
    readonly label: string;
  },
): Dispatch[] {
  const { experts, weights: shares } = mixture as MixtureScratch;
  const { down: matrix, stacked: shared } = weights;
  return expertSums(
    { matrix, x: act, experts, weights: shares, out },
    { ...jobsOf(weights, rows), shared, tuning, label },
  );
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

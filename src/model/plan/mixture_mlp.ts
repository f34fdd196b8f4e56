/** Mixture of experts: a router chooses a few gated MLPs for each row. */
import { combineExperts, expertMatmul, expertTiles } from "../../../shaders/experts/experts.ts";
import { matmul } from "../../../shaders/matmul/matmul.ts";
import { route } from "../../../shaders/experts/route.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Matrix } from "../../gpu/matrix.ts";
import type {
  Branch,
  DecoderContext,
  End,
  LayerSource,
  MixtureScratch,
} from "./decoder_context.ts";
import { denseMlp, type DenseWeights, loadDenseMlp } from "./dense_mlp.ts";
import type { MixtureMlp } from "../config/layer_spec.ts";

export interface MixtureWeights {
  readonly kind: "mixture";
  readonly spec: MixtureMlp;
  /** [experts, hidden] */
  readonly router: Matrix;
  /** Added to scores for the choice, [experts]. */
  readonly bias: Operand | undefined;
  /** [gate; up] of each expert, [experts, 2 intermediate, hidden] */
  readonly gateUp: Matrix;
  /** [experts, hidden, intermediate] */
  readonly down: Matrix;
  readonly shared: DenseWeights | undefined;
}

export function loadMixtureMlp(source: LayerSource, spec: MixtureMlp): MixtureWeights {
  const { load, label, tensor } = source;
  const { routing: { scores, numExperts }, shared } = spec;
  const experts = Array.from({ length: numExperts }, (_, expert) => expert);
  const of = (expert: number, role: string) => tensor(`${role}.${expert}`);
  return {
    kind: "mixture",
    spec,
    router: load.table(`${label}.router`, tensor("router")),
    bias: scores === "sigmoid"
      ? load.vector(`${label}.routerBias`, tensor("routerBias"))
      : undefined,
    gateUp: load.experts(
      `${label}.experts.gateUp`,
      experts.map((expert) => [of(expert, "expertGate"), of(expert, "expertUp")]),
    ),
    down: load.experts(
      `${label}.experts.down`,
      experts.map((expert) => [of(expert, "expertDown")]),
    ),
    shared: shared && loadDenseMlp(source, shared, SHARED_ROLES),
  };
}

const SHARED_ROLES = { gate: "sharedGate", up: "sharedUp", down: "sharedDown" };

/**
 * shared(x) + sum_k weight_k down_k(silu(gate_k x) * up_k x) over a row's experts, the first choice first,
 * x = `input`.
 */
export function mixtureMlp(
  context: DecoderContext,
  weights: MixtureWeights,
  io: {
    readonly input: Operand;
    readonly rows: number;
    readonly end: End;
    /** Of the layer. */
    readonly label: string;
  },
): Branch {
  const { config, scratch: { x, sums, mixture } } = context;
  const { input, rows, end, label } = io;
  const { weights: shares, outputs } = mixture as MixtureScratch;
  const { shared, spec: { routing: { topK } } } = weights;
  const left = shared
    ? denseMlp(context, shared, { input, rows, end, label: `${label}.shared` })
    : { plan: [], splitK: end === "sums" ? 1 : 0 };
  const combined = combineExperts(
    // Where the shared expert left several sums, the first gets the experts'.
    { y: outputs, weights: shares, out: end === "sums" ? sums : x },
    {
      rows,
      topK,
      cols: config.hiddenSize,
      add: end === "x" || shared !== undefined,
      label: `${label}.experts`,
    },
  );
  return { ...left, plan: [...left.plan, ...expertOutputs(context, weights, io), combined] };
}

/** Routes rows of `input`: outputs = what each of their experts makes of them. */
function expertOutputs(
  { tuning, scratch: { act, mixture } }: DecoderContext,
  { spec: { routing }, router, bias, gateUp, down }: MixtureWeights,
  { input, rows, label }: {
    readonly input: Operand;
    readonly rows: number;
    readonly label: string;
  },
): Dispatch[] {
  const { logits, weights, outputs, ...lists } = mixture as MixtureScratch;
  const { topK, numExperts } = routing;
  const jobs = { rows, topK, numExperts };
  const launch = { ...jobs, tuning };
  return [
    ...matmul({ matrix: router, x: input, out: logits }, {
      rows,
      tuning,
      epilogue: "store",
      label: `${label}.router`,
    }),
    route(
      { logits, bias, experts: lists.experts, weights },
      { ...routing, rows, tuning, stride: router.rows, label: `${label}.route` },
    ),
    ...expertTiles(lists, { ...launch, matrix: gateUp, label: `${label}.tiles` }),
    ...expertMatmul(
      { matrix: gateUp, x: input, out: act, ...lists },
      { ...launch, epilogue: "swiglu", perJob: false, label: `${label}.experts.gateUp` },
    ),
    ...expertMatmul(
      { matrix: down, x: act, out: outputs, ...lists },
      { ...launch, epilogue: "store", perJob: true, label: `${label}.experts.down` },
    ),
  ];
}

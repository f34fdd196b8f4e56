/** Weights of one decoder layer: each kind of attention and of MLP has its own. */
import { isBiased } from "../../../kernels/experts/route.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import {
  gateRuns,
  hasRuns,
  keyRuns,
  normRuns,
  qkvzRuns,
  queryRuns,
  ratesRuns,
  type RowRuns,
} from "./row_runs.ts";
import {
  type AttentionSpec,
  type DeltaNet,
  type DenseMlp,
  gateCount,
  type HeadAttention,
  type LatentAttention,
  type LayerConfig,
  type MixtureMlp,
  sharedExperts,
  type ShortConv,
} from "../config/layer_config.ts";
import type { Rope } from "../config/rope_config.ts";
import type { ModelConfig } from "../config/types.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { Loader } from "./loader.ts";

/** Where the weights of one layer come from. */
export interface LayerSource {
  readonly load: Loader;
  /** `layers.3` */
  readonly label: string;
  /** The checkpoint's tensor of a role of the layer: `q`, `inputNorm`. */
  tensor(role: string): TensorInfo;
  /** Added to the weights of norms. */
  readonly normOffset: number;
}

/** Weights of each kind of attention, or of the recurrence that replaces it. */
export type AttentionWeights = HeadWeights | LatentWeights | ConvWeights | DeltaWeights;

/** Weights of one decoder layer. Each kind of attention and of MLP has its own. */
export interface DecoderLayer {
  readonly attention: AttentionWeights;
  readonly mlp: DenseWeights | MixtureWeights;
  /**
   * Norms of the attention's output and of the MLP's input and output, [hidden] each; undefined where
   * there is none. The caller has the norm of the attention's input.
   */
  readonly norms: {
    readonly afterAttention: Operand | undefined;
    readonly beforeMlp: Operand | undefined;
    readonly afterMlp: Operand | undefined;
  };
  /** For the layer's own embedding of each token, if the model has that, see graph/gemma4.ts. */
  readonly perLayer?: PerLayerWeights | undefined;
  /** A factor of the layer's output, [1]. */
  readonly scalar?: Operand | undefined;
}

export interface PerLayerWeights {
  /** [width, hidden] */
  readonly gate: Matrix;
  /** [hidden, width] */
  readonly projection: Matrix;
  /** [hidden] */
  readonly norm: Operand;
}

/** @param source finds the roles of `spec`, see tensors.ts. */
export function loadLayer(
  source: LayerSource,
  spec: LayerConfig,
  { ropes }: Pick<ModelConfig, "ropes">,
): DecoderLayer {
  const { load, label, tensor, normOffset } = source;
  const normIf = (there: boolean, role: string) =>
    there ? load.norm(`${label}.${role}`, normOffset, tensor(role)) : undefined;
  const [before, after] = [spec.norms !== "after", spec.norms !== "before"];
  return {
    attention: loadAttention(source, spec.attention, ropes),
    mlp: spec.mlp.kind === "mixture"
      ? loadMixtureMlp(source, spec.mlp)
      : loadDenseMlp(source, spec.mlp),
    norms: {
      afterAttention: normIf(after, "attentionNorm"),
      beforeMlp: normIf(before, "postNorm"),
      afterMlp: normIf(after, "mlpNorm"),
    },
    ...spec.perLayerWidth !== undefined && {
      perLayer: {
        gate: load.matrix(`${label}.perLayerGate`, [tensor("perLayerGate")]),
        projection: load.matrix(`${label}.perLayerProjection`, [tensor("perLayerProjection")]),
        norm: load.norm(`${label}.perLayerNorm`, normOffset, tensor("perLayerNorm")),
      },
    },
    ...spec.scalar && { scalar: load.vector(`${label}.layerScalar`, tensor("layerScalar")) },
  };
}

function loadAttention(
  source: LayerSource,
  spec: AttentionSpec,
  ropes: readonly Rope[],
): AttentionWeights {
  switch (spec.kind) {
    case "heads":
      return loadHeadAttention(source, spec, ropes);
    case "latent":
      return loadLatentAttention(source, spec);
    case "conv":
      return loadConv(source, spec);
    case "delta":
      return loadDelta(source, spec);
  }
}

export interface DeltaWeights {
  readonly kind: "delta";
  readonly spec: DeltaNet;
  /** Rows of q, k, v and z, [2 keys + 2 values, hidden]. */
  readonly input: Matrix;
  /** Rows of b and a, [2 valueHeads, hidden]. */
  readonly rates: Matrix;
  /** Convolution of q, k and v, [columns, taps], the tap of the oldest token first. */
  readonly taps: Operand;
  /** A_log and dt_bias, [2 valueHeads]. */
  readonly decay: Operand;
  /** The norm of the heads' outputs, [valueDim]. */
  readonly norm: Operand;
  /** [hidden, values] */
  readonly o: Matrix;
}

function loadDelta({ load, label, tensor }: LayerSource, spec: DeltaNet): DeltaWeights {
  const runs = (role: string, { runs }: RowRuns) => runs.map((_, i) => tensor(`${role}.${i}`));
  const { fused } = spec;
  const input = fused ? runs("deltaQkvz", qkvzRuns(spec)) : ["deltaQkv", "deltaZ"].map(tensor);
  const [first, ...rates] = fused
    ? runs("deltaBa", ratesRuns(spec))
    : ["deltaB", "deltaA"].map(tensor);
  return {
    kind: "delta",
    spec,
    input: load.matrix(`${label}.deltaIn`, input),
    rates: load.table(`${label}.deltaRates`, first as TensorInfo, ...rates),
    taps: load.vector(`${label}.deltaTaps`, flat(tensor("deltaTaps"))),
    decay: load.vector(`${label}.deltaDecay`, ...["deltaLog", "deltaBias"].map(tensor)),
    norm: load.vector(`${label}.deltaNorm`, tensor("deltaNorm")),
    o: load.matrix(`${label}.deltaOut`, [tensor("deltaOut")]),
  };
}

export interface ConvWeights {
  readonly kind: "conv";
  readonly spec: ShortConv;
  /** Rows of B, C and x: [3 width, hidden]. */
  readonly input: Matrix;
  /** [width, taps], the tap of the oldest token first. */
  readonly taps: Operand;
  /** [hidden, width] */
  readonly o: Matrix;
}

function loadConv({ load, label, tensor }: LayerSource, spec: ShortConv): ConvWeights {
  return {
    kind: "conv",
    spec,
    input: load.matrix(`${label}.convIn`, [tensor("convIn")]),
    taps: load.vector(`${label}.convTaps`, flat(tensor("convTaps"))),
    o: load.matrix(`${label}.convOut`, [tensor("convOut")]),
  };
}

/** The tensor with its shape flattened to one dimension. */
function flat(tensor: TensorInfo): TensorInfo {
  return { ...tensor, shape: [tensor.shape.reduce((product, n) => product * n, 1)] };
}

export interface HeadWeights {
  readonly kind: "heads";
  readonly spec: HeadAttention;
  /**
   * [q; k; v], [(heads + 2 kvHeads) headDim, width of the layer's input]. The row order is stacked with
   * `qkNorm`, else rope_halves. There is no v where keys are the values, and only q where the layer has no keys.
   * The rows of `outputGate` follow, if they do not have a matrix of their own.
   */
  readonly qkv: Matrix;
  /** Bias of q, k and v, [(heads + 2 kvHeads) headDim]. */
  readonly bias: Operand | undefined;
  /** Norms of q and k: [2, headDim] if each head is normed, [heads + kvHeads, headDim] if all are normed together. */
  readonly qkNorm: Operand | undefined;
  /** Rows of `outputGate` where they have another type than q, k and v, [gates, width of the layer's input]. */
  readonly gate?: Matrix | undefined;
  /** [hidden, heads headDim] */
  readonly o: Matrix;
  /** Bias of o, [hidden]. */
  readonly outBias?: Operand | undefined;
  /** One additional logit in the softmax of each head, [heads]. */
  readonly sinks?: Operand | undefined;
}

/** @param ropes the model's rotary embeddings. */
function loadHeadAttention(
  { load, label, tensor, normOffset }: LayerSource,
  spec: HeadAttention,
  ropes: readonly Rope[],
): HeadWeights {
  const { qkNorm, qkGains, bias, outBias, sinks, headDim, interleaved } = spec;
  if (gateCount(spec) > 0 && qkNorm === "none") {
    throw new Error(`${label}: a gate of heads without norms`);
  }
  if (interleaved && (bias || qkNorm !== "none")) {
    throw new Error(`${label}: interleaved pairs with biases or norms`);
  }
  const { width } = ropes[spec.rope] as Rope;
  if (hasRuns(spec)) return loadRuns({ load, label, tensor, normOffset }, spec);
  const own = spec.sharedKv === undefined;
  const turned = [tensor("q"), ...own ? [tensor("k")] : []];
  const qkv = {
    turned: interleaved ? turned.map((each) => ({ ...each, evenRowsFirst: headDim })) : turned,
    plain: own && spec.values !== "keys" ? [tensor("v")] : [],
  };
  const gate = gateCount(spec) > 0 ? [tensor("outputGate")] : [];
  return {
    kind: "heads",
    spec,
    ...qkNorm === "none"
      ? { qkv: load.heads(`${label}.qkv`, qkv, { headDim, width }) }
      : loadQkv({ load, label }, [...qkv.turned, ...qkv.plain], gate),
    bias: bias
      ? load.vector(`${label}.qkvBias`, ...["qBias", "kBias", "vBias"].map(tensor))
      : undefined,
    qkNorm: qkNorm === "none"
      ? undefined
      : qkGains
      ? load.constants(`${label}.qkNorm`, [qkGains.q, qkGains.k], headDim)
      : load.norm(
        `${label}.qkNorm`,
        normOffset,
        tensor("qNorm"),
        ...own ? [tensor("kNorm")] : [],
      ),
    o: load.matrix(`${label}.o`, [tensor("o")]),
    outBias: outBias ? load.vector(`${label}.oBias`, tensor("oBias")) : undefined,
    sinks: sinks ? load.vector(`${label}.sinks`, tensor("sinks")) : undefined,
  };
}

/** Loads q, k and v with the gate's rows behind them, or in a matrix of their own if all would be float32 with them. */
function loadQkv(
  { load, label }: Pick<LayerSource, "load" | "label">,
  qkv: readonly TensorInfo[],
  gate: readonly TensorInfo[],
): Pick<HeadWeights, "qkv" | "gate"> {
  const all = [...qkv, ...gate];
  if (gate.length === 0 || load.alike(all)) return { qkv: load.matrix(`${label}.qkv`, all) };
  return {
    qkv: load.matrix(`${label}.qkv`, qkv),
    gate: load.matrix(`${label}.outputGate`, gate),
  };
}

/** Loads heads whose tensors have rows in another order, or also contain the rows of a gate. */
function loadRuns(
  { load, label, tensor, normOffset }: LayerSource,
  spec: HeadAttention,
): HeadWeights {
  if (spec.bias || spec.qkNorm !== "head") {
    throw new Error(`${label}: heads without norms of q and k`);
  }
  const runs = (role: string, { runs }: RowRuns) => runs.map((_, i) => tensor(`${role}.${i}`));
  const inQuery = spec.gateInQuery ? runs("outputGate", gateRuns(spec)) : [];
  const gate = gateCount(spec) > 0 && !spec.gateInQuery ? [tensor("outputGate")] : inQuery;
  const qkv = [...runs("q", queryRuns(spec)), ...runs("k", keyRuns(spec)), tensor("v")];
  const norms = [...runs("qNorm", normRuns(spec)), ...runs("kNorm", normRuns(spec))];
  return {
    kind: "heads",
    spec,
    ...loadQkv({ load, label }, qkv, gate),
    bias: undefined,
    qkNorm: load.norm(`${label}.qkNorm`, normOffset, ...norms),
    o: load.matrix(`${label}.o`, [tensor("o")]),
  };
}

/** The matrices that project the input to queries and latents. */
export type LatentProjections =
  | {
    readonly kind: "joined";
    /** Rows of the queries, then of the latent: [h (n + r) + c + r, H]. */
    readonly matrix: Matrix;
  }
  | {
    readonly kind: "apart";
    /** Present if queries are projected from a latent: [queryRank, H] and its norm, [queryRank]. */
    readonly queryLatent: { readonly matrix: Matrix; readonly norm: Operand } | undefined;
    /** [h (n + r), queryRank or H] */
    readonly query: Matrix;
    /** [c + r, H] */
    readonly kvA: Matrix;
  };

/** H hidden, h heads, n nope, r rope, v value, c rank. */
export interface LatentWeights {
  readonly kind: "latent";
  readonly spec: LatentAttention;
  readonly input: LatentProjections;
  /** [c] */
  readonly kvNorm: Operand;
  /** For each head n rows of keys and v rows of values, [h (n + v), c]. */
  readonly kvB: Table;
  /** [H, h v] */
  readonly o: Matrix;
}

function loadLatentAttention(
  source: LayerSource,
  spec: LatentAttention,
): LatentWeights {
  const { load, label, tensor, normOffset } = source;
  const norm = (role: string) => load.norm(`${label}.${role}`, normOffset, tensor(role));
  return {
    kind: "latent",
    spec,
    input: loadProjections(source, spec),
    kvNorm: norm("kvANorm"),
    kvB: load.table(`${label}.kvB`, tensor("kvB")),
    o: load.matrix(`${label}.o`, [tensor("o")]),
  };
}

/** Joins both projections to one matrix, and so one launch, if both read the input and have one type. */
function loadProjections(
  { load, label, tensor, normOffset }: LayerSource,
  { queryRank }: LatentAttention,
): LatentProjections {
  const matrix = (role: string) => load.matrix(`${label}.${role}`, [tensor(role)]);
  if (queryRank === undefined && tensor("q").dtype === tensor("kvA").dtype) {
    const both = [tensor("q"), tensor("kvA")];
    return { kind: "joined", matrix: load.matrix(`${label}.qKvA`, both) };
  }
  const norm = () => load.norm(`${label}.qANorm`, normOffset, tensor("qANorm"));
  return {
    kind: "apart",
    queryLatent: queryRank === undefined ? undefined : { matrix: matrix("qA"), norm: norm() },
    query: matrix(queryRank === undefined ? "q" : "qB"),
    kvA: matrix("kvA"),
  };
}

export interface DenseWeights {
  readonly kind: "dense";
  readonly spec: DenseMlp;
  /** [gate; up], [2 intermediate, hidden] */
  readonly gateUp: Matrix;
  /** [hidden, intermediate] */
  readonly down: Matrix;
}

/** @param roles roles of its tensors; default: those of a layer's only MLP. */
function loadDenseMlp(
  { load, label, tensor }: LayerSource,
  spec: DenseMlp,
  roles: { readonly gate: string; readonly up: string; readonly down: string } = ROLES,
): DenseWeights {
  const { gate, up, down } = roles;
  return {
    kind: "dense",
    spec,
    gateUp: load.pair(`${label}.${gate}Up`, tensor(gate), tensor(up)),
    down: load.matrix(`${label}.${down}`, [tensor(down)]),
  };
}

const ROLES = { gate: "gate", up: "up", down: "down" };

export interface MixtureWeights {
  readonly kind: "mixture";
  readonly spec: MixtureMlp;
  /** [experts, hidden] */
  readonly router: Matrix;
  /** Added to the router's outputs, [experts]. */
  readonly logitBias?: Operand | undefined;
  /** Added to scores for the choice only, [experts], where the routing is biased. */
  readonly bias: Operand | undefined;
  /** Where `interleavedGate`: added to the outputs of experts, [experts, outputs]. */
  readonly biases?: ExpertBiases | undefined;
  /** [gate; up] of each expert, [experts + stacked, 2 intermediate, hidden]. */
  readonly gateUp: Matrix;
  /** [experts + stacked, hidden, intermediate] */
  readonly down: Matrix;
  /** Experts that every row has, as parts of the shared one: the last of both stacks (expert_rows.wgsl). */
  readonly stacked: number;
  /** The shared expert, where it is not stacked. */
  readonly shared: DenseWeights | undefined;
  /** Whether the router's last row, after those of the experts, is the shared expert's gate. */
  readonly sharedGate?: boolean;
  /** See `MixtureMlp.parallelMlp`. */
  readonly parallelMlp?: ParallelMlpWeights | undefined;
}

/** An MLP that every row runs beside its experts, and the norms of both, [hidden] each. */
export interface ParallelMlpWeights {
  readonly mlp: DenseWeights;
  readonly norm: Operand;
  /** Norm of the router's input; hidden^-0.5 is multiplied into its weights. */
  readonly routerNorm: Operand;
  readonly expertsInputNorm: Operand;
  readonly expertsNorm: Operand;
  /** Factor of each expert's share, [experts]. */
  readonly expertScale: Operand;
}

export interface ExpertBiases {
  readonly gateUp: Operand;
  readonly down: Operand;
}

const SHARED_ROLES = { gate: "sharedGate", up: "sharedUp", down: "sharedDown" };

function loadMixtureMlp(source: LayerSource, spec: MixtureMlp): MixtureWeights {
  if (spec.interleavedGate) return loadInterleavedExperts(source, spec);
  const { load, label, tensor } = source;
  const { routing, shared } = spec;
  const experts = Array.from({ length: routing.numExperts }, (_, expert) => expert);
  const of = (expert: number, role: string) => tensor(`${role}.${expert}`);
  const stacks = {
    gateUp: experts.map((expert) => [of(expert, "expertGate"), of(expert, "expertUp")]),
    down: experts.map((expert) => [of(expert, "expertDown")]),
  };
  const parts = shared ? sharedParts(source, spec) : [];
  const gateUp = [...stacks.gateUp, ...parts.map(({ gateUp }) => gateUp)];
  const down = [...stacks.down, ...parts.map(({ down }) => down)];
  const together = parts.length > 0 && load.stackable(gateUp.flat()) &&
    load.stackable(down.flat());
  const taken = together ? { gateUp, down } : stacks;
  return {
    kind: "mixture",
    spec,
    router: load.table(
      `${label}.router`,
      tensor("router"),
      ...spec.sharedGate ? [tensor("sharedExpertGate")] : [],
    ),
    ...spec.sharedGate ? { sharedGate: true } : {},
    bias: isBiased(routing)
      ? load.vector(`${label}.routerBias`, flat(tensor("routerBias")))
      : undefined,
    gateUp: load.experts(`${label}.experts.gateUp`, taken.gateUp),
    down: load.experts(`${label}.experts.down`, taken.down),
    stacked: together ? parts.length : 0,
    shared: shared && !together ? loadDenseMlp(source, shared, SHARED_ROLES) : undefined,
    ...spec.parallelMlp && { parallelMlp: loadParallelMlp(source, spec.parallelMlp) },
  };
}

function loadParallelMlp(source: LayerSource, dense: DenseMlp): ParallelMlpWeights {
  const { load, label, tensor, normOffset } = source;
  const norm = (role: string) => load.norm(`${label}.${role}`, normOffset, tensor(role));
  const scale = tensor("routerScale");
  return {
    mlp: loadDenseMlp(source, dense),
    norm: norm("denseNorm"),
    routerNorm: load.scaled(`${label}.routerScale`, (scale.shape[0] ?? 1) ** -0.5, scale),
    expertsInputNorm: norm("expertsInputNorm"),
    expertsNorm: norm("expertsNorm"),
    expertScale: load.vector(`${label}.expertScale`, tensor("expertScale")),
  };
}

function loadInterleavedExperts(
  { load, label, tensor }: LayerSource,
  spec: MixtureMlp,
): MixtureWeights {
  const experts = (role: string) =>
    Array.from({ length: spec.routing.numExperts }, (_, expert) => [tensor(`${role}.${expert}`)]);
  const vector = (role: string) => load.vector(`${label}.${role}`, tensor(role));
  return {
    kind: "mixture",
    spec,
    router: load.table(`${label}.router`, tensor("router")),
    logitBias: vector("routerBias"),
    bias: undefined,
    biases: {
      gateUp: vector("expertGateUpBias"),
      down: vector("expertDownBias"),
    },
    gateUp: load.experts(`${label}.experts.gateUp`, experts("expertGateUp")),
    down: load.experts(`${label}.experts.down`, experts("expertDown")),
    stacked: 0,
    shared: undefined,
  };
}

/**
 * The shared expert as several experts of the stack, if it is as wide as a whole number of experts; otherwise none. The
 * first of these parts has the whole tensors, the others none: they only reserve places in the stack. A row of `down`
 * is cut into one row for each part.
 */
function sharedParts(
  { tensor }: LayerSource,
  spec: MixtureMlp,
): { readonly gateUp: TensorInfo[]; readonly down: TensorInfo[] }[] {
  const count = sharedExperts(spec);
  const down = tensor(SHARED_ROLES.down);
  const [rows = 0, cols = 0] = down.shape;
  const cut = { ...down, shape: [rows * count, cols / count] };
  const whole = { gateUp: [tensor(SHARED_ROLES.gate), tensor(SHARED_ROLES.up)], down: [cut] };
  return Array.from({ length: count }, (_, part) => part === 0 ? whole : { gateUp: [], down: [] });
}

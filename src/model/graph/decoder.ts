/** Decoder layers as graphs. */
import { queryScaleRows } from "../../../kernels/elementwise/elementwise.ts";
import type { LatentHeads } from "../../../kernels/mla/latent_prepare.ts";
import type { Operand } from "../../gpu/kernel.ts";
import {
  attentionSizes,
  type CachedAttention,
  convWidth,
  headsOf,
  type LatentAttention,
} from "../config/layer_config.ts";
import { PAGE } from "../device_layout.ts";
import type {
  ConvWeights,
  DecoderLayer,
  DeltaWeights,
  DenseWeights,
  HeadWeights,
  LatentWeights,
  MixtureWeights,
} from "../weights/layer_weights.ts";
import type { DecoderContext } from "./context.ts";
import {
  type GateColumns,
  type Graph,
  type KvTarget,
  type LayerKv,
  type LayerState,
  type RowsOf,
  type Value,
  value,
} from "./graph.ts";
import { type LayerEmbedding, layerEmbedding } from "./gemma4.ts";

/** A layer's weights, its keys and values, and its name in labels. */
export type PlacedLayer = DecoderLayer & {
  readonly kv: LayerKv;
  readonly label: string;
  /** The layer's own embeddings of the rows' tokens, where the model has them (Gemma 4). */
  readonly embedded?: LayerEmbedding | undefined;
};

/** Epsilon of the norms of latents, independent of `rms_norm_eps`. */
const LATENT_EPS = 1e-6;

/**
 * Records a decoder layer on the residual stream x: y = x + attention(input), then y + mlp(norm(y)). Norms are before a
 * branch, after it, or both; the caller records the one before the attention.
 *
 * @param input the attention's input: x, normed if the layer has a norm before its attention.
 */
export function decoderLayer(
  graph: Graph,
  context: DecoderContext,
  layer: PlacedLayer,
  { x, input, of, at }: {
    readonly x: Value;
    readonly input: Value;
    readonly of: RowsOf;
    /** Where the result is stored; absent: in scratch memory. */
    readonly at?: Operand | undefined;
  },
): Value {
  const branch = attentionBranch(graph, context, layer, { input, of });
  return layerEnd(graph, context, layer, { x, branch, at });
}

/** The output of a layer's attention, or of its recurrence, which is added to the residual stream. */
function attentionBranch(
  graph: Graph,
  context: DecoderContext,
  layer: PlacedLayer,
  { input, of }: { readonly input: Value; readonly of: RowsOf },
): Value {
  const { attention: weights } = layer;
  switch (weights.kind) {
    case "latent":
      return latentAttention(graph, context, layer, { weights, input, of });
    case "conv":
      return convolved(graph, layer, { weights, input, of });
    case "delta":
      return deltaNet(graph, context, layer, { weights, input, of });
    case "heads": {
      const heads = projectedHeads(graph, layer, weights, input);
      const q = storedHeads(graph, context, layer, { weights, heads, of });
      const gate = gateColumns(graph, layer, weights, { input, heads });
      return attended(graph, context, layer, { weights, q, gate, of });
    }
  }
}

/** o(norm(y) * silu(z)), where y is the output of the recurrence, see kernels/recurrent/delta_rule.wgsl. */
function deltaNet(
  graph: Graph,
  { config: { rmsNormEps: eps } }: DecoderContext,
  { kv, label }: Pick<PlacedLayer, "kv" | "label">,
  { weights: { spec, input: matrix, rates: ofRates, taps: weight, decay, norm, o }, input, of }: {
    readonly weights: DeltaWeights;
    readonly input: Value;
    readonly of: RowsOf;
  },
): Value {
  const { delta: memory, ...state } = stateOf(kv);
  if (memory === undefined) throw new Error(`${label} has no state of its heads`);
  const projected = graph.linear(input, matrix, { label: `${label}.deltaIn` });
  const rates = graph.linear(input, ofRates, { label: `${label}.deltaRates` });
  const conv = { form: "silu", cols: convWidth(spec), weight, taps: spec.taps, state, of } as const;
  const mixed = graph.shortConv(projected, conv, `${label}.conv`);
  const heads = graph.deltaRule(
    mixed,
    { rates, decay, heads: spec, memory, of },
    `${label}.delta`,
  );
  // z is in the columns after those that are convolved.
  const gate = { gate: projected, first: mixed.cols, weight: norm, headDim: spec.valueDim, eps };
  const out = graph.gatedNorm(heads, gate, `${label}.deltaNorm`);
  return graph.linear(out, o, { label: `${label}.deltaOut` });
}

/** o(C * conv(B * x)) */
function convolved(
  graph: Graph,
  { kv, label }: Pick<PlacedLayer, "kv" | "label">,
  { weights: { spec: { taps }, input: matrix, taps: weight, o }, input, of }: {
    readonly weights: ConvWeights;
    readonly input: Value;
    readonly of: RowsOf;
  },
): Value {
  const x = graph.linear(input, matrix, { label: `${label}.convIn` });
  const conv = { form: "gated", cols: x.cols / 3, weight, taps, state: stateOf(kv), of } as const;
  const out = graph.shortConv(x, conv, `${label}.conv`);
  return graph.linear(out, o, { label: `${label}.convOut` });
}

function stateOf({ state }: LayerKv): LayerState {
  if (state === undefined) throw new Error("a recurrent layer has no state");
  return state;
}

/** Records the rest of a layer after its attention. */
export function layerEnd(
  graph: Graph,
  context: DecoderContext,
  { norms, mlp, label, perLayer, embedded, scalar }: PlacedLayer,
  { x, branch, at }: {
    readonly x: Value;
    readonly branch: Value;
    readonly at?: Operand | undefined;
  },
): Value {
  const { rmsNormEps, branchNormEps = rmsNormEps, residualScale } = context.config;
  const normed = (of: Value, weight: Operand | undefined, role: string, eps = rmsNormEps) =>
    weight ? graph.norm(of, { weight, eps }, `${label}.${role}`) : of;
  const joined = (
    to: Value,
    of: Value,
    weight: Operand | undefined,
    role: string,
    at?: Operand,
  ) => {
    const out = graph.scale(
      normed(of, weight, `${role}Norm`, branchNormEps),
      residualScale,
      `${label}.${role}Scale`,
    );
    return graph.add(to, out, `${label}.${role}Add`, at);
  };
  const after = joined(x, branch, norms.afterAttention, "attention");
  const input = normed(after, norms.beforeMlp, "postNorm");
  const out = mlp.kind === "dense"
    ? denseMlp(graph, mlp, input, { label, roles: DENSE_LABELS })
    : mlp.parallelMlp
    ? parallelMlpAndExperts(graph, mlp, {
      x: after,
      input,
      parallelMlp: mlp.parallelMlp,
      eps: rmsNormEps,
      label,
    })
    : mixture(graph, mlp, input, { label });
  const to = scalar ? undefined : at;
  let stream = joined(after, out, norms.afterMlp, "mlp", perLayer ? undefined : to);
  if (perLayer && embedded) {
    const own = layerEmbedding(graph, perLayer, { x: stream, embedded, label });
    stream = joined(stream, own, perLayer.norm, "perLayer", to);
  }
  return scalar ? graph.scaleBy(stream, scalar, `${label}.scalar`, at) : stream;
}

/**
 * Gemma 4: norm(mlp(input)) + norm(experts(norm(x))). The router reads x normed with other weights.
 *
 * @param of.x the residual stream before the branch; `input` is x normed.
 */
function parallelMlpAndExperts(
  graph: Graph,
  weights: MixtureWeights,
  { x, input, parallelMlp, eps, label }: {
    readonly x: Value;
    readonly input: Value;
    readonly parallelMlp: NonNullable<MixtureWeights["parallelMlp"]>;
    readonly eps: number;
    readonly label: string;
  },
): Value {
  const norm = (of: Value, weight: Operand, role: string) =>
    graph.norm(of, { weight, eps }, `${label}.${role}`);
  const dense = denseMlp(graph, parallelMlp.mlp, input, { label, roles: DENSE_LABELS });
  const ofAll = norm(dense, parallelMlp.norm, "denseNorm");
  // Each norm is recorded right before the matmuls that read it: on matrix units it stores the scales of their rows.
  const logits = routerLogits(graph, weights, norm(x, parallelMlp.routerNorm, "routerNorm"), label);
  const ofExperts = mixture(
    graph,
    weights,
    norm(x, parallelMlp.expertsInputNorm, "expertsInputNorm"),
    {
      logits,
      label,
    },
  );
  return graph.add(
    ofAll,
    norm(ofExperts, parallelMlp.expertsNorm, "expertsNorm"),
    `${label}.addExperts`,
  );
}

/**
 * Queries, keys and values of `input` as their matmul leaves them, followed by the output gate if the layer has one.
 */
export function projectedHeads(
  graph: Graph,
  { label }: Pick<PlacedLayer, "label">,
  { qkv, bias, qkNorm }: HeadWeights,
  input: Value,
): Value {
  const rowOrder = qkNorm ? "stacked" : "rope_halves";
  return graph.linear(input, qkv, { rowOrder, bias, label: `${label}.qkv` });
}

/** Returns the rotated queries of `heads`, and stores keys and values if the layer has its own. */
export function storedHeads(
  graph: Graph,
  context: DecoderContext,
  { kv, label }: Pick<PlacedLayer, "kv" | "label">,
  { weights: { spec, qkNorm: weight }, heads, of, at }: {
    readonly weights: HeadWeights;
    /** See `projectedHeads`. */
    readonly heads: Value;
    readonly of: RowsOf;
    /** Where the queries are stored; absent: in scratch memory. */
    readonly at?: Operand | undefined;
  },
): Value {
  const eps = context.config.rmsNormEps;
  return graph.storeHeads(heads, {
    norm: weight && {
      weight,
      eps,
      whole: spec.qkNorm === "whole",
      afterRope: spec.normAfterRope,
      ...spec.sharedKv !== undefined ? NO_VALUES : spec.values && { values: spec.values },
    },
    heads: headsOf(spec, context),
    to: kvTarget(context, spec.rope, kv, of),
    at,
  }, weight ? `${label}.normRope` : `${label}.place`);
}

const NO_VALUES = { values: "none" } as const;

function kvTarget({ ropes }: DecoderContext, rope: number, kv: LayerKv, of: RowsOf): KvTarget {
  return { kv, rope: ropes[rope] as Operand, of };
}

/** The gates of attention's output, if it has some: columns behind `heads`, or outputs of a matrix of their own. */
function gateColumns(
  graph: Graph,
  { label }: Pick<PlacedLayer, "label">,
  { spec, gate: matrix }: HeadWeights,
  { input, heads }: {
    readonly input: Value;
    /** See `projectedHeads`. */
    readonly heads: Value;
  },
): GateColumns | undefined {
  if (spec.outputGate === undefined) return undefined;
  const { gating, per } = spec.outputGate;
  const of = { gating, width: per === "head" ? spec.headDim : 1 };
  return matrix
    ? { ...of, value: graph.linear(input, matrix, { label: `${label}.gate` }), first: 0 }
    : { ...of, value: heads, first: attentionSizes(spec).ownRow };
}

/** o(attention(q)) over the stored keys and values; with an output gate o(attention(q) * f(gate)). */
export function attended(
  graph: Graph,
  context: DecoderContext,
  { kv, label }: Pick<PlacedLayer, "kv" | "label">,
  { weights: { spec, o, outBias, sinks }, q, gate, of }: {
    readonly weights: HeadWeights;
    readonly q: Value;
    readonly gate?: GateColumns | undefined;
    readonly of: RowsOf;
  },
): Value {
  const { scale, cap, window } = spec;
  const heads = headsOf(spec, context);
  const scaled = scaledQueries(graph, context, spec, { q, of, label });
  const out = graph.attention(
    scaled,
    { heads, scale, cap, window, sinks, kv, of },
    `${label}.attention`,
  );
  const gated = gate ? graph.outputGate(out, gate, `${label}.outputGate`) : out;
  return graph.linear(gated, o, { bias: outBias, label: `${label}.o` });
}

/** Queries times the scale of their positions. Returns q itself if no position is far enough to be scaled. */
function scaledQueries(
  graph: Graph,
  { tablePages }: DecoderContext,
  { queryScale }: CachedAttention,
  { q, of, label }: { readonly q: Value; readonly of: RowsOf; readonly label: string },
): Value {
  if (!queryScale || tablePages * PAGE <= queryScale.length) return q;
  const { rows, cols } = q;
  const out = value(`${label}.queryScale`, rows, cols);
  graph.call({
    reads: [q],
    writes: [out],
    record: (at) => [
      queryScaleRows(
        { x: at(q), rows: of.rows, out: at(out) },
        { rows, cols, ...queryScale, label: out.label },
      ),
    ],
  }, out.label);
  return out;
}

/**
 * Multi-head latent attention (DeepSeek-V2, V3), always in the absorbed form: queries are projected into
 * the space of the latents, so attention reads the stored latents directly. A latent is one key that all
 * heads share, and its first `rank` elements are the value.
 *
 * For long prompts DeepSeek unpacks keys and values of all heads, which takes a third of the
 * multiplications of the absorbed form (n + r + v instead of 2 c + r an element pair). But it sums in
 * another order: a token would get other bits as part of a prompt than when it is decoded, and accepted
 * drafts would differ from plain decoding. So both use the same form.
 */
function latentAttention(
  graph: Graph,
  context: DecoderContext,
  { kv, label }: PlacedLayer,
  { weights, input, of }: {
    readonly weights: LatentWeights;
    readonly input: Value;
    readonly of: RowsOf;
  },
): Value {
  const { spec, kvB, o } = weights;
  const { scale, rank } = spec;
  const absorbed = latentQueries(graph, context, { kv, label }, { weights, input, of });
  const q = scaledQueries(graph, context, spec, { q: absorbed, of, label });
  const heads = { ...headsOf(spec, context), rank };
  const mixed = graph.latentAttention(q, { heads, scale, kv, of }, `${label}.attention`);
  const out = graph.latentValue(mixed, { heads: latentHeads(spec), kvB }, `${label}.value`);
  return graph.linear(out, o, { label: `${label}.o` });
}

/** Returns the absorbed queries of `input`, and stores its latents in the pages. */
function latentQueries(
  graph: Graph,
  context: DecoderContext,
  { kv, label }: Pick<PlacedLayer, "kv" | "label">,
  { weights: { spec, input: projections, kvB, kvNorm: normWeight }, input, of }: {
    readonly weights: LatentWeights;
    readonly input: Value;
    readonly of: RowsOf;
  },
): Value {
  const to = kvTarget(context, spec.rope, kv, of);
  const shared = { heads: latentHeads(spec), kvB, normWeight, eps: LATENT_EPS, to };
  if (projections.kind === "joined") {
    const both = graph.linear(input, projections.matrix, { label: `${label}.qKvA` });
    const latent = spec.numHeads * (spec.nopeDim + spec.ropeDim);
    return graph.latentPrepare(both, { ...shared, latent, queries: true }, `${label}.prepare`);
  }
  const { query, queryLatent, kvA } = projections;
  const latents = graph.linear(input, kvA, { label: `${label}.kvA` });
  graph.latentPrepare(latents, { ...shared, latent: 0, queries: false }, `${label}.latent`);
  const ofQueries = queryLatent
    ? graph.norm(
      graph.linear(input, queryLatent.matrix, { label: `${label}.qA` }),
      { weight: queryLatent.norm, eps: LATENT_EPS },
      `${label}.qANorm`,
    )
    : input;
  const queries = graph.linear(ofQueries, query, { label: `${label}.q` });
  return graph.latentPrepare(
    queries,
    { ...shared, latent: undefined, queries: true },
    `${label}.absorb`,
  );
}

function latentHeads(spec: LatentAttention): LatentHeads {
  return {
    heads: spec.numHeads,
    nope: spec.nopeDim,
    rope: spec.ropeDim,
    value: spec.valueDim,
    rank: spec.rank,
    interleaved: spec.interleaved,
  };
}

const DENSE_LABELS = { gateUp: "gateUp", down: "down" };
const SHARED_LABELS = { gateUp: "shared.gateUp", down: "shared.down" };

/** down(activation(gate x) * up x) */
function denseMlp(
  graph: Graph,
  { spec, gateUp, down }: DenseWeights,
  x: Value,
  { label, roles }: { readonly label: string; readonly roles: typeof DENSE_LABELS },
): Value {
  const both = graph.linear(x, gateUp, { rowOrder: "gate_up", label: `${label}.${roles.gateUp}` });
  const act = graph.gate(both, spec.activation, `${label}.${roles.gateUp}.gate`);
  return graph.linear(act, down, { label: `${label}.${roles.down}` });
}

/**
 * shared(x) + sum_k share_k down_k(silu(gate_k x) * up_k x) over a row's experts, in the order of their choice. The
 * experts of gpt-oss have biases, and another gate.
 */
function mixture(
  graph: Graph,
  weights: MixtureWeights,
  x: Value,
  { label, logits: given }: {
    readonly label: string;
    /** The router's logits; default: computed from x. */
    readonly logits?: Value | undefined;
  },
): Value {
  const { spec, bias, biases, gateUp, down, stacked, shared, sharedGate, parallelMlp } = weights;
  const { routing, interleavedGate, activation = "silu" } = spec;
  const jobs = { routing, shared: stacked, sharedGate: stacked > 0 && sharedGate };
  const ofAll = shared ? denseMlp(graph, shared, x, { label, roles: SHARED_LABELS }) : undefined;
  const logits = given ?? routerLogits(graph, weights, x, label);
  const counted = ofAll && sharedGate
    ? graph.outputGate(
      ofAll,
      { value: logits, first: routing.numExperts, width: ofAll.cols, gating: "sigmoid" },
      `${label}.shared.gate`,
    )
    : ofAll;
  const factors = parallelMlp?.expertScale;
  const { experts, shares } = graph.route(logits, { bias, factors, jobs }, `${label}.route`);
  const both = graph.expertLinear(
    x,
    { matrix: gateUp, experts, jobs, perJob: false },
    `${label}.experts.gateUp`,
  );
  const act = interleavedGate && biases
    ? graph.expertGate(
      both,
      { bias: biases.gateUp, experts, limit: interleavedGate.limit },
      `${label}.experts.gate`,
    )
    : graph.gate(both, activation, `${label}.experts.gate`);
  const outputs = graph.expertLinear(
    act,
    { matrix: down, experts, jobs, perJob: true },
    `${label}.experts.down`,
  );
  const added = biases && { values: biases.down, experts };
  const sum = graph.combine(outputs, shares, `${label}.experts`, added);
  return counted ? graph.add(counted, sum, `${label}.addExperts`) : sum;
}

function routerLogits(
  graph: Graph,
  { spec: { logitCap }, router, logitBias: bias }: MixtureWeights,
  x: Value,
  label: string,
): Value {
  const logits = graph.linear(x, router, { bias, label: `${label}.router` });
  return logitCap === undefined ? logits : graph.softCap(logits, logitCap, `${label}.routerCap`);
}

/** The tensors of one decoder layer: roles, names and shapes. */
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
import { isBiased, type Routing } from "../../../kernels/experts/route.ts";
import { convWidth, gateCount } from "../config/layer_config.ts";
import type {
  DeltaNet,
  DenseMlp,
  HeadAttention,
  LatentAttention,
  LayerConfig,
  MixtureMlp,
  MlpSpec,
  ShortConv,
} from "../config/layer_config.ts";
import { EXPERT, type LayerRole, type TensorNames } from "../config/tensor_names.ts";

/** One tensor that a model needs. */
export interface TensorSpec {
  /** What it is in the forward pass: `embed`, `layers.3.q`, `layers.3.inputNorm`, `d2t`, ... */
  readonly role: string;
  /** Its name in the checkpoint. */
  readonly name: string;
  /** Names it may have instead. */
  readonly aliases?: readonly string[];
  /** Matrices are [outputs, inputs], stored row by row. */
  readonly shape: readonly number[];
  readonly kind: TensorKind;
  /** The fraction of a forward's rows that read the tensor: below 1 for experts. Default 1. */
  readonly share?: number;
  /** For rows of a larger tensor (fused matrices): the first row, and how many rows the larger tensor has. */
  readonly part?: { readonly first: number; readonly of: number };
  /** Used if no tensor has its name: rows, from `first` on, of one tensor of all experts. */
  readonly stack?: ExpertStack;
}

/** One tensor of all experts of a layer, [experts, rows of each, columns]. */
export interface ExpertStack {
  /** Names that it may have. */
  readonly names: readonly string[];
  readonly shape: readonly number[];
  /** The first row, counted over the rows of all experts. */
  readonly first: number;
}

/**
 * Matrices are weights of matmuls. Tables may be too, but are never quantized: rows of the embedding are
 * looked up, kv_b_proj is read by rows and by columns, and a router is small but decides much. Ids hold
 * token ids or their offsets, all other kinds hold real numbers.
 */
export type TensorKind = "matrix" | "table" | "vector" | "ids";

/** How the tensors of one layer are named. */
export interface Place {
  readonly names: TensorNames;
  /** Prefix of roles: `layers.3`. */
  readonly roles: string;
  /** Prefix of module names. */
  readonly prefix: string;
  readonly hiddenSize: number;
}

/** Tensors of a decoder layer, in the order of the forward pass. */
export function layerTensors(spec: LayerConfig, at: Place): TensorSpec[] {
  const before = spec.norms !== "after";
  const after = spec.norms !== "before";
  const norm = (role: LayerRole) => normTensor(role, at, at.hiddenSize);
  return [
    ...before ? [norm("inputNorm")] : [],
    ...attentionTensors(spec, at, at.hiddenSize),
    ...after ? [norm("attentionNorm")] : [],
    ...mlpTensors(spec, at),
    ...after ? [norm("mlpNorm")] : [],
    ...spec.perLayerWidth === undefined ? [] : [
      moduleMatrix("perLayerGate", at, [spec.perLayerWidth, at.hiddenSize]),
      moduleMatrix("perLayerProjection", at, [at.hiddenSize, spec.perLayerWidth]),
      norm("perLayerNorm"),
    ],
    ...spec.scalar ? [numbers("layerScalar", at, 1)] : [],
  ];
}

/** @param width columns of the attention's input. */
export function attentionTensors(
  { attention }: LayerConfig,
  at: Place,
  width: number,
): TensorSpec[] {
  switch (attention.kind) {
    case "heads":
      return headTensors(attention, at, width);
    case "latent":
      return latentTensors(attention, at, width);
    case "conv":
      return convTensors(attention, at, width);
    case "delta":
      return deltaTensors(attention, at, width);
  }
}

function deltaTensors(spec: DeltaNet, at: Place, width: number): TensorSpec[] {
  const { valueHeads, valueDim, taps, fused } = spec;
  const values = valueHeads * valueDim;
  const bare = (role: LayerRole) =>
    vector(`${at.roles}.${role}`, `${at.prefix}.${at.names.modules[role]}`, valueHeads);
  // Decays are exponentials of these outputs and act on all later tokens, so the matrices are never quantized.
  const rates = (role: LayerRole, rows: number): TensorSpec => ({
    ...moduleMatrix(role, at, [rows, width]),
    kind: "table",
  });
  const inputs = fused
    ? [
      ...runsOf(moduleMatrix("deltaQkvz", at, [0, width]), qkvzRuns(spec)),
      ...runsOf(rates("deltaBa", 0), ratesRuns(spec)),
    ]
    : [
      ...matrices([["deltaQkv", convWidth(spec)]], at, width),
      ...matrices([["deltaZ", values]], at, width),
      rates("deltaB", valueHeads),
      rates("deltaA", valueHeads),
    ];
  return [
    ...inputs,
    tapsTensor("deltaTaps", at, [convWidth(spec), taps]),
    bare("deltaLog"),
    bare("deltaBias"),
    normTensor("deltaNorm", at, valueDim),
    ...matrices([["deltaOut", at.hiddenSize]], at, values),
  ];
}

/** One spec for each run of a tensor's rows; its role is the tensor's role and the run's number. */
function runsOf({ role, shape, ...spec }: TensorSpec, { of, runs }: RowRuns): TensorSpec[] {
  return runs.map(([first, rows], i) => ({
    ...spec,
    role: `${role}.${i}`,
    shape: [rows, ...shape.slice(1)],
    part: { first, of },
  }));
}

function convTensors({ width, taps }: ShortConv, at: Place, cols: number): TensorSpec[] {
  return [
    ...matrices([["convIn", 3 * width]], at, cols),
    tapsTensor("convTaps", at, [width, taps]),
    ...matrices([["convOut", at.hiddenSize]], at, width),
  ];
}

/** Weights of a depthwise convolution: each column has its own taps. */
function tapsTensor(
  role: LayerRole,
  at: Place,
  [columns, taps]: readonly [number, number],
): TensorSpec {
  const name = `${at.prefix}.${at.names.modules[role]}.weight`;
  return { role: `${at.roles}.${role}`, name, shape: [columns, 1, taps], kind: "vector" };
}

function headTensors(attention: HeadAttention, at: Place, width: number): TensorSpec[] {
  const { numHeads, numKvHeads, headDim, bias, outBias, sinks, qkNorm, qkGains } = attention;
  const queries = numHeads * headDim;
  const keys = numKvHeads * headDim;
  const own = attention.sharedKv === undefined;
  const qkv: RowsOfRole[] = [
    ["q", queries],
    ...own ? [["k", keys] as const] : [],
    ...own && attention.values !== "keys" ? [["v", keys] as const] : [],
  ];
  const whole = qkNorm === "whole";
  const gates = gateCount(attention);
  const gate = gates > 0 ? matrices([["outputGate", gates]], at, width) : [];
  if (hasRuns(attention)) {
    const norm = (role: LayerRole) => runsOf(normTensor(role, at, 0), normRuns(attention));
    const q = moduleMatrix("q", at, [0, width]);
    return [
      ...runsOf(q, queryRuns(attention)),
      ...runsOf(moduleMatrix("k", at, [0, width]), keyRuns(attention)),
      ...matrices([["v", keys]], at, width),
      ...attention.gateInQuery
        ? runsOf({ ...q, role: `${at.roles}.outputGate` }, gateRuns(attention))
        : gate,
      ...qkNorm === "none" ? [] : [...norm("qNorm"), ...norm("kNorm")],
      ...matrices([["o", at.hiddenSize]], at, queries),
    ];
  }
  return [
    ...matrices(qkv, at, width),
    ...bias ? qkv.map(([role, rows]) => biasTensor(role, at, rows)) : [],
    ...qkNorm === "none" || qkGains ? [] : [
      normTensor("qNorm", at, whole ? queries : headDim),
      ...own ? [normTensor("kNorm", at, whole ? keys : headDim)] : [],
    ],
    ...sinks ? [numbers("sinks", at, numHeads)] : [],
    ...gate,
    ...matrices([["o", at.hiddenSize]], at, queries),
    ...outBias ? [biasTensor("o", at, at.hiddenSize)] : [],
  ];
}

function latentTensors(spec: LatentAttention, at: Place, width: number): TensorSpec[] {
  const { numHeads, nopeDim, ropeDim, valueDim, rank, queryRank } = spec;
  const queries = numHeads * (nopeDim + ropeDim);
  return [
    ...queryRank === undefined ? matrices([["q", queries]], at, width) : [
      ...matrices([["qA", queryRank]], at, width),
      normTensor("qANorm", at, queryRank),
      ...matrices([["qB", queries]], at, queryRank),
    ],
    ...matrices([["kvA", rank + ropeDim]], at, width),
    normTensor("kvANorm", at, rank),
    { ...moduleMatrix("kvB", at, [numHeads * (nopeDim + valueDim), rank]), kind: "table" },
    ...matrices([["o", at.hiddenSize]], at, numHeads * valueDim),
  ];
}

/** The norm before an MLP, where there is one, and the MLP. */
export function mlpTensors({ mlp, norms }: LayerConfig, at: Place): TensorSpec[] {
  const { hiddenSize } = at;
  return [
    ...norms === "after" ? [] : [normTensor("postNorm", at, hiddenSize)],
    ...tensorsOfMlp(mlp, at),
  ];
}

const DENSE_ROLES = { gate: "gate", up: "up", down: "down" } as const;

function tensorsOfMlp(mlp: MlpSpec, at: Place): TensorSpec[] {
  switch (mlp.kind) {
    case "dense":
      return gatedTensors(mlp, at, DENSE_ROLES);
    case "mixture":
      return mixtureTensors(mlp, at);
  }
}

function mixtureTensors(spec: MixtureMlp, at: Place): TensorSpec[] {
  if (spec.interleavedGate) return interleavedExperts(spec, at);
  const { routing, shared, parallelMlp } = spec;
  const { numExperts, topK } = routing;
  const router = moduleMatrix("router", at, [numExperts, at.hiddenSize]);
  const sharedRoles = { gate: "sharedGate", up: "sharedUp", down: "sharedDown" } as const;
  const expertRoles = { gate: "expertGate", up: "expertUp", down: "expertDown" } as const;
  const ofExpert = gatedTensors(spec, at, expertRoles);
  const share = topK / numExperts;
  const stacks = expertStacks(spec, at);
  return [
    ...parallelMlp
      ? [
        ...gatedTensors(parallelMlp, at, DENSE_ROLES),
        normTensor("denseNorm", at, at.hiddenSize),
        numbers("routerScale", at, at.hiddenSize),
        numbers("expertScale", at, numExperts),
        normTensor("expertsInputNorm", at, at.hiddenSize),
        normTensor("expertsNorm", at, at.hiddenSize),
      ]
      : [],
    { ...router, kind: "table" },
    ...isBiased(routing) ? [routerBias(routing, at)] : [],
    ...Array.from(
      { length: numExperts },
      (_, expert) =>
        ofExpert.map((spec, i): TensorSpec => ({
          ...spec,
          role: `${spec.role}.${expert}`,
          name: spec.name.replace(EXPERT, `${expert}`),
          share,
          ...stacks(expert)[i],
        })),
    ).flat(),
    ...shared ? gatedTensors(shared, at, sharedRoles) : [],
    ...spec.sharedGate
      ? [{ ...moduleMatrix("sharedExpertGate", at, [1, at.hiddenSize]), kind: "table" } as const]
      : [],
  ];
}

/** ERNIE's bias has a row for each group of experts, of which there is one. */
function routerBias({ scores, numExperts }: Routing, at: Place): TensorSpec {
  const bias = numbers("routerBias", at, numExperts);
  return scores === "biased_softmax" ? { ...bias, shape: [1, numExperts] } : bias;
}

/** Each matrix or bias of all experts is one tensor, in which an expert has consecutive rows (gpt-oss). */
function interleavedExperts(
  { routing: { numExperts, topK }, intermediateSize }: MixtureMlp,
  at: Place,
): TensorSpec[] {
  const { hiddenSize, names: { expertStacks } } = at;
  const share = topK / numExperts;
  const gateUp = { role: "expertGateUp", name: `${at.prefix}.${expertStacks.gateUp}` };
  const down = { role: "expertDown", name: `${at.prefix}.${expertStacks.down}` };
  const part = (of: typeof down, expert: number, rows: number, cols: number): TensorSpec => ({
    ...matrix(`${at.roles}.${of.role}.${expert}`, of.name, [rows, cols]),
    share,
    part: { first: expert * rows, of: numExperts * rows },
  });
  const biasOf = ({ role, name }: typeof down, rows: number): TensorSpec => ({
    ...vector(`${at.roles}.${role}Bias`, `${name}_bias`, numExperts * rows),
    share,
  });
  const both = 2 * intermediateSize;
  return [
    { ...moduleMatrix("router", at, [numExperts, hiddenSize]), kind: "table" },
    biasTensor("router", at, numExperts),
    ...Array.from({ length: numExperts }, (_, expert) => [
      part(gateUp, expert, both, hiddenSize),
      part(down, expert, hiddenSize, intermediateSize),
    ]).flat(),
    biasOf(gateUp, both),
    biasOf(down, hiddenSize),
  ];
}

/** Where gate, up and down of an expert are in tensors of all experts: gate rows come before the up rows. */
function expertStacks({ routing, intermediateSize }: MixtureMlp, at: Place) {
  const { numExperts } = routing;
  const { hiddenSize, prefix, names: { expertStacks } } = at;
  const gateUp = {
    names: [`${prefix}.${expertStacks.gateUp}`],
    shape: [numExperts, 2 * intermediateSize, hiddenSize],
  };
  const down = {
    names: [`${prefix}.${expertStacks.down}`],
    shape: [numExperts, hiddenSize, intermediateSize],
  };
  return (expert: number): readonly Pick<TensorSpec, "stack">[] => {
    const first = expert * 2 * intermediateSize;
    return [
      { stack: { ...gateUp, first } },
      { stack: { ...gateUp, first: first + intermediateSize } },
      { stack: { ...down, first: expert * hiddenSize } },
    ];
  };
}

function gatedTensors(
  { intermediateSize }: Pick<DenseMlp, "intermediateSize">,
  at: Place,
  { gate, up, down }: Readonly<Record<"gate" | "up" | "down", LayerRole>>,
): TensorSpec[] {
  return [
    ...matrices([[gate, intermediateSize], [up, intermediateSize]], at, at.hiddenSize),
    ...matrices([[down, at.hiddenSize]], at, intermediateSize),
  ];
}

type RowsOfRole = readonly [role: LayerRole, rows: number];

/** Matrices of one width. Roles that share a module are consecutive rows of its matrix. */
function matrices(roles: readonly RowsOfRole[], at: Place, cols: number): TensorSpec[] {
  const moduleOf = ([role]: RowsOfRole) => at.names.modules[role];
  const groups = [...Map.groupBy(roles, moduleOf)];
  return groups.flatMap(([module, group]) => {
    const of = group.reduce((sum, [, rows]) => sum + rows, 0);
    let first = 0;
    return group.map(([role, rows]) => {
      const name = `${at.prefix}.${module}.weight`;
      const spec = matrix(`${at.roles}.${role}`, name, [rows, cols]);
      const part = { first, of };
      first += rows;
      return group.length > 1 ? { ...spec, part } : spec;
    });
  });
}

/** A matrix that shares its module with no other role. */
function moduleMatrix(role: LayerRole, at: Place, shape: readonly [number, number]): TensorSpec {
  return matrix(`${at.roles}.${role}`, `${at.prefix}.${at.names.modules[role]}.weight`, shape);
}

function normTensor(role: LayerRole, at: Place, size: number): TensorSpec {
  return vector(`${at.roles}.${role}`, `${at.prefix}.${at.names.modules[role]}.weight`, size);
}

/** A vector outside any module: the name listed for the role is the tensor's whole name. */
function numbers(role: LayerRole, at: Place, size: number): TensorSpec {
  return vector(`${at.roles}.${role}`, `${at.prefix}.${at.names.modules[role]}`, size);
}

/** The bias of a matrix; its role is the matrix's role with "Bias" appended. */
function biasTensor(role: LayerRole, at: Place, size: number): TensorSpec {
  return vector(`${at.roles}.${role}Bias`, `${at.prefix}.${at.names.modules[role]}.bias`, size);
}

export function matrix(role: string, name: string, shape: readonly [number, number]): TensorSpec {
  return { role, name, shape, kind: "matrix" };
}

export function table(role: string, name: string, shape: readonly [number, number]): TensorSpec {
  return { role, name, shape, kind: "table" };
}

export function vector(role: string, name: string, size: number): TensorSpec {
  return { role, name, shape: [size], kind: "vector" };
}

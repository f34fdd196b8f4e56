import { embed } from "../../../kernels/norm/embed.ts";
import { capEpilogue, matmul } from "../../../kernels/matmul/matmul.ts";
import { copyRows, gatherRows } from "../../../kernels/round/move_rows.ts";
import { type NormInput, verifiesRows } from "../../../kernels/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { ModelConfig } from "../config/types.ts";
import {
  attentionBlock,
  type DecoderLayer,
  firstOfAttention,
  loadLayer,
  mlpBlock,
  type PlacedLayer,
} from "./decoder.ts";
import { type BranchInput, enterBranch } from "./branch_input.ts";
import {
  type DecoderContext,
  type LayerKv,
  norm,
  type RowsOf,
  scalesOf,
} from "./decoder_context.ts";
import { findTensor, targetTensors, type TensorSpec } from "../weights/tensors.ts";
import type { Loader } from "../weights/loader.ts";

/** Weights of a target. */
export interface TargetWeights {
  /** [vocab, hidden] */
  readonly embed: Table;
  /** `inputNorm` is undefined where branches are normed after alone. */
  readonly layers: readonly (DecoderLayer & { readonly inputNorm: Operand | undefined })[];
  /** [hidden] */
  readonly norm: Operand;
  /** [vocab, hidden]; the embedding itself where tied. */
  readonly head: Matrix;
}

/** Finds a checkpoint's tensor by the role a spec gives it. */
export function byRole(
  checkpoint: Pick<Checkpoint, "name" | "tensors">,
  specs: readonly TensorSpec[],
): (role: string) => TensorInfo {
  const roles = new Map(specs.map((spec) => [spec.role, spec]));
  return (role) => {
    const spec = roles.get(role);
    const tensor = spec && findTensor(checkpoint, spec);
    if (!tensor) throw new Error(`${checkpoint.name} has no tensor for the role ${role}`);
    return tensor;
  };
}

/**
 * Loads the target. The tensors were checked before (checkTensors). It yields between layers, so that the
 * caller can let others run.
 */
export function* loadTarget(
  load: Loader,
  checkpoint: Pick<Checkpoint, "name" | "tensors">,
  config: ModelConfig,
): Generator<void, TargetWeights> {
  const tensor = byRole(checkpoint, targetTensors(config));
  const table = load.table("embed", tensor("embed"));
  const { normOffset } = config;
  const layers: TargetWeights["layers"][number][] = [];
  for (const [i, spec] of config.layers.entries()) {
    yield;
    const label = `layers.${i}`;
    const ofLayer = (role: string) => tensor(`${label}.${role}`);
    layers.push({
      ...loadLayer({ load, label, tensor: ofLayer, normOffset }, spec, config),
      inputNorm: spec.norms === "after"
        ? undefined
        : load.norm(`${label}.inputNorm`, normOffset, ofLayer("inputNorm")),
    });
  }
  yield;
  return {
    embed: table,
    layers,
    norm: load.norm("norm", normOffset, tensor("norm")),
    head: config.tied ? table : load.matrix("head", [tensor("head")]),
  };
}

/** The target and what its plans write to. */
export interface Target extends DecoderContext {
  readonly weights: TargetWeights;
  readonly kv: readonly LayerKv[];
  /** Rows after the final norm, [rows, hidden]: the head's input and EAGLE-1's features. */
  readonly final: Operand;
  /** [rows that get logits, head.rows] */
  readonly logits: Operand;
  /** Largest logits of slices, u32 [rows that get logits, slicePartialWords(vocab)]. */
  readonly partials: Operand;
  /** What rows that sample have gathered, u32 [rows that get logits, gatheredWords(vocab, lanes)], see `choose`. */
  readonly gathered?: Operand | undefined;
}

/** Where a forward writes copies of the residual stream entering a layer. */
export interface AuxHidden {
  readonly layer: number;
  readonly out: Operand;
  /** Row stride of out. */
  readonly outCols: number;
  readonly outFirst: number;
}

/** Whether `targetBody` may write the rows of chains itself, see `RowsOf`. */
export function bodyVerifies({ weights: { embed, layers }, scratch, tuning }: Target): boolean {
  const buffers = VERIFYING_BUFFERS + (scratch.scales ? NOTED_BUFFERS : 0);
  return layers[0]?.inputNorm !== undefined && verifiesRows(embed) &&
    buffers <= tuning.storageBuffers;
}

/** Storage buffers of a norm that writes rows of chains and keeps its input; and of scales that it notes. */
const VERIFYING_BUFFERS = 8;
const NOTED_BUFFERS = 2;

/**
 * Rows in, `final` out: embedding, layers, final norm. Each of `auxHidden` is a copy of what enters
 * its layer.
 */
export function targetBody(
  target: Target,
  of: RowsOf,
  auxHidden: readonly AuxHidden[],
): Dispatch[] {
  const { plan, stream } = targetLayers(target, of, auxHidden);
  return [...plan, ...targetNorm(target, stream, of.count)];
}

/** The final norm of the first `count` rows of the residual stream, into `final`. */
export function targetNorm(target: Target, from: NormInput, count: number): Dispatch[] {
  const { weights: { norm: weight }, final: out, scratch: { scales: noted } } = target;
  return norm(target, { from, weight, out, noted }, count, "norm");
}

/** `targetBody` without the final norm, and the residual stream that is still to be normed. */
export function targetLayers(
  target: Target,
  of: RowsOf,
  auxHidden: readonly AuxHidden[],
): { readonly plan: Dispatch[]; readonly stream: NormInput } {
  const { weights, config } = target;
  const { rows, count, perSlot } = of;
  const verified = of.verified && { ...of.verified, perSlot };
  let from: NormInput = { matrix: weights.embed, rows, scale: config.embedScale, verified };
  const plan: Dispatch[] = [];
  for (const [i, weight] of weights.layers.entries()) {
    const layer = { ...weight, kv: target.kv[i] as LayerKv, label: `layers.${i}` };
    const copies = auxHidden.filter(({ layer }) => layer === i);
    const entry = { from, weight: weight.inputNorm, auxHidden: copies };
    const entered = layerInput(target, layer, entry, count);
    const attention = attentionBlock(target, layer, entered.input, of);
    const mlp = mlpBlock(target, layer, { before: attention, rows: count, end: "sums" });
    plan.push(...entered.plan, ...mlp.plan);
    from = mlp.stream;
  }
  return { plan, stream: from };
}

interface LayerInput {
  /** What enters the layer: the residual stream, or at first the embedding. */
  readonly from: NormInput;
  readonly weight: Operand | undefined;
  readonly auxHidden: readonly AuxHidden[];
}

/** What enters the layer, and its norm where the layer has one. */
function layerInput(
  target: Target,
  layer: PlacedLayer,
  { from, weight, auxHidden }: LayerInput,
  count: number,
): { readonly plan: Dispatch[]; readonly input: BranchInput } {
  const { label } = layer;
  const { x } = target.scratch;
  const first = "matrix" in from;
  if (weight === undefined) {
    // Branches are normed after: the stream is x already.
    const aux = { x, count, label: `${label}.auxHidden` };
    const plan = [
      ...first ? embed({ ...from, out: x }, { count, scale: from.scale ?? 1, label: "embed" }) : [],
      ...copyAuxHidden(target, auxHidden, aux),
    ];
    return { plan, input: { x, stream: x } };
  }
  // The norm makes one copy itself, the first: the embedding becomes the residual stream.
  const copies = auxHidden.map(({ out, outCols, outFirst }) => ({ out, outCols, outFirst }));
  const [kept, ...others] = first ? [{ out: x }, ...copies] : copies;
  const keep = kept && { what: "input", ...kept } as const;
  const { plan, input } = enterBranch(
    target,
    { from, weight, keep, first: firstOfAttention(layer) },
    count,
    `${label}.inputNorm`,
  );
  const aux = { x: input.stream, count, label: `${label}.auxHidden` };
  return { plan: [...plan, ...copyAuxHidden(target, others, aux)], input };
}

function copyAuxHidden(
  { config: { hiddenSize: cols } }: Target,
  auxHidden: readonly {
    readonly out: Operand;
    readonly outCols?: number;
    readonly outFirst?: number;
  }[],
  { x, count: rows, label }: {
    readonly x: Operand;
    readonly count: number;
    readonly label: string;
  },
): Dispatch[] {
  return auxHidden.map(({ out, outCols = cols, outFirst = 0 }) =>
    copyRows({ x, out }, { rows, cols, outCols, outFirst, label })
  );
}

/** Logits of the first `count` rows of `final`, or of others. */
export function targetHead(target: Target, count: number, from?: Operand): Dispatch[] {
  const { weights: { head }, logits: out, tuning, config: { logitCap } } = target;
  // The final norm was the last to note scales.
  const xScales = from ? undefined : scalesOf(target, "normed", count);
  return matmul({ matrix: head, x: from ?? target.final, xScales, out }, {
    rows: count,
    epilogue: logitCap === undefined ? "store" : capEpilogue(logitCap),
    tuning,
    label: "head",
  });
}

/** Logits of the one row `last[0]` of `final`, gathered into `scratch.normed` first. */
export function targetHeadAt(target: Target, last: Operand): Dispatch[] {
  const { config, scratch, final } = target;
  return [
    gatherRows({ x: final, index: last, out: scratch.normed }, {
      rows: 1,
      cols: config.hiddenSize,
      label: "head.row",
    }),
    ...targetHead(target, 1, scratch.normed),
  ];
}

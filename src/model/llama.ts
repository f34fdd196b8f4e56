import { matmul } from "../../shaders/matmul.ts";
import { copyRows, gatherRows } from "../../shaders/move_rows.ts";
import type { NormInput } from "../../shaders/rms_norm.ts";
import type { Dispatch, Operand } from "../gpu/kernel.ts";
import type { Matrix, Table } from "../gpu/matrix.ts";
import type { Checkpoint, TensorInfo } from "./checkpoint.ts";
import type { ModelConfig } from "./config.ts";
import {
  attentionBlock,
  type DecoderContext,
  type DecoderLayer,
  type LayerKv,
  loadLayer,
  mlpBlock,
  norm,
  type RowsOf,
  withSums,
} from "./decoder.ts";
import type { LayerSpec } from "./layer_spec.ts";
import { findTensor, targetTensors, type TensorSpec } from "./tensors.ts";
import type { Loader } from "./weights.ts";

/** Weights of a Llama or Qwen3 target. */
export interface TargetWeights {
  /** [vocab, hidden] */
  readonly embed: Table;
  readonly layers: readonly (DecoderLayer & { readonly inputNorm: Operand })[];
  /** [hidden] */
  readonly norm: Operand;
  /** [vocab, hidden]; the embedding itself where tied. */
  readonly head: Matrix;
}

/** Finds a checkpoint's tensor by the role a spec gives it. */
export function byRole(
  checkpoint: Checkpoint,
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
 * Loads the target. The tensors were checked before (checkTensors).
 *
 * @param pause awaited between layers, so that the caller can let others run.
 */
export async function loadTarget(
  load: Loader,
  checkpoint: Checkpoint,
  config: ModelConfig,
  pause: () => Promise<void>,
): Promise<TargetWeights> {
  const tensor = byRole(checkpoint, targetTensors(config));
  const table = load.table("embed", tensor("embed"));
  const layers = [];
  for (let i = 0; i < config.layers.length; i++) {
    await pause();
    layers.push({
      ...loadLayer(load, `layers.${i}`, tensor, config.layers[i] as LayerSpec),
      inputNorm: load.vector(`layers.${i}.inputNorm`, tensor(`layers.${i}.inputNorm`)),
    });
  }
  await pause();
  return {
    embed: table,
    layers,
    norm: load.vector("norm", tensor("norm")),
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
  /** Largest logits of slices, u32 [rows that get logits, peakWords(vocab)]. */
  readonly peaks: Operand;
}

/** Where a forward leaves copies of the residual stream entering a layer. */
export interface Tap {
  readonly layer: number;
  readonly out: Operand;
  /** Row stride of out. */
  readonly outCols: number;
  readonly outFirst: number;
}

/** Rows in, `final` out: embedding, layers, final norm. Taps copy what enters their layer. */
export function targetBody(target: Target, of: RowsOf, taps: readonly Tap[]): Dispatch[] {
  const { weights, scratch: { normed } } = target;
  const layers = weights.layers.map((weight, i) => {
    const layer = { ...weight, kv: target.kv[i] as LayerKv, label: `layers.${i}` };
    const taken = taps.filter((tap) => tap.layer === i);
    return [
      ...layerInput(target, of, { i, weight: weight.inputNorm, taps: taken }),
      ...attentionBlock(target, layer, normed, of),
      ...mlpBlock(target, layer, of.count, "sums"),
    ];
  });
  const from = entering(target, weights.layers.length);
  return [
    ...layers.flat(),
    ...norm(target, { from, weight: weights.norm, out: target.final }, of.count, "norm"),
  ];
}

/**
 * normed = inputNorm(what enters layer i): the residual stream, or at first the embedding, which
 * then also becomes the residual stream. The norm makes one copy itself, the first.
 */
function layerInput(
  target: Target,
  { rows, count }: RowsOf,
  { i, weight, taps }: {
    readonly i: number;
    readonly weight: Operand;
    readonly taps: readonly Tap[];
  },
): Dispatch[] {
  const { weights: { embed: matrix }, scratch: { x, normed }, config: { hiddenSize: cols } } =
    target;
  const copies = taps.map(({ out, outCols, outFirst }) => ({ out, outCols, outFirst }));
  const [first, ...others] = i === 0 ? [{ out: x }, ...copies] : copies;
  const from = i === 0 ? { matrix, rows } : entering(target, i);
  const keep = first && { what: "input", ...first } as const;
  return [
    ...norm(target, { from, weight, out: normed, keep }, count, `layers.${i}.inputNorm`),
    ...others.map(({ out, ...window }) =>
      copyRows({ x, out }, { rows: count, cols, ...window, label: `layers.${i}.tap` })
    ),
  ];
}

/** The residual stream after layer i - 1, whose MLP left its part in `sums`. */
function entering(target: Target, i: number): NormInput {
  return withSums(target, (target.weights.layers[i - 1] as DecoderLayer).down);
}

/** Logits of the first `count` rows of `final`. */
export function targetHead(
  target: Target,
  count: number,
  from: Operand = target.final,
): Dispatch[] {
  const { weights: { head }, logits: out, tuning } = target;
  return matmul({ matrix: head, x: from, out }, {
    rows: count,
    finish: "store",
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

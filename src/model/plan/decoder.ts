/** One decoder layer: its weights, and its two branches as plans. */
import type { NormInput } from "../../../kernels/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { ModelConfig } from "../config/types.ts";
import {
  type Branch,
  type DecoderContext,
  type End,
  type LastMatmul,
  type LayerKv,
  type LayerSource,
  norm,
  type RowsOf,
} from "./decoder_context.ts";
import { denseMlp, type DenseWeights, loadDenseMlp, relayedMlp } from "./dense_mlp.ts";
import { headAttention, type HeadWeights, loadHeadAttention } from "./head_attention.ts";
import { latentAttention, type LatentWeights, loadLatentAttention } from "./latent_attention.ts";
import { type BranchInput, enterBranch, type FirstMatmul } from "./branch_input.ts";
import { QKV_BUFFERS } from "../../../kernels/matmul/qkv.ts";
import type { LayerConfig } from "../config/layer_config.ts";
import { type MixtureBranch, mixtureMlp } from "./mixture_mlp.ts";
import { loadMixtureMlp, type MixtureWeights } from "./mixture_weights.ts";

/** Weights of one decoder layer. Each kind of attention and of MLP has its own. */
export interface DecoderLayer {
  readonly attention: HeadWeights | LatentWeights;
  readonly mlp: DenseWeights | MixtureWeights;
  /**
   * Of the attention's output and of the MLP's input and output, [hidden] each; undefined where
   * there is none. The attention's input is its caller's.
   */
  readonly norms: {
    readonly attention: Operand | undefined;
    readonly post: Operand | undefined;
    readonly mlp: Operand | undefined;
  };
}

/** A layer's weights, its keys and values, and its name in labels. */
export type PlacedLayer = DecoderLayer & { readonly kv: LayerKv; readonly label: string };

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
    attention: spec.attention.kind === "latent"
      ? loadLatentAttention(source, spec.attention)
      : loadHeadAttention(source, spec.attention, ropes),
    mlp: spec.mlp.kind === "mixture"
      ? loadMixtureMlp(source, spec.mlp)
      : loadDenseMlp(source, spec.mlp),
    norms: {
      attention: normIf(after, "attentionNorm"),
      post: normIf(before, "postNorm"),
      mlp: normIf(after, "mlpNorm"),
    },
  };
}

/** A plan, and the residual stream after it as the next norm reads it. */
export interface Block {
  readonly plan: Dispatch[];
  readonly stream: NormInput;
  /** See `Branch`: its outputs are the stream's sums. */
  readonly last?: LastMatmul | undefined;
}

/**
 * x + attention(input), normed where the layer norms after; before, by its caller or as `input` says.
 *
 * @param stored as in `headAttention`: of latents nothing is.
 */
export function attentionBlock(
  context: DecoderContext,
  layer: PlacedLayer,
  input: BranchInput,
  of: RowsOf,
  stored: boolean = false,
): Block {
  const { attention: weights, norms, kv, label } = layer;
  const left = weights.kind === "latent"
    ? latentAttention(context, { weights, kv, label }, { input, of })
    : headAttention(context, { weights, kv, label }, { input, of, stored });
  return joined(context, left, norms.attention, {
    ...input,
    rows: of.count,
    label: `${label}.attentionNorm`,
  });
}

/** The matmul that an attention begins with, where it alone reads the layer's normed input. */
export function firstOfAttention({ attention }: DecoderLayer): FirstMatmul | undefined {
  if (attention.kind === "latent") {
    const { input } = attention;
    return input.kind === "joined" ? { matrix: input.matrix, bound: 0, lowers: true } : undefined;
  }
  const { qkv: matrix, qkNorm, bias } = attention;
  return { matrix, bound: qkNorm ? 0 : QKV_BUFFERS + Number(bias !== undefined), lowers: true };
}

function firstOfMlp({ mlp }: DecoderLayer, end: End): FirstMatmul | undefined {
  // A sum that goes to x at once needs the stream there.
  return mlp.kind === "dense" && end === "sums"
    ? { matrix: mlp.gateUp, bound: 0, lowers: false }
    : undefined;
}

/** What was before, and x + mlp(x), normed before, after or both; x is the residual stream. */
export function mlpBlock(
  context: DecoderContext,
  layer: PlacedLayer,
  { before: { stream: from, ...before }, rows, end }: {
    readonly before: Block;
    readonly rows: number;
    /** "x" where no norm follows; a branch that is normed itself needs `sums`. */
    readonly end: End;
  },
): Block {
  const { mlp, norms, label } = layer;
  const { x } = context.scratch;
  const place = { rows, label: `${label}.mlpNorm` };
  if (mlp.kind === "mixture") {
    const normFollows = norms.mlp === undefined;
    const of = { stream: from, norm: norms.post, rows, end, normFollows, label };
    const left = mixtureMlp(context, mlp, of);
    const plan = [...before.plan, ...left.plan];
    return joined(context, { ...left, plan }, norms.mlp, { ...place, stream: left.stream });
  }
  const entered = norms.post
    ? enterBranch(
      context,
      { from, weight: norms.post, first: firstOfMlp(layer, end) },
      rows,
      `${label}.postNorm`,
    )
    : { plan: [], input: { x, stream: x } };
  const { input } = entered;
  const together = rows === 1 && end === "sums"
    ? relayedMlp(context, mlp, { label, input, last: before.last })
    : undefined;
  const left = together ?? denseMlp(context, mlp, { rows, end, label, input });
  const apart = [...entered.plan, ...left.plan];
  const plan = before.last && together?.all
    ? withLast(before.plan, before.last, { apart, all: together.all })
    : [...before.plan, ...apart];
  return joined(context, { ...left, plan }, norms.mlp, { ...place, stream: input.stream });
}

/** `before` and `apart`; in slots with few cells, `all` in the place of the last matmul of the one and of the other. */
function withLast(
  before: readonly Dispatch[],
  { cells, apart: last }: LastMatmul,
  { apart, all }: { readonly apart: readonly Dispatch[]; readonly all: Dispatch },
): Dispatch[] {
  return [
    ...before.filter((each) => !last.includes(each)),
    { ...all, forCells: { from: 0, upTo: cells } },
    ...apart.map((each) => ({ ...each, forCells: { from: cells + 1, upTo: Infinity } })),
  ];
}

/**
 * What a branch left joins the residual stream: with the next norm, or where branches are normed,
 * at once.
 */
function joined(
  context: DecoderContext,
  { plan, splitK, sums = context.scratch.sums, outputs, last }:
    & Branch
    & Pick<MixtureBranch, "outputs">,
  weight: Operand | undefined,
  { rows, stream: x, label }: Pick<BranchInput, "stream"> & {
    readonly rows: number;
    readonly label: string;
  },
): Block {
  if (outputs) return { plan, stream: outputs };
  if (splitK === 0) return { plan, stream: { x } };
  if (weight === undefined) return { plan, stream: { x, sums, splitK }, last };
  const adding = { from: { sums, splitK }, weight, out: x, put: "add" } as const;
  return { plan: [...plan, ...norm(context, adding, rows, label)], stream: { x } };
}

/**
 * Multi-head latent attention (DeepSeek-V2, V3), in the absorbed form alone: queries are brought into
 * the space of the latents, so attention reads what is kept, one key that all heads share and whose
 * first `rank` elements are the value.
 *
 * DeepSeek unpacks keys and values of all heads for long prompts, which takes a third of the
 * multiplications of the absorbed form (n + r + v instead of 2 c + r an element pair). But it sums in
 * another order: a token would have other bits when it was part of a prompt than when it was decoded,
 * and what speculation keeps would not be what plain decoding computes. So one form serves all.
 */
import { attention } from "../../../shaders/attention/attention.ts";
import {
  latentAttention as tiledAttention,
  tilesLatents,
} from "../../../shaders/attention/latent_attention.ts";
import {
  type LatentHeads,
  latentQuery,
  latentStore,
  latentValue,
} from "../../../shaders/attention/latent.ts";
import { matmul } from "../../../shaders/matmul/matmul.ts";
import { rmsNorm } from "../../../shaders/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import {
  type Branch,
  branchEnd,
  type DecoderContext,
  type LayerKv,
  type LayerSource,
  type RowsOf,
} from "./decoder_context.ts";
import { headsOf, type LatentAttention } from "../config/layer_spec.ts";

/** H hidden, h heads, n nope, r rope, v value, c rank. */
export interface LatentWeights {
  readonly kind: "latent";
  readonly spec: LatentAttention;
  /** Where queries are made of a latent: [queryRank, H] and its norm, [queryRank]. */
  readonly queryLatent: { readonly matrix: Matrix; readonly norm: Operand } | undefined;
  /** [h (n + r), queryRank or H] */
  readonly query: Matrix;
  /** [c + r, H] */
  readonly kvA: Matrix;
  /** [c] */
  readonly kvNorm: Operand;
  /** Of each head its n rows of keys and its v of values, [h (n + v), c]. */
  readonly kvB: Table;
  /** [H, h v] */
  readonly o: Matrix;
}

/** Of the norms of latents, whatever `rms_norm_eps` says. */
const EPS = 1e-6;

export function loadLatentAttention(
  { load, label, tensor, normOffset }: LayerSource,
  spec: LatentAttention,
): LatentWeights {
  const matrix = (role: string) => load.matrix(`${label}.${role}`, [tensor(role)]);
  const norm = (role: string) => load.norm(`${label}.${role}`, normOffset, tensor(role));
  return {
    kind: "latent",
    spec,
    queryLatent: spec.queryRank === undefined
      ? undefined
      : { matrix: matrix("qA"), norm: norm("qANorm") },
    query: matrix(spec.queryRank === undefined ? "q" : "qB"),
    kvA: matrix("kvA"),
    kvNorm: norm("kvANorm"),
    kvB: load.table(`${label}.kvB`, tensor("kvB")),
    o: matrix("o"),
  };
}

/** A layer's weights with its latents. */
interface Kept {
  readonly weights: LatentWeights;
  readonly kv: LayerKv;
  readonly label: string;
}

/** sums = o(values of attention(queries of `input`, latents)). */
export function latentAttention(
  context: DecoderContext,
  kept: Kept,
  { input, of }: { readonly input: Operand; readonly of: RowsOf },
): Branch {
  const { tuning, scratch: { qkv, attentionOutput } } = context;
  const { label, weights: { o, kvB, spec } } = kept;
  const { count } = of;
  const end = { rows: count, end: "sums", label: `${label}.o` } as const;
  const out = branchEnd(context, { matrix: o, x: qkv }, end);
  const plan = [
    ...latents(context, kept, input, of),
    ...queries(context, kept, input, of),
    ...mixed(context, kept, of),
    latentValue(
      { kvB, attentionOutput, out: qkv },
      { ...latentHeads(spec), count, tuning, label: `${label}.value` },
    ),
    ...out.plan,
  ];
  return { ...out, plan };
}

/** attentionOutput = weighted sums of latents, of what q is over the pages. */
function mixed(
  context: DecoderContext,
  { weights: { spec }, kv: { keys, values }, label }: Kept,
  { rows, count, perSlot, paths = false }: RowsOf,
): Dispatch[] {
  const { tuning, scratch: { q, attentionOutput: out, partial }, pages } = context;
  const heads = headsOf(spec, context);
  const launch = { count, perSlot, paths, tuning, label: `${label}.attention`, scale: spec.scale };
  const buffers = { q, rows, pages, partial, out };
  return tilesLatents(heads, tuning)
    ? tiledAttention({ ...buffers, latents: keys }, { ...heads, ...launch, rank: spec.rank })
    : attention({ ...buffers, keys, values }, { ...heads, ...launch });
}

/** Latents of `input` into the pages. */
function latents(
  { tuning, scratch: { attentionOutput }, ropes, pages, tablePages, kvDtype }: DecoderContext,
  { weights: { spec, kvA, kvNorm }, kv, label }: Kept,
  input: Operand,
  { rows, count }: RowsOf,
): Dispatch[] {
  const rope = ropes[spec.rope] as Operand;
  return [
    ...matmul(
      { matrix: kvA, x: input, out: attentionOutput },
      { rows: count, epilogue: "store", tuning, label: `${label}.kvA` },
    ),
    latentStore(
      { x: attentionOutput, normWeight: kvNorm, rope, rows, pages, latents: kv.keys },
      {
        ...latentHeads(spec),
        count,
        eps: EPS,
        tuning,
        tablePages,
        kvDtype,
        label: `${label}.latent`,
      },
    ),
  ];
}

/** q = the absorbed queries of `input`. */
function queries(
  { tuning, scratch: { q, qkv, attentionOutput }, ropes }: DecoderContext,
  { weights: { spec, queryLatent, query, kvB }, label }: Kept,
  input: Operand,
  { rows, count }: RowsOf,
): Dispatch[] {
  const launch = { rows: count, epilogue: "store", tuning } as const;
  const rope = ropes[spec.rope] as Operand;
  return [
    ...queryLatent
      ? [
        ...matmul({ matrix: queryLatent.matrix, x: input, out: q }, {
          ...launch,
          label: `${label}.qA`,
        }),
        ...rmsNorm({ from: { x: q }, weight: queryLatent.norm, out: attentionOutput }, {
          rows: count,
          cols: queryLatent.matrix.rows,
          eps: EPS,
          lanes: tuning.rowLanes,
          label: `${label}.qANorm`,
        }),
      ]
      : [],
    ...matmul({ matrix: query, x: queryLatent ? attentionOutput : input, out: qkv }, {
      ...launch,
      label: `${label}.q`,
    }),
    latentQuery(
      { kvB, q: qkv, out: q, rope, rows },
      { ...latentHeads(spec), count, tuning, label: `${label}.absorb` },
    ),
  ];
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

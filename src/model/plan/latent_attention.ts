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
import { attention } from "../../../kernels/attention/attention.ts";
import {
  latentAttention as tiledAttention,
  tilesLatents,
} from "../../../kernels/mla/latent_attention.ts";
import type { LatentHeads, LatentInput } from "../../../kernels/mla/latent.ts";
import { latentRunsValue, mergesRuns } from "../../../kernels/mla/latent_value.ts";
import { prepareRows, valueRows } from "../../../kernels/mla/kv_b.ts";
import { rmsNorm } from "../../../kernels/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import {
  type Branch,
  branchEnd,
  type DecoderContext,
  type LayerKv,
  type LayerSource,
  type RowsOf,
  scalesOf,
} from "./decoder_context.ts";
import { type BranchInput, project } from "./branch_input.ts";
import { headsOf, type LatentAttention } from "../config/layer_config.ts";

/** What makes queries and latents of the input. */
export type LatentProjections =
  | {
    readonly kind: "joined";
    /** Of queries, then of the latent: [h (n + r) + c + r, H]. */
    readonly matrix: Matrix;
  }
  | {
    readonly kind: "apart";
    /** Where queries are made of a latent: [queryRank, H] and its norm, [queryRank]. */
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
  /** Of each head its n rows of keys and its v of values, [h (n + v), c]. */
  readonly kvB: Table;
  /** [H, h v] */
  readonly o: Matrix;
}

/** Of the norms of latents, whatever `rms_norm_eps` says. */
const EPS = 1e-6;

export function loadLatentAttention(
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

/** One matrix where both are of the input and of one type: one launch, whose output both read. */
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

/** A layer's weights with its latents. */
interface Kept {
  readonly weights: LatentWeights;
  readonly kv: LayerKv;
  readonly label: string;
}

/** sums = o(values of attention(queries of `input`, latents)); `input` is normed, or joined projections norm it. */
export function latentAttention(
  context: DecoderContext,
  kept: Kept,
  { input, of }: { readonly input: Omit<BranchInput, "stream">; readonly of: RowsOf },
): Branch {
  const { label, weights: { o } } = kept;
  const end = { rows: of.count, end: "sums", label: `${label}.o` } as const;
  // The norm that notes the input's scales makes these the largest.
  const xScales = input.xScales && scalesOf(context, "attentionOutput", of.count);
  const out = branchEnd(context, { matrix: o, x: context.scratch.qkv, xScales }, end);
  const plan = [
    ...prepared(context, kept, input, of),
    ...attended(context, kept, of, xScales),
    ...out.plan,
  ];
  return { ...out, plan };
}

/** qkv = values of attention of q over the pages, its rows' scales noted. */
function attended(
  context: DecoderContext,
  { weights: { spec, kvB }, kv: { keys, values }, label }: Kept,
  { rows, count, perSlot, paths = false }: RowsOf,
  scales: Operand | undefined,
): Dispatch[] {
  const { tuning, scratch: { q, attentionOutput: mixed, partial, qkv: out }, pages } = context;
  const heads = headsOf(spec, context);
  const launch = { count, perSlot, paths, tuning, label: `${label}.attention`, scale: spec.scale };
  const buffers = { q, rows, pages, partial, out: mixed };
  const valueShape = { ...latentHeads(spec), count, tuning, label: `${label}.value` };
  const value = () => valueRows({ kvB, attentionOutput: mixed, out, scales }, valueShape);
  if (!tilesLatents(heads, tuning)) {
    return [...attention({ ...buffers, keys, values }, { ...heads, ...launch }), value()];
  }
  const tiled = { ...heads, ...launch, rank: spec.rank };
  const latents = { ...buffers, latents: keys };
  return mergesRuns(valueShape)
    ? tiledAttention(latents, {
      ...tiled,
      finish: (runs) => latentRunsValue({ kvB, out, scales }, runs, valueShape),
    })
    : [...tiledAttention(latents, tiled), value()];
}

/** q = the absorbed queries of `input`; its latents into the pages. */
function prepared(
  context: DecoderContext,
  kept: Kept,
  input: Omit<BranchInput, "stream">,
  of: RowsOf,
): Dispatch[] {
  const { tuning, scratch: { q, qkv, attentionOutput } } = context;
  const { weights: { spec, input: made }, label } = kept;
  const { numHeads, nopeDim, ropeDim } = spec;
  const product = (matrix: Matrix, x: Omit<BranchInput, "stream">, out: Operand, role: string) =>
    project(context, x, { matrix, out }, {
      rows: of.count,
      epilogue: "store",
      label: `${label}.${role}`,
    });
  const prepare = (x: LatentInput, role: string) => preparing(context, kept, of, x, role);
  if (made.kind === "joined") {
    const { matrix } = made;
    const latent = numHeads * (nopeDim + ropeDim);
    return [
      ...product(matrix, input, qkv, "qKvA"),
      ...prepare({ x: qkv, cols: matrix.rows, latent, queries: true }, "prepare"),
    ];
  }
  const { query, queryLatent, kvA } = made;
  const latents = { x: attentionOutput, cols: kvA.rows, latent: 0, queries: false };
  return [
    ...product(kvA, input, attentionOutput, "kvA"),
    ...prepare(latents, "latent"),
    ...queryLatent ? product(queryLatent.matrix, input, q, "qA") : [],
    ...queryLatent
      ? rmsNorm({ from: { x: q }, weight: queryLatent.norm, out: attentionOutput }, {
        rows: of.count,
        cols: queryLatent.matrix.rows,
        eps: EPS,
        lanes: tuning.rowLanes,
        label: `${label}.qANorm`,
      })
      : [],
    ...product(query, queryLatent ? { x: attentionOutput } : input, qkv, "q"),
    ...prepare({ x: qkv, cols: query.rows, latent: undefined, queries: true }, "absorb"),
  ];
}

function preparing(
  { tuning, scratch: { q: out }, ropes, pages, tablePages, kvDtype }: DecoderContext,
  { weights: { spec, kvB, kvNorm: normWeight }, kv, label }: Kept,
  { rows, count }: RowsOf,
  input: LatentInput,
  role: string,
): Dispatch[] {
  const rope = ropes[spec.rope] as Operand;
  return prepareRows(
    { kvB, input, out, normWeight, rope, rows, pages, latents: kv.keys },
    {
      ...latentHeads(spec),
      count,
      eps: EPS,
      tuning,
      tablePages,
      kvDtype,
      label: `${label}.${role}`,
    },
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

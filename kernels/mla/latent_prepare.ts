import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import type { Table } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { kernelOf } from "../shader.ts";

/** Sizes of multi-head latent attention (DeepSeek-V2), elements. */
export interface LatentHeads {
  readonly heads: number;
  /** The part of a query or key that is not rotated (`qk_nope_head_dim`). */
  readonly nope: number;
  /** The part that is, a multiple of 4 (`qk_rope_head_dim`). */
  readonly rope: number;
  /** `v_head_dim` */
  readonly value: number;
  /** `kv_lora_rank`, a multiple of 8, at most 2048. */
  readonly rank: number;
  /** Rope pairs are stored side by side. */
  readonly interleaved: boolean;
}

export interface LatentLaunch {
  readonly count: number;
  readonly tuning: Pick<Tuning, "software" | "rowLanes">;
  readonly label: string;
}

/** Rows that share a read of the weights. */
export const MAX_ROWS = 8;
/** Invocations of a workgroup of latent_prepare.wgsl. */
const THREADS = 64;
/** Loads of weights that an invocation issues at a time: 16 would make the code a quarter longer. */
const AHEAD = 8;
/** Columns of a workgroup that absorbs, and rows whose parts are added at a time. */
const BLOCK_COLS = 64;
const BATCH_ROWS = 4;
/** What rows of x hold, elements. */
export interface LatentInput {
  readonly x: Operand;
  /** Of a row. */
  readonly cols: number;
  /** Where the latent and its rotated part begin; undefined = there are queries alone. */
  readonly latent: number | undefined;
  /** Whether a row begins with the queries of all heads, nope + rope each. */
  readonly queries: boolean;
}

/**
 * Records what attention takes of `count` rows, of queries or latents or both, as x has them:
 * `out[r, h] = [W_h^T q_n; rope(q_r)]`, queries over latents, [count, heads, rank + rope]; and into
 * `latents`, [pages, PAGE, rank + rope] as attention reads keys, the latent normed and scaled by
 * `normWeight` [rank], and the rest rotated. `kvB` is kv_b_proj, [heads (nope + value), rank].
 */
export function latentPrepare(
  { kvB, input, out, normWeight, rope, rows, pages, latents: keys }: {
    readonly kvB: Table;
    readonly input: LatentInput;
    readonly out: Operand;
    readonly normWeight: Operand;
    /** cos and sin, [positions, rope / 2, 2]. */
    readonly rope: Operand;
    readonly rows: Operand;
    readonly pages: Operand;
    readonly latents: Operand;
  },
  shape: LatentHeads & LatentLaunch & {
    readonly eps: number;
    readonly tablePages: number;
    readonly kvDtype: KvDtype;
    /** Default: W_h^T q_n is made here too. */
    readonly absorbs?: boolean;
  },
): Dispatch {
  const { heads, nope, value, rank, count, eps, tablePages, kvDtype, label } = shape;
  const { absorbs = true } = shape;
  const { software } = shape.tuning;
  const { queries, latent } = input;
  const width = rank + shape.rope;
  const ROWS = rowTile(count);
  const weights = onlyShard(kvB);
  const ahead = software ? 1 : AHEAD;
  const absorbing = queries && absorbs ? heads * Math.ceil(rank / BLOCK_COLS) : 0;
  const turning = queries ? Math.ceil(heads * shape.rope / 4 / THREADS) : 0;
  const size = 4 * count * input.cols;
  const absorbed = absorbing > 0
    ? bytesOf(weights) * nope / (nope + value) + 4 * count * heads * width
    : 0;
  return dispatch(prepareKernel(kvB.format, kvDtype, { rank, width, ROWS, ahead }), {
    buffers: {
      weights,
      x: { ...input.x, size },
      out,
      rope,
      rows,
      norm_weight: normWeight,
      pages,
      keys,
    },
    constants: {
      HEADS: heads,
      NOPE: nope,
      VALUE: value,
      X_COLS: input.cols,
      X_LATENT: latent ?? 0,
      HEAD_BLOCKS: absorbing,
      TURN_BLOCKS: turning,
      EPS: eps,
      TABLE_PAGES: tablePages,
      ROPE: shape.rope,
      INTERLEAVED: Number(shape.interleaved),
    },
    workgroups: [
      absorbing + ROWS * (turning + Number(latent !== undefined)),
      Math.ceil(count / ROWS),
    ],
    label,
    work: {
      bytes: size + absorbed + (latent === undefined ? 0 : KV_BYTES[kvDtype] * count * width),
      flops: (absorbing > 0 ? 2 * count * heads * nope * rank : 0) + 6 * count * width,
    },
  });
}

interface PrepareParameters {
  /** Format of kv_b_proj. */
  readonly weights: FloatFormat;
  /** What keys are stored as. */
  readonly kv: KvDtype;
  /** Elements of a latent, and of what is kept of a token. */
  readonly RANK: number;
  readonly HEAD_DIM: number;
  /** Workgroups that absorb a head. */
  readonly BLOCKS: number;
  /** Rows of a workgroup, those whose parts are added at a time, and how often that is. */
  readonly ROWS: number;
  readonly BATCH: number;
  readonly BATCHES: number;
  /** Parts of a sum. */
  readonly PARTS: number;
  /** Loads of weights that an invocation asks for at a time. */
  readonly AHEAD: number;
  /** Elements of a latent that an invocation norms. */
  readonly STEPS: number;
}

function prepareKernel(
  format: FloatFormat,
  dtype: KvDtype,
  { rank, width, ROWS, ahead }: {
    readonly rank: number;
    readonly width: number;
    readonly ROWS: number;
    /** Loads of weights of an invocation that are made at a time. */
    readonly ahead: number;
  },
): Kernel {
  const name = `latent_prepare_${format}_${dtype}_${rank}_${width}_${ROWS}_${ahead}`;
  const BATCH = largestPart(ROWS, BATCH_ROWS);
  const parameters = {
    weights: format,
    kv: dtype,
    RANK: rank,
    HEAD_DIM: width,
    BLOCKS: Math.ceil(rank / BLOCK_COLS),
    ROWS,
    BATCH,
    BATCHES: ROWS / BATCH,
    PARTS: 8,
    AHEAD: ahead,
    STEPS: Math.ceil(rank / THREADS),
  };
  return kernelOf<PrepareParameters>("mla/latent_prepare")(parameters, {
    name,
    bindings: ["weights", "x", "out", "rope", "rows", "norm_weight", "pages", "keys"],
    constants: [
      "HEADS",
      "NOPE",
      "VALUE",
      "X_COLS",
      "X_LATENT",
      "HEAD_BLOCKS",
      "TURN_BLOCKS",
      "EPS",
      "TABLE_PAGES",
      "ROPE",
      "INTERLEAVED",
    ],
  });
}

/** The largest divisor of `n` that is at most `most`. */
function largestPart(n: number, most: number): number {
  const parts = Array.from({ length: most }, (_, i) => i + 1).filter((part) => n % part === 0);
  return Math.max(...parts);
}

/** Rows of a workgroup, so that tiles are as even as possible. */
export function rowTile(count: number): number {
  return Math.ceil(count / Math.ceil(count / MAX_ROWS));
}

/** The only shard of kv_b_proj: heads are not split, since it fits into one binding (33 MB in DeepSeek-V3). */
export function onlyShard({ shards: [shard, ...more] }: Table): Operand {
  if (shard && more.length === 0) return shard.operand;
  throw new Error("kv_b_proj is in more than one shard");
}

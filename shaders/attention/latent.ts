import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { KV_BYTES, type KvDtype } from "../../src/gpu/kv.ts";
import type { FloatFormat, Table, Tuning } from "../../src/gpu/matrix.ts";
import { shader } from "../shader.ts";

/** Sizes of multi-head latent attention (DeepSeek-V2), elements. */
export interface LatentHeads {
  readonly heads: number;
  /** Part of a query or key that is not rotated (`qk_nope_head_dim`). */
  readonly nope: number;
  /** The part that is, even (`qk_rope_head_dim`). */
  readonly rope: number;
  /** `v_head_dim` */
  readonly value: number;
  /** `kv_lora_rank`, a multiple of 8, at most 2048. */
  readonly rank: number;
  /** Rope pairs are stored side by side. */
  readonly interleaved: boolean;
}

interface Launch {
  readonly count: number;
  readonly tuning: Pick<Tuning, "software">;
  readonly label: string;
}

/** Rows that share a read of the weights. */
const MOST_ROWS = 8;
/** Invocations of a workgroup, and what shares a sum. */
const THREADS = 256;
const MOST_PARTS = 4;
const OUTS = 4;
const LANES = 16;
const GROUPS = 8;

const kernels = new Map<string, Kernel>();

/**
 * Records `out[r, h] = [W_h^T q_n; rope(q_r)]`: q [count, heads, nope + rope] becomes queries over
 * latents, [count, heads, rank + rope]. `kvB` is kv_b_proj, [heads (nope + value), rank].
 */
export function latentQuery(
  { kvB, q, out, rope, rows }: {
    readonly kvB: Table;
    readonly q: Operand;
    readonly out: Operand;
    /** cos and sin, [positions, rope / 2, 2]. */
    readonly rope: Operand;
    readonly rows: Operand;
  },
  shape: LatentHeads & Launch,
): Dispatch {
  const { heads, nope, value, rank, count, label } = shape;
  const ROWS = rowTile(count);
  const size = 4 * count * heads * (nope + shape.rope);
  const weights = onlyShard(kvB);
  return dispatch(queryKernel(kvB.format, ROWS), {
    buffers: { weights, x: { ...q, size }, out, rope, rows },
    constants: {
      HEADS: heads,
      NOPE: nope,
      VALUE: value,
      VEC8S: rank / 8,
      PARTS: shape.tuning.software ? 1 : Math.max(1, Math.min(MOST_PARTS, THREADS * 8 / rank | 0)),
      ...ropeConstants(shape),
    },
    workgroups: [heads, Math.ceil(count / ROWS)],
    label,
    work: {
      bytes: bytesOf(weights) * nope / (nope + value) + size +
        4 * count * heads * (rank + shape.rope),
      flops: 2 * count * heads * nope * rank,
    },
  });
}

function queryKernel(format: FloatFormat, ROWS: number): Kernel {
  const name = `latent_query_${format}_${ROWS}`;
  return kernels.getOrInsertComputed(name, () => {
    const slots = { weights: `weights/weights_${format}` };
    const code = shader("attention/latent_query", { slots, counts: { ROWS } });
    return kernel(name, code, {
      bindings: ["weights", "x", "out", "rope", "rows"],
      constants: ["HEADS", "NOPE", "VALUE", "VEC8S", "PARTS", "ROPE", "INTERLEAVED"],
    });
  });
}

/**
 * Records: of kv_a_proj's rows x [count, rank + rope], norm and scale the latent by `normWeight` [rank],
 * rotate the rest and store both in `latents`, [pages, PAGE, rank + rope] as attention reads keys.
 */
export function latentStore(
  { x, normWeight, rope, rows, pages, latents: keys }: {
    readonly x: Operand;
    readonly normWeight: Operand;
    readonly rope: Operand;
    readonly rows: Operand;
    readonly pages: Operand;
    readonly latents: Operand;
  },
  shape: LatentHeads & Launch & {
    readonly eps: number;
    readonly tablePages: number;
    readonly kvDtype: KvDtype;
  },
): Dispatch {
  const { rank, count, eps, tablePages, kvDtype, label } = shape;
  const width = rank + shape.rope;
  return dispatch(storeKernel(kvDtype), {
    buffers: { norm_weight: normWeight, x, rope, rows, pages, keys },
    constants: {
      RANK: rank,
      EPS: eps,
      LANES: shape.tuning.software ? 8 : 64,
      HEAD_DIM: width,
      TABLE_PAGES: tablePages,
      ...ropeConstants(shape),
    },
    workgroups: [count],
    label,
    work: { bytes: (4 + KV_BYTES[kvDtype]) * count * width, flops: 6 * count * width },
  });
}

function storeKernel(dtype: KvDtype): Kernel {
  const name = `latent_store_${dtype}`;
  return kernels.getOrInsertComputed(name, () => {
    const slots = { kv_store: `fragments/kv_store_${dtype}` };
    return kernel(name, shader("attention/latent_store", { slots }), {
      bindings: ["norm_weight", "x", "rope", "rows", "pages", "keys"],
      constants: ["RANK", "EPS", "LANES", "HEAD_DIM", "TABLE_PAGES", "ROPE", "INTERLEAVED"],
    });
  });
}

/**
 * Records `out[r, h] = W_h attentionOutput[r, h]`: weighted sums of latents, [count, heads, rank + rope] of
 * which the rope part is not read, become weighted sums of values, [count, heads, value].
 */
export function latentValue(
  { kvB, attentionOutput, out }: {
    readonly kvB: Table;
    readonly attentionOutput: Operand;
    readonly out: Operand;
  },
  shape: LatentHeads & Launch,
): Dispatch {
  const { heads, nope, value, rank, count, tuning: { software }, label } = shape;
  const ROWS = rowTile(count);
  const width = rank + shape.rope;
  const size = 4 * count * heads * width;
  const weights = onlyShard(kvB);
  const blocks = Math.ceil(value / GROUPS / OUTS);
  return dispatch(valueKernel(kvB.format, ROWS), {
    buffers: { weights, x: { ...attentionOutput, size }, out },
    constants: {
      HEADS: heads,
      NOPE: nope,
      VALUE: value,
      VEC8S: rank / 8,
      WIDTH: width,
      LANES: software ? 1 : LANES,
      GROUPS,
      BLOCKS: blocks,
    },
    workgroups: [heads * blocks, Math.ceil(count / ROWS)],
    label,
    work: {
      bytes: bytesOf(weights) * value / (nope + value) + size + 4 * count * heads * value,
      flops: 2 * count * heads * value * rank,
    },
  });
}

function valueKernel(format: FloatFormat, ROWS: number): Kernel {
  const name = `latent_value_${format}_${ROWS}`;
  return kernels.getOrInsertComputed(name, () => {
    const slots = { weights: `weights/weights_${format}` };
    return kernel(name, shader("attention/latent_value", { slots, counts: { ROWS, OUTS } }), {
      bindings: ["weights", "x", "out"],
      constants: ["HEADS", "NOPE", "VALUE", "VEC8S", "WIDTH", "LANES", "GROUPS", "BLOCKS"],
    });
  });
}

/** Rows a workgroup takes, so that tiles are as even as can be. */
function rowTile(count: number): number {
  return Math.ceil(count / Math.ceil(count / MOST_ROWS));
}

function ropeConstants({ rope, interleaved }: LatentHeads) {
  return { ROPE: rope, INTERLEAVED: Number(interleaved) };
}

/** Heads are not cut: kv_b_proj has a binding of its own (33 MB in DeepSeek-V3). */
function onlyShard({ shards: [shard, ...more] }: Table): Operand {
  if (shard && more.length === 0) return shard.operand;
  throw new Error("kv_b_proj is in more than one shard");
}

/** Products of many rows with a head's part of kv_b_proj: the sums of latent_value.wgsl and latent_prepare.wgsl. */
import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../../src/gpu/kernel.ts";
import type { FloatFormat, Table } from "../../../src/gpu/matrix.ts";
import { shader } from "../../shader.ts";
import { type LatentHeads, type LatentInput, onlyShard } from "../latent.ts";

/** A workgroup: `rows` by `outs` sums, of which an invocation has `tall` by `wide`. Touches no bit. */
export interface BlockTile {
  readonly rows: number;
  readonly outs: number;
  readonly tall: number;
  readonly wide: number;
}

/** Chains of a sum: decides bits, those of latent_value.wgsl and of latent_prepare.wgsl. */
const VALUE_CHAINS = 16;
const ABSORB_CHAINS = 8;
/** Most eights of a chain that are staged at a time, and rows of absorbed weights. */
const VALUE_DEPTH = 4;
const ABSORB_STEPS = 16;

/** Measured on an H200. */
export const VALUE_TILE: BlockTile = { rows: 64, outs: 64, tall: 8, wide: 4 };
export const ABSORB_TILE: BlockTile = { rows: 64, outs: 64, tall: 8, wide: 8 };

interface Launch extends LatentHeads {
  readonly count: number;
  readonly label: string;
  readonly tile?: BlockTile;
}

const kernels = new Map<string, Kernel>();

/** Records what `latentValue` does, to the bit. */
export function manyValues(
  { kvB, attentionOutput, out }: {
    readonly kvB: Table;
    readonly attentionOutput: Operand;
    readonly out: Operand;
  },
  { heads, nope, value, rank, rope, count, label, tile = VALUE_TILE }: Launch,
): Dispatch {
  const width = rank + rope;
  const weights = onlyShard(kvB);
  const blocks = Math.ceil(value / tile.outs);
  const size = 4 * count * heads * width;
  return dispatch(valueKernel(kvB.format, rank, tile), {
    buffers: { weights, x: { ...attentionOutput, size }, out },
    constants: { HEADS: heads, NOPE: nope, VALUE: value, BLOCKS: blocks, WIDTH: width },
    workgroups: [heads * blocks, Math.ceil(count / tile.rows)],
    label,
    work: {
      bytes: bytesOf(weights) * value / (nope + value) + size + 4 * count * heads * value,
      flops: 2 * count * heads * value * rank,
    },
  });
}

/** Records the absorbed queries of `latentPrepare`, to the bit; their rotated parts are left. */
export function manyAbsorbed(
  { kvB, input, out }: {
    readonly kvB: Table;
    readonly input: Pick<LatentInput, "x" | "cols">;
    readonly out: Operand;
  },
  { heads, nope, value, rank, rope, count, label, tile = ABSORB_TILE }: Launch,
): Dispatch {
  const width = rank + rope;
  const weights = onlyShard(kvB);
  const blocks = Math.ceil(rank / tile.outs);
  const size = 4 * count * input.cols;
  return dispatch(absorbKernel(kvB.format, rank, nope, tile), {
    buffers: { weights, x: { ...input.x, size }, out },
    constants: {
      HEADS: heads,
      NOPE: nope,
      ROPE: rope,
      VALUE: value,
      X_COLS: input.cols,
      BLOCKS: blocks,
      WIDTH: width,
    },
    workgroups: [heads * blocks, Math.ceil(count / tile.rows)],
    label,
    work: {
      bytes: bytesOf(weights) * nope / (nope + value) + size + 4 * count * heads * rank,
      flops: 2 * count * heads * nope * rank,
    },
  });
}

function valueKernel(format: FloatFormat, rank: number, tile: BlockTile): Kernel {
  const { rows: ROWS, outs: OUTS, tall: TR, wide: TO } = tile;
  const name = `latent_values_${format}_${rank}_${nameOf(tile)}`;
  return kernels.getOrInsertComputed(name, () => {
    const eights = Math.ceil(rank / 8 / VALUE_CHAINS);
    const DEPTH = Math.min(eights, VALUE_DEPTH);
    const [WIDE, THREADS] = [OUTS / TO, ROWS / TR * OUTS / TO];
    const counts = {
      ...{ ROWS, OUTS, TR, TO, WIDE, THREADS, DEPTH, CHAINS: VALUE_CHAINS, VEC8S: rank / 8 },
      STAGES: Math.ceil(eights / DEPTH),
      X_LOADS: Math.ceil(ROWS * DEPTH / THREADS),
      W_LOADS: Math.ceil(OUTS * DEPTH / THREADS),
    };
    const slots = { weights: `weights/weights_${format}` };
    return kernel(name, shader("latent/many/value", { slots, counts }), {
      bindings: ["weights", "x", "out"],
      constants: ["HEADS", "NOPE", "VALUE", "BLOCKS", "WIDTH"],
    });
  });
}

function absorbKernel(format: FloatFormat, rank: number, nope: number, tile: BlockTile): Kernel {
  const { rows: ROWS, outs: COLS, tall: TR, wide } = tile;
  const name = `latent_absorb_${format}_${rank}_${nope}_${nameOf(tile)}`;
  return kernels.getOrInsertComputed(name, () => {
    const steps = Math.ceil(nope / ABSORB_CHAINS / 4) * 4;
    const STEPS = Math.min(steps, ABSORB_STEPS);
    const [TC, WIDE, THREADS] = [wide / 4, COLS / wide, ROWS / TR * COLS / wide];
    const counts = {
      ...{ ROWS, COLS, TR, TC, WIDE, THREADS, STEPS, CHAINS: ABSORB_CHAINS, VEC8S: rank / 8 },
      STAGES: Math.ceil(steps / STEPS),
      W_LOADS: Math.ceil(STEPS * COLS / 8 / THREADS),
      FOUR: 4,
    };
    const slots = { weights: `weights/weights_${format}` };
    return kernel(name, shader("latent/many/absorb", { slots, counts }), {
      bindings: ["weights", "x", "out"],
      constants: ["HEADS", "NOPE", "ROPE", "VALUE", "X_COLS", "BLOCKS", "WIDTH"],
    });
  });
}

function nameOf({ rows, outs, tall, wide }: BlockTile): string {
  return `${rows}x${outs}_${tall}x${wide}`;
}

/**
 * Products with a head's part of kv_b_proj: absorbed queries and values. Many rows are computed in blocks
 * (latent_absorb_blocks.wgsl, latent_value_blocks.wgsl), few rows by latent_prepare.wgsl and latent_value.wgsl, with
 * the same bits.
 */
import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { Table } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { kernelOf } from "../shader.ts";
import { type LatentHeads, type LatentInput, latentPrepare, onlyShard } from "./latent_prepare.ts";
import { latentValue } from "./latent_value.ts";

/** A workgroup computes `rows` by `outs` sums, each invocation `tall` by `wide` of them. No bit depends on it. */
interface BlockTile {
  readonly rows: number;
  readonly outs: number;
  readonly tall: number;
  readonly wide: number;
}

/** Chains of a sum, which decide bits: the same as in latent_value.wgsl and in latent_prepare.wgsl. */
const VALUE_CHAINS = 16;
const ABSORB_CHAINS = 8;
/** Most vec8s of a chain that are staged at a time. */
const VALUE_DEPTH = 4;

/** Rows from which blocks beat the kernels of few rows, measured on an H200. */
const MIN_ROWS = { absorb: 128, value: 256 };

/** Steps of a chain of absorbed weights that are staged at a time, a multiple of 4. */
const STAGED = 8;

/** Measured on an H200. */
const VALUE_TILE: BlockTile = { rows: 64, outs: 64, tall: 8, wide: 4 };
const ABSORB_TILE: BlockTile = { rows: 64, outs: 128, tall: 8, wide: 4 };

interface Launch extends LatentHeads {
  readonly count: number;
  readonly label: string;
}

type PrepareBuffers = Parameters<typeof latentPrepare>[0];
type PrepareShape = Omit<Parameters<typeof latentPrepare>[1], "absorbs" | "tuning">;
type ValueBuffers = Parameters<typeof latentValue>[0];
type ValueShape = Omit<Parameters<typeof latentValue>[1], "tuning">;
interface Adapter {
  readonly tuning: Pick<Tuning, "software" | "rowLanes" | "workgroupBytes">;
}

/** Records `latentPrepare`; many rows take two launches, of which one absorbs the queries in blocks. */
export function prepareRows(buffers: PrepareBuffers, shape: PrepareShape & Adapter): Dispatch[] {
  const { count, nope, rope, label, tuning: { software, workgroupBytes } } = shape;
  const { queries, cols } = buffers.input;
  const blocks = queries && !software && count >= MIN_ROWS.absorb &&
    [nope, rope, cols].every((each) => each % 4 === 0) &&
    absorbBytes(nope, ABSORB_TILE) <= workgroupBytes;
  return blocks
    ? [
      manyAbsorbed(buffers, { ...shape, label: `${label}.absorbed` }),
      latentPrepare(buffers, { ...shape, absorbs: false }),
    ]
    : [latentPrepare(buffers, shape)];
}

/** Records `latentValue`; many rows are computed in blocks if no kernel reads their scales. */
export function valueRows(buffers: ValueBuffers, shape: ValueShape & Adapter): Dispatch {
  const { count, rank, tuning: { software, workgroupBytes } } = shape;
  const blocks = !software && !buffers.scales && count >= MIN_ROWS.value &&
    valueBytes(rank, VALUE_TILE) <= workgroupBytes;
  return blocks ? manyValues(buffers, shape) : latentValue(buffers, shape);
}

/** Records what `latentValue` does, to the bit. */
function manyValues(
  { kvB, attentionOutput, out }: {
    readonly kvB: Table;
    readonly attentionOutput: Operand;
    readonly out: Operand;
  },
  { heads, nope, value, rank, rope, count, label }: Launch,
): Dispatch {
  const width = rank + rope;
  const weights = onlyShard(kvB);
  const tile = VALUE_TILE;
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

/** Records the absorbed queries of `latentPrepare`, to the bit, without their rotated parts. */
function manyAbsorbed(
  { kvB, input, out }: {
    readonly kvB: Table;
    readonly input: Pick<LatentInput, "x" | "cols">;
    readonly out: Operand;
  },
  { heads, nope, value, rank, rope, count, label }: Launch,
): Dispatch {
  const width = rank + rope;
  const weights = onlyShard(kvB);
  const tile = ABSORB_TILE;
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

/** Vec8s of a chain, and those of a stage. */
function vec8sOf(rank: number): { readonly all: number; readonly staged: number } {
  const all = Math.ceil(rank / 8 / VALUE_CHAINS);
  return { all, staged: Math.min(all, VALUE_DEPTH) };
}

/** Bytes of workgroup memory. */
function valueBytes(rank: number, { rows, outs }: BlockTile): number {
  return 16 * (rows + outs) * (2 * vec8sOf(rank).staged + 1);
}

interface ValueParameters {
  /** Format of kv_b_proj. */
  readonly weights: FloatFormat;
  /** Rows and outputs of a workgroup. */
  readonly ROWS: number;
  readonly OUTS: number;
  /** Rows and outputs of an invocation. */
  readonly TR: number;
  readonly TO: number;
  /** Invocations along the outputs, and all. */
  readonly WIDE: number;
  readonly THREADS: number;
  /** Chains of a sum, stages of a chain, and vec8s of a stage. */
  readonly CHAINS: number;
  readonly STAGES: number;
  readonly DEPTH: number;
  /** Vec8s of a latent. */
  readonly VEC8S: number;
  /** Vec8s of x and of weights that an invocation loads of a stage. */
  readonly X_LOADS: number;
  readonly W_LOADS: number;
}

interface AbsorbParameters {
  /** Format of kv_b_proj. */
  readonly weights: FloatFormat;
  /** Rows and columns of a workgroup. */
  readonly ROWS: number;
  readonly COLS: number;
  /** Rows and fours of columns of an invocation. */
  readonly TR: number;
  readonly TC: number;
  /** Invocations along the columns, and all. */
  readonly WIDE: number;
  readonly THREADS: number;
  /** Chains of a sum, rows of weights of a chain, and of those the rows of a stage. */
  readonly CHAINS: number;
  readonly STEPS: number;
  readonly STAGED: number;
  /** Vec8s of a latent. */
  readonly VEC8S: number;
  /** Vec8s of weights that an invocation loads of a stage. */
  readonly W_LOADS: number;
}

function valueKernel(format: FloatFormat, rank: number, tile: BlockTile): Kernel {
  const { rows: ROWS, outs: OUTS, tall: TR, wide: TO } = tile;
  const { all, staged: DEPTH } = vec8sOf(rank);
  const name = `latent_values_${format}_${rank}_${nameOf(tile)}`;
  const [WIDE, THREADS] = [OUTS / TO, ROWS / TR * OUTS / TO];
  const counts = {
    ROWS,
    OUTS,
    TR,
    TO,
    WIDE,
    THREADS,
    DEPTH,
    CHAINS: VALUE_CHAINS,
    VEC8S: rank / 8,
    STAGES: Math.ceil(all / DEPTH),
    X_LOADS: Math.ceil(ROWS * DEPTH / THREADS),
    W_LOADS: Math.ceil(OUTS * DEPTH / THREADS),
  };
  return kernelOf<ValueParameters>("mla/latent_value_blocks")({ weights: format, ...counts }, {
    name,
    bindings: ["weights", "x", "out"],
    constants: ["HEADS", "NOPE", "VALUE", "BLOCKS", "WIDTH"],
  });
}

/** Rows of weights of a chain, including rows of zeros that pad it. */
function stepsOf(nope: number): number {
  return Math.ceil(nope / ABSORB_CHAINS / 4) * 4;
}

/** Rows of weights of a chain that a stage holds. */
function stagedOf(nope: number): number {
  const steps = stepsOf(nope);
  return steps % STAGED === 0 ? STAGED : steps;
}

/** Bytes of workgroup memory. */
function absorbBytes(nope: number, tile: BlockTile): number {
  const { rows, outs } = tile;
  const steps = stepsOf(nope);
  return 16 * (rows * (steps + 1) + stagedOf(nope) * outs / 4);
}

function absorbKernel(format: FloatFormat, rank: number, nope: number, tile: BlockTile): Kernel {
  const { rows: ROWS, outs: COLS, tall: TR, wide } = tile;
  const name = `latent_absorb_${format}_${rank}_${nope}_${nameOf(tile)}_${stagedOf(nope)}`;
  const [STEPS, STAGED] = [stepsOf(nope), stagedOf(nope)];
  const [TC, WIDE, THREADS] = [wide / 4, COLS / wide, ROWS / TR * COLS / wide];
  const counts = {
    ROWS,
    COLS,
    TR,
    TC,
    WIDE,
    THREADS,
    STEPS,
    STAGED,
    CHAINS: ABSORB_CHAINS,
    VEC8S: rank / 8,
    W_LOADS: Math.ceil(STAGED * COLS / 8 / THREADS),
  };
  return kernelOf<AbsorbParameters>("mla/latent_absorb_blocks")({ weights: format, ...counts }, {
    name,
    bindings: ["weights", "x", "out"],
    constants: ["HEADS", "NOPE", "ROPE", "VALUE", "X_COLS", "BLOCKS", "WIDTH"],
  });
}

function nameOf({ rows, outs, tall, wide }: BlockTile): string {
  return `${rows}x${outs}_${tall}x${wide}`;
}

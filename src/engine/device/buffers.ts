import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import {
  MAX_STEPS,
  PAGE,
  RESULT_WORDS,
  ROW_WORDS,
  SLOT_WORDS,
} from "../../model/plan/rows_layout.ts";

/** Sizes everything on the device is made for. */
export interface Capacity {
  /** Sequences in flight, and lanes of the widest round. */
  readonly batch: number;
  /** The `num_steps` of every tier, rising. */
  readonly steps: readonly number[];
  /** Rows of the widest prefill chunk. */
  readonly prefillRows: number;
  /** Tokens a sequence may hold, prompt and output. */
  readonly contextLength: number;
  /** KV pages of all sequences together. */
  readonly pages: number;
  /** How keys and values are kept; absent = f32. */
  readonly kvDtype?: KvDtype;
}

/** Draft steps of the deepest tier. */
export function maxSteps({ steps }: Capacity): number {
  return Math.max(...steps);
}

/**
 * Cells a sequence must own before `rounds` rounds without the host: what it has, and for each and
 * one more what a round can add (SGLang `alloc_len` = max(num_steps * eagle_topk, num_draft_tokens)
 * over all tiers; its overlap schedule reserves 2 * alloc_len for one round).
 */
export function reservedCells(capacity: Capacity, length: number, rounds = 1): number {
  return length + (rounds + 1) * (maxSteps(capacity) + 1);
}

/** Pages per slot in the block table: the whole context and what a last round reserves. */
export function tablePages(capacity: Capacity): number {
  return Math.ceil(reservedCells(capacity, capacity.contextLength) / PAGE);
}

/** Buffers that carry a round from one step to the next; the host reads only `results`. */
export interface RoundBuffers {
  /** `Slot`s, [slots]. */
  readonly slots: Operand;
  /** Block table, u32 [slots, tablePages]. */
  readonly pages: Operand;
  /** Draft tokens, u32 [slots, MAX_STEPS]. */
  readonly drafts: Operand;
  /** Slot of each lane, u32 [batch]. */
  readonly lanes: Operand;
  /** `Row`s of a draft level, [batch]. */
  readonly draftRows: Operand;
  /** `Row`s of the verify or prefill forward, [rows]. */
  readonly rows: Operand;
  /** `Row`s of the draft-extend forward, [rows]. */
  readonly extendRows: Operand;
  /** The target's choices, u32 [rows]. */
  readonly chosen: Operand;
  /** Row of each lane's bonus token, u32 [batch]. */
  readonly last: Operand;
  /** [batch, RESULT_WORDS] u32. */
  readonly results: Operand;
}

/** Most rows one forward may have, rounded up so that whole matmul tiles fit. */
export function maxRows(capacity: Capacity): number {
  return Math.max(whole(capacity.prefillRows), verifyRowCount(capacity));
}

/** Rows of the widest verify forward, rounded up so that whole matmul tiles fit. */
export function verifyRowCount(capacity: Capacity): number {
  return whole(capacity.batch * (maxSteps(capacity) + 1));
}

/** Rounded up to whole matmul tiles. */
export function whole(rows: number): number {
  return Math.ceil(rows / 8) * 8;
}

/** Makes the buffers. */
export function roundBuffers(gpu: Gpu, capacity: Capacity): RoundBuffers {
  const words = (label: string, count: number) => storageBuffer(gpu, label, count);
  const rows = maxRows(capacity);
  const { batch } = capacity;
  return {
    slots: words("slots", batch * SLOT_WORDS),
    pages: words("pages", batch * tablePages(capacity)),
    drafts: words("drafts", batch * MAX_STEPS),
    lanes: words("lanes", batch),
    draftRows: words("draftRows", batch * ROW_WORDS),
    rows: words("rows", rows * ROW_WORDS),
    extendRows: words("extendRows", rows * ROW_WORDS),
    chosen: words("chosen", rows),
    last: words("last", batch),
    results: words("results", batch * RESULT_WORDS),
  };
}

/** A storage buffer of `words` 4-byte elements that can be written and copied. */
export function storageBuffer(gpu: Gpu, label: string, words: number): Operand {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  const buffer = gpu.device.createBuffer({ label, size: Math.max(16, words * 4), usage });
  return { buffer };
}

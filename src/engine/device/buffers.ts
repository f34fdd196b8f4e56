import { BUDGET_WORDS } from "../../../kernels/round/allocate.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import { draftWords, PAGE, resultWords, ROW_WORDS, SLOT_WORDS } from "../../model/device_layout.ts";
import type { RejectionRule } from "../../speculate/rejection_rule.ts";
import { type DraftShape, isChain } from "../../speculate/round_shape.ts";

/** Sizes everything on the device is made for. */
export interface EngineSizes {
  /** Sequences in flight, and lanes of the widest round. */
  readonly batch: number;
  /** Shapes of the rounds of every tier. */
  readonly shapes: readonly DraftShape[];
  /** Shapes of the trees that the device drafts; default none. */
  readonly treeShapes?: readonly DraftShape[];
  /** Rows of the widest forward of prompts. */
  readonly prefillRows: number;
  /** Adjacent rows of one sequence in a forward with chunks of several sequences; default PROMPT_RUN. */
  readonly promptRun?: number;
  /** Tokens a sequence may hold, prompt and output. */
  readonly contextLength: number;
  /** KV pages of all sequences together. */
  readonly pages: number;
  /** How keys and values are kept; absent = f32. */
  readonly kvDtype?: KvDtype;
  /** States of prefixes that the prefix cache may keep, where layers have states of fixed size; default 0. */
  readonly keptStates?: number;
  /** Rule of rejection sampling, if chains of a standalone draft are verified by it. */
  readonly rejection?: RejectionRule | undefined;
  /** Whether chains of an EAGLE head or a NextN layer tell the draft's confidence; default false. */
  readonly confident?: boolean | undefined;
}

/** Drafts that the deepest tier may accept in a round. */
export function maxDepth({ shapes }: Pick<EngineSizes, "shapes">): number {
  return Math.max(...shapes.map(({ depth }) => depth));
}

/** Verify rows of a sequence in the tier that has most. */
export function maxRows({ shapes }: Pick<EngineSizes, "shapes">): number {
  return Math.max(...shapes.map(({ rows }) => rows));
}

/** Whether rounds without drafts may be followed by rounds with drafts. */
export function draftsAtTimes({ shapes }: Pick<EngineSizes, "shapes">): boolean {
  return maxDepth({ shapes }) > 0 && shapes.some(({ depth }) => depth === 0);
}

/** Rows of a sequence in the widest level of a tree that the device drafts, 0 where it drafts none. */
export function treeWidth({ treeShapes = [] }: Pick<EngineSizes, "treeShapes">): number {
  return Math.max(0, ...treeShapes.map(({ width }) => width));
}

/** Cells of a sequence that the levels of such a tree write behind the committed ones. */
function treeCells({ treeShapes = [] }: Pick<EngineSizes, "treeShapes">): number {
  return Math.max(0, ...treeShapes.map(({ depth, width }) => (depth - 1) * width));
}

/**
 * Cells a sequence must own before `rounds` rounds run without the host: the cells it has, what each round can add, and
 * the rows of one more round (SGLang `alloc_len` = max(num_steps * eagle_topk, num_draft_tokens) over all tiers; its
 * overlap schedule reserves 2 * alloc_len for one round).
 */
export function reservedCells(
  capacity: Pick<EngineSizes, "shapes" | "treeShapes">,
  length: number,
  rounds = 1,
): number {
  const scratch = Math.max(maxRows(capacity), treeCells(capacity));
  return length + rounds * (maxDepth(capacity) + 1) + scratch;
}

/** Pages per slot in the block table: the whole context and what a last round reserves. */
export function tablePages(capacity: EngineSizes): number {
  return Math.ceil(reservedCells(capacity, capacity.contextLength) / PAGE);
}

/** Buffers that carry a round from one step to the next; the host reads only `results`. */
export interface RoundBuffers {
  /** `Slot`s, [slots]. */
  readonly slots: Operand;
  /** Block table, u32 [slots, tablePages]. */
  readonly pages: Operand;
  /** What is drafted for each slot, u32 [slots, draftWords(maxRows)]. */
  readonly drafts: Operand;
  /** Slot of each sequence, u32 [batch]. */
  readonly batchSlots: Operand;
  /** `Row`s of a draft level, [batch]. */
  readonly draftRows: Operand;
  /** `Row`s of the verify or prefill forward, [rows]. */
  readonly rows: Operand;
  /** `Row`s of the draft-extend forward, [rows]. */
  readonly extendRows: Operand;
  /** The target's choices, u32 [rows]. */
  readonly chosen: Operand;
  /**
   * Extend row of each sequence's bonus token, u32 [batch]; in rounds of trees also `keptRows`, in packed
   * rounds what `firstRowsAt` says.
   */
  readonly last: Operand;
  /** [batch, resultWords(rows of the round)] u32. */
  readonly results: Operand;
  /** How drafts are chosen to be verified: `Budget` of kernels/round/allocate.wgsl. */
  readonly budget: Operand;
}

/** Most rows one forward may have, rounded up so that whole matmul tiles fit. */
export function maxForwardRows(capacity: EngineSizes): number {
  const levelRows = wholeTiles(capacity.batch * treeWidth(capacity));
  return Math.max(wholeTiles(capacity.prefillRows), verifyRowCount(capacity), levelRows);
}

/** Rows of the widest verify forward, rounded up so that whole matmul tiles fit. */
export function verifyRowCount(capacity: EngineSizes): number {
  return wholeTiles(capacity.batch * maxRows(capacity));
}

/** Extend rows of the widest round of trees, 0 where all tiers are chains. */
export function keptRowCount({ shapes, batch }: Pick<EngineSizes, "shapes" | "batch">): number {
  const trees = shapes.filter((shape) => !isChain(shape));
  return Math.max(0, ...trees.map(({ depth }) => batch * (depth + 1)));
}

/** Word of `last` at which `keptRows` begin: behind the largest batch, 256 bytes aligned. */
export const KEPT_ROWS_AT = 128;

/** Verify row of each extend row of a round of trees, u32 [keptRowCount]. */
export function keptRows({ buffer }: Operand): Operand {
  return { buffer, offset: KEPT_ROWS_AT * 4 };
}

/** Word of `last` at which packed rounds begin to store the first row of each sequence, u32 [batch]. */
export function firstRowsAt(capacity: Pick<EngineSizes, "shapes" | "batch">): number {
  return KEPT_ROWS_AT + keptRowCount(capacity);
}

/** Words of the results of the widest round without confidences, for which the readback grows when they are wanted. */
export function maxResultWords(capacity: Pick<EngineSizes, "batch" | "shapes">): number {
  return capacity.batch * resultWords(maxRows(capacity));
}

/** Rounded up to whole matmul tiles. */
export function wholeTiles(rows: number): number {
  return Math.ceil(rows / 8) * 8;
}

/** Makes the buffers. */
export function roundBuffers(gpu: Gpu, capacity: EngineSizes): RoundBuffers {
  const words = (label: string, count: number) => storageBuffer(gpu, label, count);
  const rows = maxForwardRows(capacity);
  const { batch } = capacity;
  return {
    slots: words("slots", batch * SLOT_WORDS),
    pages: words("pages", batch * tablePages(capacity)),
    drafts: words("drafts", batch * draftWords(maxRows(capacity))),
    batchSlots: words("batch_slots", batch),
    draftRows: words("draftRows", batch * ROW_WORDS),
    rows: words("rows", rows * ROW_WORDS),
    extendRows: words("extendRows", rows * ROW_WORDS),
    chosen: words("chosen", rows),
    last: words("last", firstRowsAt(capacity) + batch),
    results: words("results", batch * resultWords(maxRows(capacity), capacity.confident)),
    budget: words("budget", BUDGET_WORDS),
  };
}

/** A storage buffer of `words` 4-byte elements that can be written and copied. */
export function storageBuffer(gpu: Gpu, label: string, words: number): Operand {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  const buffer = gpu.device.createBuffer({ label, size: Math.max(16, words * 4), usage });
  return { buffer };
}

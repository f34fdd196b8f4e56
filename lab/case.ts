import type { Plan } from "../src/gpu/kernel.ts";
import type { Allocations } from "./allocations.ts";

/** One thing to time. */
export interface MicroCase {
  /** Such as "matmul/llama-8b/down/4". The name stays the same when the kernel changes. */
  readonly name: string;
  /** Plans of the same work on different memory, so that no run finds its weights in a cache. */
  make(from: Allocations): readonly Plan[];
  /** The number of KV cells that each row attends to, all of one sequence. */
  readonly context?: number;
}

/** Bytes of weights that a case rotates through on hardware: several times the caches of large GPUs. */
const ROTATED_BYTES = 256 << 20;
const MAX_COPIES = 8;

/** Indices of the copies of `bytes` that a case rotates through. A software adapter's figures are relative anyway. */
export function copiesOf(bytes: number, { gpu }: Allocations): number[] {
  const copies = gpu.info.software ? 1 : Math.ceil(ROTATED_BYTES / bytes);
  return [...Array(Math.min(MAX_COPIES, copies)).keys()];
}

/** Widths of a model. */
export interface Widths {
  readonly name: string;
  readonly hidden: number;
  readonly intermediate: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocab: number;
  readonly draftVocab: number;
}

/** Llama-3.1-8B, or an eighth of its widths on a software adapter. */
export function llama(software: boolean): Widths {
  const part = software ? 8 : 1;
  return {
    name: software ? "llama-8b-eighth" : "llama-8b",
    hidden: 4096 / part,
    intermediate: 14336 / part,
    heads: 32 / part,
    kvHeads: 8 / part,
    headDim: 128,
    vocab: 128_256 / part,
    draftVocab: 32_000 / part,
  };
}

/** How many rows attention takes at a time if the partial sums of all rows do not fit. */
import type { Operand } from "../../src/gpu/kernel.ts";

/** Rows of a block: offsets of their q are then multiples of 256 bytes. */
export const BLOCK_ROWS = 8;
/** Bytes of `Row` in rows.wgsl. */
export const ROW_BYTES = 48;
/** Offsets of so many rows are multiples of 256 bytes. */
export const ALIGNED_ROWS = 16;

/** Consecutive rows, and how many consecutive ones are of one slot. */
export interface RowBlock {
  readonly count: number;
  readonly perSlot: number;
}

/**
 * The largest block of at most `room` rows: whole slots, or a part of the only slot. If not even aligned whole slots
 * fit, each row is treated as a slot of its own: slower, with the same bits.
 */
export function rowBlock({ count, perSlot }: RowBlock, room: number): RowBlock {
  if (room >= count) return { count, perSlot };
  const step = perSlot === count ? BLOCK_ROWS : leastCommonMultiple(perSlot, BLOCK_ROWS);
  if (room < step) return { count: Math.floor(room / BLOCK_ROWS) * BLOCK_ROWS, perSlot: 1 };
  const block = Math.floor(room / step) * step;
  return { count: block, perSlot: Math.min(perSlot, block) };
}

/** Rows a workgroup takes, at most `most`, so that the tiles of a slot are as even as can be. */
export function tileOf(perSlot: number, most: number): number {
  return Math.ceil(perSlot / Math.ceil(perSlot / Math.max(1, Math.floor(most))));
}

/** The operand that begins `bytes` bytes behind the beginning of `operand`. */
export function from({ buffer, offset = 0 }: Operand, bytes: number): Operand {
  return { buffer, offset: offset + bytes };
}

function leastCommonMultiple(a: number, b: number): number {
  let multiple = a;
  while (multiple % b !== 0) multiple += a;
  return multiple;
}

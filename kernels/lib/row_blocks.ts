/** Rows of attention that go at a time, where the partial sums of all have no room. */
import type { Operand } from "../../src/gpu/kernel.ts";

/** Rows of a block: offsets of their q are then multiples of 256 bytes. */
export const BLOCK_ROWS = 8;
/** Of `Row` in rows.wgsl. */
export const ROW_BYTES = 48;
/** Offsets of so many rows are multiples of 256 bytes. */
export const ALIGNED_ROWS = 16;

/** Neighbouring rows, and how many of them in a row are of one slot. */
export interface RowBlock {
  readonly count: number;
  readonly perSlot: number;
}

/**
 * Whole slots, or a part of the only one, of which `room` rows fit. Where not even aligned whole slots
 * fit, rows go as if each had a slot of its own: slower, with the same bits.
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

/** What is bound from `bytes` on behind where `operand` begins. */
export function from({ buffer, offset = 0 }: Operand, bytes: number): Operand {
  return { buffer, offset: offset + bytes };
}

function leastCommonMultiple(a: number, b: number): number {
  let multiple = a;
  while (multiple % b !== 0) multiple += a;
  return multiple;
}

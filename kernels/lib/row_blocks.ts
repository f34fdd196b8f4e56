/** How many rows attention takes at a time if the partial sums of all rows do not fit. */
import { UsageError } from "../../src/errors.ts";
import { ALIGNMENT } from "../../src/gpu/arena.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { ROW_WORDS } from "./rows.ts";

/** Rows of a block: offsets of their q, of at least 32 bytes a row, are then multiples of ALIGNMENT. */
export const BLOCK_ROWS = 8;
/** Bytes of `Row` in rows.wgsl. */
export const ROW_BYTES: number = 4 * ROW_WORDS;
/** Offsets of so many rows in `rows` are multiples of ALIGNMENT. */
export const ALIGNED_ROWS = 16;

/** Consecutive rows, and how many consecutive ones are of one slot. */
export interface RowBlock {
  readonly count: number;
  readonly perSlot: number;
}

/** Fewest rows of a block whose offsets are multiples of ALIGNMENT in buffers with so many bytes a row. */
export function alignedRows(...rowBytes: readonly number[]): number {
  return Math.max(...rowBytes.map((bytes) => {
    const powerOfTwo = bytes & -bytes; // the largest that divides the bytes
    return ALIGNMENT / Math.min(ALIGNMENT, powerOfTwo);
  }));
}

/**
 * The largest block of at most `room` rows: whole slots, or a part of the only slot. If not even aligned whole slots
 * fit, each row is treated as a slot of its own: slower, with the same bits.
 *
 * @param fewest see `alignedRows`: a power of two; blocks are multiples of it, and of BLOCK_ROWS where there is room.
 * @throws Error if there is no room for `fewest` rows.
 */
export function rowBlock(
  { count, perSlot }: RowBlock,
  room: number,
  fewest: number = BLOCK_ROWS,
): RowBlock {
  if (room >= count) return { count, perSlot };
  if (room < fewest) throw new Error(`${count} rows need room for ${fewest}, not for ${room}`);
  const aligned = room < BLOCK_ROWS ? fewest : Math.max(BLOCK_ROWS, fewest);
  const step = perSlot === count ? aligned : leastCommonMultiple(perSlot, aligned);
  if (room < step) return { count: Math.floor(room / aligned) * aligned, perSlot: 1 };
  const block = Math.floor(room / step) * step;
  return { count: block, perSlot: Math.min(perSlot, block) };
}

/** The error for contexts whose partial sums, `bytes` for the fewest rows that go together, no kernel can bind. */
export function sumsFault(tokens: number, bytes: number, bindingBytes: number): UsageError {
  return new UsageError(
    `Cannot run attention over ${tokens} tokens: its partial sums take ${bytes} bytes, ` +
      `and the adapter binds at most ${bindingBytes}`,
  );
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

import { MAX_STOPS, ROW_WORDS, SLOT_LIMIT, SLOT_WORDS } from "../../src/model/device_layout.ts";
import { shuffled } from "../gpu/numbers.ts";

/** Word of a row's path: PATH_CELLS bytes, the first lowest. */
const ROW_PATH = 8;

/** `Row` of kernels/lib/rows.wgsl. */
export interface RowFields {
  readonly token: number;
  readonly position: number;
  readonly slot: number;
  readonly cell: number;
  readonly base: number;
  readonly live: number;
  /** Where logical cells `base`, `base` + 1, ... lie, less `base`. */
  readonly path: readonly number[];
}

/** `Slot` of kernels/lib/rows.wgsl. */
export interface SlotFields {
  readonly length: number;
  readonly pending: number;
  readonly seed: number;
  readonly topK: number;
  readonly temperature: number;
  readonly topP: number;
  readonly minP: number;
  /** Cells owned; 0 = stopped. */
  readonly limit: number;
  readonly stops: readonly number[];
  /** Tokens that its text may have. */
  readonly most: number;
}

const NO_TOKEN = 0xffffffff;

/** Words of rows; what is not given is 0, except live = 1. */
export function packRows(rows: readonly Partial<RowFields>[]): Uint32Array {
  const words = new Uint32Array(rows.length * ROW_WORDS);
  rows.forEach((row, i) => {
    const { token = 0, position = 0, slot = 0, cell = 0, base = 0, live = 1, path = [] } = row;
    words.set([token, position, slot, cell, base, live], i * ROW_WORDS);
    path.forEach((offset, j) => {
      const at = i * ROW_WORDS + ROW_PATH + Math.floor(j / 4);
      words[at] = (words[at] ?? 0) | offset << 8 * (j % 4);
    });
  });
  return words;
}

/**
 * Rows of a tree of one slot with `length` tokens, the root first, as kernels/round/verify_tree.wgsl makes them.
 *
 * @param parents of the other nodes: rows before their own.
 */
export function treeRows(
  length: number,
  parents: readonly number[],
): Pick<RowFields, "position" | "cell" | "base" | "path">[] {
  return [-1, ...parents].map((_, row) => {
    const levels: number[] = [];
    for (let at = row; at > 0; at = parents[at - 1] ?? 0) levels.unshift(at);
    levels.unshift(0);
    const scattered = levels.findIndex((at, level) => at !== level);
    const line = scattered < 0 ? levels.length : scattered;
    return {
      position: length + levels.length - 1,
      cell: length + row,
      base: length + line,
      path: levels.slice(line).map((at) => at - line),
    };
  });
}

/** Words of slots; what is not given is greedy or 0, the limits far away. */
export function packSlots(slots: readonly Partial<SlotFields>[]): Uint32Array {
  const words = new Uint32Array(slots.length * SLOT_WORDS);
  const floats = new Float32Array(words.buffer);
  slots.forEach((slot, i) => {
    const { length = 0, pending = 0, seed = 0, topK = 0, temperature = 0, topP = 1, minP = 0 } =
      slot;
    words.set([length, pending, seed, topK], i * SLOT_WORDS);
    floats.set([temperature, topP, minP], i * SLOT_WORDS + 4);
    const { limit = 1 << 20, stops = [], most = 1 << 20 } = slot;
    const ends = [...stops, ...Array<number>(MAX_STOPS - stops.length).fill(NO_TOKEN)];
    words.set([limit, ...ends, most], i * SLOT_WORDS + SLOT_LIMIT);
  });
  return words;
}

/** A block table, [slots, tablePages], whose pages lie in disorder. */
export function blockTable(slots: number, tablePages: number): number[] {
  return shuffled(slots * tablePages, slots + tablePages);
}

/** How workgroups share the rows of slots, where each makes the partial sums of some of their splits of keys. */
import type { Cost, Operand } from "../../src/gpu/kernel.ts";
import type { Heads } from "../lib/heads.ts";
import { launchedSplits, pathGroups, type SCORING, SPLIT_CELLS } from "./attention_kernels.ts";

/** What is read, and the partial sums that are written. */
export type SplitBuffers = Readonly<
  Record<"q" | "keys" | "values" | "rows" | "pages" | "sums" | "stats", Operand>
>;

/** Constants of kernels whose workgroups are launched so, beside SCORING. */
export const SPLIT_CONSTANTS = [
  "KV_HEADS",
  "HEAD_TILES",
  "TABLE_PAGES",
  "PER_SLOT",
  "FIRST_ROW",
] as const;

/** `count` rows, neighbours of a slot `perSlot` at a time, whose partial sums [rows, heads, kept] are made. */
export interface SplitRows extends Heads {
  readonly count: number;
  readonly perSlot: number;
  readonly paths: boolean;
  readonly window?: number | undefined;
  /** In `rows`. */
  readonly firstRow: number;
  /** Partial sums of a query. */
  readonly kept: number;
  /** Of SCORING. */
  readonly constants: Readonly<Record<(typeof SCORING)[number], number>>;
  readonly label: string;
  readonly work: Cost;
}

/** What a workgroup takes of them. */
export interface Tile {
  /** Query heads. */
  readonly group: number;
  /** Rows. */
  readonly tile: number;
}

/** Of a dispatch. */
export interface SplitLaunch {
  readonly constants: Readonly<
    Record<(typeof SPLIT_CONSTANTS)[number] | (typeof SCORING)[number], number>
  >;
  /** Tiles of rows, groups of heads, and splits behind those of paths. */
  readonly workgroups: readonly [number, number, number];
  readonly cellsEach: number;
  readonly groupsBefore: number;
  readonly label: string;
  readonly work: Cost;
}

/** How workgroups of a tile share the rows. */
export function splitLaunch(of: SplitRows, { group, tile }: Tile): SplitLaunch {
  const { heads, kvHeads, count, perSlot, paths, kept, label, work } = of;
  const groupsBefore = paths ? pathGroups(tile) : 0;
  return {
    constants: {
      KV_HEADS: kvHeads,
      HEAD_TILES: heads / kvHeads / group,
      TABLE_PAGES: of.tablePages,
      // Whole tiles need not know their slot: prompts of all lengths share a pipeline.
      PER_SLOT: perSlot % tile === 0 ? tile : perSlot,
      FIRST_ROW: of.firstRow,
      ...of.constants,
    },
    workgroups: [
      count / perSlot * Math.ceil(perSlot / tile),
      heads / group,
      groupsBefore + launchedSplits(kept, of, tile),
    ],
    cellsEach: SPLIT_CELLS,
    groupsBefore,
    label,
    work,
  };
}

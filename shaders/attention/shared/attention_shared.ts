/** Attention over rows that share reads of their slots' keys and values, with the bits that attention.wgsl gives. */
import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
  type Work,
} from "../../../src/gpu/kernel.ts";
import type { Tuning } from "../../../src/gpu/matrix.ts";
import type { Heads } from "../../fragments/heads.ts";
import { loadSlots } from "../../kv/slots.ts";
import { shader } from "../../shader.ts";
import {
  chunkCounts,
  groupOf,
  launchedSplits,
  pathGroups,
  SCORING,
  SPLIT_CELLS,
  THREADS,
} from "../attention_kernels.ts";

/** Queries of a workgroup. */
const QUERIES = 16;
/**
 * Workgroups that are enough, for each split. On an H200, behind 512 tokens of the 8B shape, 4 slots of 4 rows (32 of
 * them) take 12.3 us instead of 12.1, one of 16 rows 10.0 instead of 11.2, of 8 rows (16) 8.9 instead of 6.9.
 */
const ENOUGH = 32;

/** Of a workgroup's queries, those that are there. */
const LEAST_FILLED = 0.8;

interface Rows {
  readonly count: number;
  readonly perSlot: number;
  readonly paths: boolean;
  readonly tuning: Pick<Tuning, "software">;
}

/** Whether this kernel takes a forward's rows: where workgroups are enough and most of their queries are there. */
export function isShared(shape: Heads & Rows): boolean {
  const { heads, headDim, count, perSlot, tuning } = shape;
  if (tuning.software || perSlot === 1 || ![64, 128].includes(headDim)) return false;
  const { group, tile } = sharedShape(shape);
  const workgroups = count / perSlot * Math.ceil(perSlot / tile) * heads / group;
  return workgroups >= ENOUGH && count * heads >= LEAST_FILLED * QUERIES * workgroups;
}

/** Query heads and rows of a workgroup. */
function sharedShape({ heads, kvHeads }: Heads): { group: number; tile: number } {
  const group = groupOf(heads / kvHeads, QUERIES);
  return { group, tile: Math.floor(QUERIES / group) };
}

const kernels = new Map<string, Kernel>();

function sharedKernel(
  { headDim, kvDtype }: Heads,
  { group, tile }: { readonly group: number; readonly tile: number },
): Kernel {
  const name = `attention_shared_${kvDtype}_${headDim}_${group}x${tile}`;
  return kernels.getOrInsertComputed(name, () => {
    const counts = sharedCounts(headDim, group, tile);
    const code = shader("attention/shared/attention_shared", { slots: loadSlots(kvDtype), counts });
    return kernel(name, code, {
      bindings: ["q", "keys", "values", "rows", "pages", "sums", "stats"],
      constants: [
        ...["KV_HEADS", "HEAD_TILES", "TABLE_PAGES", "KV_SPLITS", "PER_SLOT", "FIRST_ROW"],
        ...["PATHS", ...SCORING],
      ],
    });
  });
}

/** How attention_shared.wgsl is unrolled. */
function sharedCounts(headDim: number, group: number, tile: number): Record<string, number> {
  const counts = chunkCounts(headDim, group, tile);
  const { VEC8S } = counts;
  const QUADS = QUERIES / 4;
  const EACH = QUERIES * 2 * VEC8S / THREADS;
  const BROUGHT = THREADS / VEC8S;
  return {
    ...counts,
    ...{ QUADS, TURNS: QUADS * SPLIT_CELLS / THREADS, Q_LOADS: Math.ceil(8 * VEC8S / THREADS) },
    ...{ EACH, EACH_QUADS: Math.floor(EACH / 4), EACH_ALONE: EACH % 4 },
    ...{ BROUGHT, STAGES: SPLIT_CELLS / BROUGHT },
  };
}

/** Records the partial sums, [rows, heads, splits], of `count` rows. */
export function sharedSums(
  buffers: Readonly<
    Record<"q" | "keys" | "values" | "rows" | "pages" | "sums" | "stats", Operand>
  >,
  shape: Heads & Rows & {
    readonly window?: number | undefined;
    readonly firstRow: number;
    readonly kept: number;
    /** Of SCORING. */
    readonly constants: Readonly<Record<(typeof SCORING)[number], number>>;
    readonly label: string;
    readonly work: Work;
  },
): Dispatch {
  const { heads, kvHeads, perSlot, count, paths, kept, label, work } = shape;
  const { group, tile } = sharedShape(shape);
  const groupsBefore = paths ? pathGroups(tile) : 0;
  const tiles = count / perSlot * Math.ceil(perSlot / tile);
  return dispatch(sharedKernel(shape, { group, tile }), {
    buffers,
    constants: {
      ...{ KV_HEADS: kvHeads, HEAD_TILES: heads / kvHeads / group },
      ...{ TABLE_PAGES: shape.tablePages, KV_SPLITS: kept },
      // Whole tiles need not know their slot: prompts of all lengths share a pipeline.
      PER_SLOT: perSlot % tile === 0 ? tile : perSlot,
      ...{ FIRST_ROW: shape.firstRow, PATHS: Number(paths), ...shape.constants },
    },
    workgroups: [
      tiles,
      heads / group,
      groupsBefore + launchedSplits(kept, shape, tile),
    ],
    cellsEach: SPLIT_CELLS,
    groupsBefore,
    label,
    work,
  });
}

/**
 * attention_lanes.wgsl: attention of a tile of rows and a group of heads at once, in registers and without partial
 * sums.
 */
import {
  type Cost,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { Heads } from "../lib/heads.ts";
import { tileOf } from "../lib/row_blocks.ts";
import { kernelOf } from "../shader.ts";
import { SCORING } from "./splits.ts";

/** q and the sums of a group are in registers: this many floats at most. */
const MAX_IN_LANES = 128;
/**
 * The same limit for a tile of rows, and most rows of one: software adapters take seconds to compile longer kernels.
 */
const MAX_IN_TILES = 256;
const MAX_TILE_ROWS = 4;

interface LanesParameters {
  /** What keys and values are stored as. */
  readonly kv: KvDtype;
  /** Query heads of a key-value head, and rows of a workgroup. */
  readonly GROUP: number;
  readonly TILE: number;
  /** Vec8s of a head. */
  readonly VEC8S: number;
  /** Whether a logit without a value joins the softmax of each head. */
  readonly SINKS: boolean;
}

function lanesKernel(
  { heads, kvHeads, headDim, kvDtype }: Heads,
  tile: number,
  SINKS: boolean,
): Kernel {
  const counts = { GROUP: heads / kvHeads, VEC8S: headDim / 8, TILE: tile, SINKS };
  const shape = `${counts.GROUP}x${tile}_${counts.VEC8S}${SINKS ? "_sinks" : ""}`;
  const name = `attention_lanes_${kvDtype}_${shape}`;
  return kernelOf<LanesParameters>("attention/attention_lanes")({ kv: kvDtype, ...counts }, {
    name,
    bindings: ["q", "keys", "values", "rows", "pages", "out", ...SINKS ? ["sinks"] : []],
    constants: ["KV_HEADS", "TABLE_PAGES", "PER_SLOT", "PATHS", ...SCORING],
  });
}

/** Whether `lanesAttention` takes these heads: small groups on software adapters. */
export function inLanes(
  { heads, kvHeads, headDim }: Heads,
  { software }: Pick<Tuning, "software">,
): boolean {
  return software && heads / kvHeads * headDim <= MAX_IN_LANES;
}

/** Records attention of rows over the pages of their slots; see `inLanes`. */
export function lanesAttention(
  { q, keys, values, rows, pages, out, sinks }:
    & Readonly<Record<"q" | "keys" | "values" | "rows" | "pages" | "out", Operand>>
    & { readonly sinks?: Operand | undefined },
  shape: Heads & {
    readonly count: number;
    /** Rows of one slot that follow each other; divides `count`. */
    readonly perSlot: number;
    readonly paths: boolean;
    readonly constants: Readonly<Record<typeof SCORING[number], number>>;
    readonly work: Cost;
    readonly label: string;
  },
): Dispatch {
  const { heads, kvHeads, headDim, tablePages, count, perSlot, constants, work, label } = shape;
  const most = Math.min(MAX_TILE_ROWS, Math.floor(MAX_IN_TILES / (heads / kvHeads * headDim)));
  const alone = perSlot === count;
  // With only one slot the last tile may be partial, so that prompts of all lengths share a pipeline.
  const tile = alone && perSlot > most ? most : tileOf(perSlot, most);
  return dispatch(lanesKernel(shape, tile, sinks !== undefined), {
    // The kernel computes the number of rows from out's size.
    buffers: {
      q,
      keys,
      values,
      rows,
      pages,
      out: { ...out, size: 4 * count * heads * headDim },
      ...sinks && { sinks },
    },
    constants: {
      KV_HEADS: kvHeads,
      TABLE_PAGES: tablePages,
      // If all tiles are whole, PER_SLOT does not depend on the prompt.
      PER_SLOT: perSlot % tile === 0 || alone ? tile : perSlot,
      PATHS: Number(shape.paths),
      ...constants,
    },
    workgroups: [kvHeads, count / perSlot * Math.ceil(perSlot / tile)],
    label,
    work,
  });
}

/**
 * Pages for the keys and values of layers with a window, whose number depends on the window and not on the context. A
 * sequence with L stored tokens still needs cells L - window + 1 to L - 1, and a round writes cells from L on. So a
 * slot has a ring of pages: block b of its cells is in page b mod `slotPages` of the ring. Positions and the block
 * table are those of the whole context, so kernels need not know about the ring.
 */
import {
  type HeadAttention,
  isRecurrent,
  type LayerConfig,
} from "../../model/config/layer_config.ts";
import type { Operand } from "../../gpu/kernel.ts";
import { PAGE } from "../../model/device_layout.ts";
import { type EngineSizes, maxRows } from "./buffers.ts";

/** What layers with this window have, in the place of `EngineSizes.pages` pages. */
export interface WindowRing {
  /** Cells that a row sees, its own the last. */
  readonly window: number;
  /** Pages of a slot's ring. */
  readonly slotPages: number;
  /** Pages that a forward of prompts takes in addition, for all its chunks together. */
  readonly promptPages: number;
  /** Pages of the window at the end of a prefix that is kept. */
  readonly keptPages: number;
  /** Pages of all slots, kept prefixes and forwards of prompts together. */
  readonly pages: number;
}

/** A ring with its block table on the device, [slots, tablePages]. */
export interface WindowTable extends WindowRing {
  readonly table: Operand;
}

/** What these numbers depend on. */
export type RingSizes = Pick<
  EngineSizes,
  "batch" | "shapes" | "prefillRows" | "keptStates" | "pages"
>;

/**
 * The ring of a window; undefined if it would take no fewer pages than `EngineSizes.pages`.
 *
 * A kept prefix ends with a whole page, before cell C: its window is the ceil((window - 1) / PAGE) pages before. The
 * sequence has at most PAGE - 1 more cells stored, and rejected drafts of its last round lie in `rows` - 2 cells behind
 * those: ceil(rows / PAGE) + 1 pages. A round at any length needs no more.
 *
 * A chunk of n rows writes all of them before its first row reads the window before it, which takes ceil((n - 1) /
 * PAGE) pages more than a round of one row: less than n / PAGE more than the ring has.
 */
export function windowRing(
  window: number,
  { batch, shapes, prefillRows, keptStates = 0, pages: context }: RingSizes,
): WindowRing | undefined {
  const keptPages = Math.ceil((window - 1) / PAGE);
  const slotPages = keptPages + 1 + Math.ceil(maxRows({ shapes }) / PAGE);
  const promptPages = Math.ceil(prefillRows / PAGE);
  const pages = batch * slotPages + promptPages + keptStates * keptPages;
  return pages < context ? { window, slotPages, promptPages, keptPages, pages } : undefined;
}

/** Widths of the windows of these layers, each once; none where others have states, which are kept in another way. */
export function windowsOf(layers: readonly Pick<LayerConfig, "attention">[]): number[] {
  if (layers.some(({ attention }) => isRecurrent(attention))) return [];
  const windows = ownKeys(layers).map(({ window }) => window).filter((each) => each !== undefined);
  return [...new Set(windows)];
}

/** The rings of all windows of these layers that have one. */
export function windowRings(
  layers: readonly Pick<LayerConfig, "attention">[],
  sizes: RingSizes,
): WindowRing[] {
  return windowsOf(layers).flatMap((window) => windowRing(window, sizes) ?? []);
}

function ownKeys(layers: readonly Pick<LayerConfig, "attention">[]): HeadAttention[] {
  return layers.flatMap(({ attention }) =>
    attention.kind === "heads" && attention.sharedKv === undefined ? [attention] : []
  );
}

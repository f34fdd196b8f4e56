/** Attention by whichever kernels take a layer's heads: at any number of rows the same ones. */
import type { Dispatch } from "../../../src/gpu/kernel.ts";
import type { AttentionUnits, Tuning } from "../../../src/gpu/matrix.ts";
import {
  attention,
  type AttentionBuffers,
  type AttentionShape,
  notesScales,
  partialWords,
  splitWords,
} from "../attention.ts";
import type { PartialWords } from "../partial_sums.ts";
import type { Heads } from "../../lib/heads.ts";
import { attentionOnUnits } from "./attention_on_units.ts";
import { halvesWords } from "./chunk_on_units.ts";
import { cellsOf, whyNotUnits } from "./units_kernels.ts";

type Adapter = Pick<Tuning, "software" | "attentionUnits">;

/** What the units need, where they take these heads. */
export function unitsOf(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  { attentionUnits: units }: Pick<Tuning, "attentionUnits">,
): AttentionUnits | undefined {
  return units && whyNotUnits(heads, units) === undefined ? units : undefined;
}

/** Records attention of `count` rows over the pages of their slots. */
export function attend(buffers: AttentionBuffers, shape: AttentionShape): Dispatch[] {
  const units = unitsOf(shape, shape.tuning);
  if (shape.count % shape.perSlot !== 0) {
    throw new Error(`${shape.count} rows are not slots of ${shape.perSlot} rows`);
  }
  return units ? attentionOnUnits(buffers, shape, units) : attention(buffers, shape);
}

/** f32 words of what attention over at most `rows` rows keeps: its partial sums, or those of as many as go at a time. */
export function attendWords(
  heads: Heads,
  rows: number,
  adapter: Adapter,
): PartialWords {
  const units = unitsOf(heads, adapter);
  if (!units) return partialWords(heads, rows, adapter);
  return { ...splitWords(heads, rows, cellsOf(units)), halves: halvesWords(heads, rows, units) };
}

/** Whether it can note the scales of its rows. */
export function attendNotes(heads: Heads, adapter: Adapter): boolean {
  return unitsOf(heads, adapter) !== undefined || notesScales(heads, adapter);
}

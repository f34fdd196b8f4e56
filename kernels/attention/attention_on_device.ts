/**
 * Attention by the kernels that take a layer's heads on this device: on matrix units or not, the same at any number of
 * rows.
 */
import type { Dispatch } from "../../src/gpu/kernel.ts";
import type { AttentionUnits } from "../../src/gpu/matrices_on_units.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import {
  attention,
  type AttentionBuffers,
  type AttentionShape,
  partialWords,
  splitsReduceScales,
  splitsStoreHalf,
  splitWords,
} from "./attention.ts";
import type { Heads, PartialWords } from "../lib/heads.ts";
import { attentionOnUnits } from "./units/attention_on_units.ts";
import { halvesWords } from "./units/chunk_on_units.ts";
import { cellsOf, whyNotUnits } from "./units/units_kernels.ts";

type Adapter = Pick<Tuning, "software" | "bindingBytes" | "attentionUnits">;

/** The matrix units for attention over these heads; undefined where they do not take them. */
export function unitsOf(
  heads: Pick<Heads, "headDim" | "kvDtype">,
  { attentionUnits: units }: Pick<Tuning, "attentionUnits">,
): AttentionUnits | undefined {
  return units && whyNotUnits(heads, units) === undefined ? units : undefined;
}

/** Records attention of `count` rows over the pages of their slots. */
export function attentionOnDevice(buffers: AttentionBuffers, shape: AttentionShape): Dispatch[] {
  const units = unitsOf(shape, shape.tuning);
  if (shape.count % shape.perSlot !== 0) {
    throw new Error(`${shape.count} rows are not slots of ${shape.perSlot} rows`);
  }
  return units ? attentionOnUnits(buffers, shape, units) : attention(buffers, shape);
}

/**
 * f32 words of the scratch buffers of attention over at most `rows` rows: their partial sums, or those of as many rows
 * as are computed at a time, and `halves`, see `halvesWords`.
 */
export function attentionWords(
  heads: Heads,
  rows: number,
  adapter: Adapter,
): PartialWords {
  const units = unitsOf(heads, adapter);
  if (!units) return partialWords(heads, rows, adapter);
  return {
    ...splitWords(heads, rows, adapter, cellsOf(units)),
    halves: halvesWords(heads, rows, units),
  };
}

/** Whether attention can gate its output: where its last dispatch, which is not of matrix units, adds partial sums. */
export function attentionGates(heads: Heads, adapter: Adapter): boolean {
  return unitsOf(heads, adapter) === undefined && splitsReduceScales(heads, adapter);
}

/** Whether attention can store its output as f16: where its last dispatch adds the partial sums of many rows. */
export function attentionStoresHalf(shape: Omit<AttentionShape, "label" | "scale">): boolean {
  return unitsOf(shape, shape.tuning) === undefined && splitsStoreHalf(shape);
}

/** Whether attention can reduce the scales of its output's rows, see lib/reduce_scale.wgsl. */
export function attentionReducesScales(heads: Heads, adapter: Adapter): boolean {
  return unitsOf(heads, adapter) !== undefined || splitsReduceScales(heads, adapter);
}

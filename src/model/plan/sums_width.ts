import { MOST_SPLIT_K } from "../../gpu/matrix.ts";
import type { MatrixUnit } from "../../gpu/matrix_unit.ts";
import { attentionSizes } from "../config/layer_config.ts";
import type { ModelConfig } from "../config/types.ts";

/**
 * Narrowest input of q, k and v whose ranges save more than the dispatch that adds their sums takes: at 4,096 rounds
 * of many rows gain 1 % of a layer and one row loses as much (docs/kernels/rounds.md).
 */
export const WIDE_INPUT = 8192;

/** Floats a row that a decoder's sums over ranges of k take: of `o` and `down`, on matrix units also of wide heads. */
export function sumsWidth(
  { hiddenSize, layers }: Pick<ModelConfig, "hiddenSize" | "layers">,
  { drafts, unit }: {
    /** Whether it is a draft, whose input may be two rows side by side. */
    readonly drafts: boolean;
    /** Where matrices go to matrix units. */
    readonly unit?: MatrixUnit | undefined;
  },
): number {
  const wide = unit !== undefined && (drafts ? 2 : 1) * hiddenSize >= WIDE_INPUT;
  const heads = Math.max(...layers.map(({ attention }) => attentionSizes(attention).ownRow));
  return MOST_SPLIT_K * (wide ? Math.max(hiddenSize, heads) : hiddenSize);
}

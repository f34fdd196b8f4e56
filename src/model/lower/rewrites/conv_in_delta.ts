import { convolves } from "../../../../kernels/recurrent/delta_rule.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * For few rows, and not for trees, the recurrence convolves its queries, keys and values itself, and updates the
 * convolution's state.
 */
export const convInDelta: Rewrite = {
  name: "conv_in_delta",
  apply(edits, { tuning }) {
    for (const delta of edits.ops) {
      if (delta.kind !== "delta_rule" || delta.of.paths) continue;
      const conv = edits.producer(delta.mixed, delta, "short_conv");
      if (!conv) continue;
      const { form, taps, x, state: { ringRows }, of: { count } } = conv;
      if (!convolves({ form, taps, xCols: x.cols, ringRows, count }, tuning)) continue;
      edits.replace(delta, { ...delta, conv });
      edits.remove(conv);
    }
  },
};

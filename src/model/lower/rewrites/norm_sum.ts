import { MAX_EXPERTS, rowsOf } from "../norms.ts";
import type { Rewrite } from "../rewrite.ts";

/** The sum of two normed branches, the second being the experts' weighted outputs, is one dispatch (Gemma 4). */
export const normSums: Rewrite = {
  name: "norm_sum",
  apply(edits) {
    for (const experts of edits.ops) {
      if (experts.kind !== "norm" || experts.put !== "add" || experts.from.of !== "rows") continue;
      const { to, from: { x }, keep, eps, weight, out, part } = experts;
      const combine = edits.producer(x, experts, "combine");
      const dense = to && edits.producer(to, experts, "norm");
      if (!combine || combine.to || combine.bias || keep) continue;
      if (dense?.put !== "store" || dense.keep) continue;
      const y = rowsOf(dense.from);
      if (!y || dense.eps !== eps) continue;
      if (combine.shares.cols > MAX_EXPERTS) continue;
      const { x: outputs, shares } = combine;
      edits.remove(dense, combine);
      edits.replace(experts, {
        kind: "norm_sum",
        x: { y, weight: dense.weight },
        experts: { outputs, shares, weight },
        eps,
        out,
        label: experts.label,
        part,
      });
    }
  },
};

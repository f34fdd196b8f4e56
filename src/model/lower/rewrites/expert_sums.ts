import { canSum } from "../../../../kernels/experts/expert_sums.ts";
import { jobsOfRow } from "../../graph/graph.ts";
import { MAX_EXPERTS } from "../norms.ts";
import type { Rewrite } from "../rewrite.ts";

/** For few rows the experts' second matmul adds the weighted outputs to the residual stream and stores none of them. */
export const expertSumsInPlace: Rewrite = {
  name: "expert_sums",
  changesBits: true,
  within: "experts_in_norm",
  apply(edits, { tuning }) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const combine = edits.producer(add.y, add, "combine");
      if (!combine || combine.to) continue;
      const down = edits.writer(combine.x);
      if (down?.kind !== "expert_matmul" || !down.perJob || down.gated) continue;
      const { matrix, x, experts, jobs, label } = down;
      const biased = combine.bias !== undefined;
      const counts = { rows: add.x.rows, topK: jobsOfRow(jobs) };
      if (counts.topK > MAX_EXPERTS || !canSum(matrix, counts, { tuning, biased })) continue;
      const { shares } = combine;
      const { x: stream, out, part } = add;
      edits.remove(down, combine);
      edits.replace(add, {
        kind: "expert_sums",
        matrix,
        x,
        experts,
        shares,
        bias: combine.bias?.values,
        jobs,
        stream,
        out,
        label,
        part,
      });
    }
  },
};

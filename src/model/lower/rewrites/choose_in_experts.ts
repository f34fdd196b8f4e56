import { canChoose, expertTile } from "../../../../kernels/experts/experts.ts";
import { jobsOfRow } from "../../graph/graph.ts";
import type { Rewrite } from "../rewrite.ts";

/** The experts' first matmul chooses the experts of its rows itself, from the router's logits. */
export const chooseInExperts: Rewrite = {
  name: "choose_in_experts",
  apply(edits, { tuning }) {
    for (const route of edits.ops) {
      if (route.kind !== "route" || edits.writer(route.logits)?.kind !== "normed_router") continue;
      // That matmul cannot add a bias to the scores.
      if (route.bias) continue;
      const readers = edits.readers(route.out);
      const gateUp = readers.find((op) => op.kind === "expert_matmul" && !op.perJob);
      if (gateUp?.kind !== "expert_matmul") continue;
      const { routing, shared } = route.jobs;
      const jobs = {
        rows: route.logits.rows,
        topK: jobsOfRow(route.jobs),
        numExperts: routing.numExperts + shared,
      };
      const tile = expertTile(jobs, gateUp.matrix, tuning);
      const biased = typeof gateUp.gated === "object";
      const factors = route.factors !== undefined;
      if (!canChoose(gateUp.matrix, routing, { tile, biased, factors, tuning })) continue;
      const choice = { logits: route.logits, shares: route.shares, factors: route.factors };
      edits.remove(route);
      for (const op of readers) {
        if (op.kind === "expert_tiles") edits.remove(op);
        if (op.kind === "expert_matmul") {
          edits.replace(op, { ...op, tiles: undefined, ...op === gateUp && { choice } });
        }
      }
    }
  },
};

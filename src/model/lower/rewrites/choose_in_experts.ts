import { canChoose } from "../../../../kernels/experts/experts.ts";
import type { Rewrite } from "../rewrite.ts";

/** The experts' first matmul chooses the experts of its rows itself, from the router's logits. */
export const chooseInExperts: Rewrite = {
  name: "choose_in_experts",
  apply(edits, { tuning }) {
    for (const route of edits.ops) {
      if (route.kind !== "route" || edits.writer(route.logits)?.kind !== "normed_router") continue;
      // That matmul cannot add a bias to the scores.
      if (route.bias) continue;
      const gateUp = edits.readers(route.out).find((op) =>
        op.kind === "expert_matmul" && !op.perJob
      );
      if (gateUp?.kind !== "expert_matmul") continue;
      const { tile, jobs: { routing } } = gateUp;
      const biased = typeof gateUp.gated === "object";
      const factors = route.factors !== undefined;
      if (!canChoose(gateUp.matrix, routing, { tile, biased, factors, tuning })) continue;
      const choice = { logits: route.logits, shares: route.shares, factors: route.factors };
      edits.remove(route);
      edits.replace(gateUp, { ...gateUp, choice });
    }
  },
};

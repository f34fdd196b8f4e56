import { canNormRouted } from "../../../../kernels/experts/router_logits.ts";
import type { Rewrite } from "../rewrite.ts";

/** The router of few rows norms them, and stores them normed for the experts. */
export const normedRouter: Rewrite = {
  name: "normed_router",
  apply(edits, { tuning }) {
    for (const route of edits.ops) {
      if (route.kind !== "route") continue;
      const router = edits.writer(route.logits);
      if (router?.kind !== "matmul") continue;
      const { epilogue } = router;
      if (epilogue.of !== "store" && epilogue.of !== "bias") continue;
      const norm = edits.writer(router.x);
      if (norm?.kind !== "norm" || norm.from.of !== "sums" || norm.keep) continue;
      const { x, stream } = norm.from;
      if (!x || !stream || !canNormRouted(router.matrix, router.x.rows, tuning)) continue;
      const { weight, eps, part } = norm;
      edits.replace(norm, {
        kind: "normed_router",
        from: { ...norm.from, x, stream },
        weight,
        eps,
        matrix: router.matrix,
        bias: epilogue.of === "bias" ? epilogue.values : undefined,
        normed: norm.out,
        logits: route.logits,
        notes: false,
        label: router.label,
        part,
      });
      edits.remove(router);
    }
  },
};

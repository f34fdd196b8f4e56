import { canNormRouted } from "../../../../kernels/experts/router_logits.ts";
import type { Edits } from "../edits.ts";
import type { OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * For few rows the router norms its input itself, and stores the normed rows for the experts. If the experts have a
 * norm of their own, the stored rows are normed with its weights.
 */
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
      if (norm?.kind !== "norm" || norm.keep) continue;
      if (!canNormRouted(router.matrix, router.x.rows, tuning)) continue;
      const { from, weight, eps, part } = norm;
      const experts = expertsNorm(edits, norm);
      const routed = {
        kind: "normed_router",
        weight,
        eps,
        matrix: router.matrix,
        bias: epilogue.of === "bias" ? epilogue.values : undefined,
        logits: route.logits,
        storesScales: false,
        label: router.label,
        part,
      } as const;
      if (from.of === "sums" && from.x && from.stream) {
        const { x, stream } = from;
        const own = { expertsWeight: undefined, normed: norm.out };
        edits.replace(norm, { ...routed, ...own, from: { ...from, x, stream } });
      } else if (from.of === "rows" && experts) {
        const own = { expertsWeight: experts.weight, normed: experts.out };
        edits.replace(norm, { ...routed, ...own, from });
        edits.remove(experts);
      } else continue;
      edits.remove(router);
    }
  },
};

/** The experts' own norm of the same rows, if there is one and the router is the only reader of its norm. */
function expertsNorm(edits: Edits, norm: OpOf<"norm">): OpOf<"norm"> | undefined {
  const { from, eps, out } = norm;
  if (from.of !== "rows" || from.index || edits.soleReader(out)?.kind !== "matmul") {
    return undefined;
  }
  const found = edits.readers(from.x).find((op) =>
    op.kind === "norm" && op.from.of === "rows" && op.from.x === from.x &&
    edits.readers(op.out).some(({ kind }) => kind === "expert_matmul")
  );
  if (found?.kind !== "norm" || found === norm || found.eps !== eps) return undefined;
  return found.put === "store" && !found.keep ? found : undefined;
}

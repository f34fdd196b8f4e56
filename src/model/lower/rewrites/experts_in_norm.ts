import { MAX_EXPERTS, normAfter } from "../norms.ts";
import type { Rewrite } from "../rewrite.ts";

/** On hardware a norm adds the experts' weighted outputs to the residual stream: it has all their loads in flight. */
export const expertsInNorm: Rewrite = {
  name: "experts_in_norm",
  changesBits: true,
  apply(edits, { tuning: { software } }) {
    for (const add of software ? [] : edits.ops) {
      if (add.kind !== "add") continue;
      const combine = edits.producer(add.y, add, "combine");
      const norm = normAfter(edits, add);
      if (!combine || combine.to || !norm) continue;
      const { x: outputs, shares, bias } = combine;
      if (shares.cols > MAX_EXPERTS) continue;
      edits.remove(combine, norm);
      edits.replace(add, {
        ...norm,
        from: { of: "experts", x: add.x, outputs, shares, bias, stream: add.out },
      });
    }
  },
};

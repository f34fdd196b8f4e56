import { type HostDrafter, pureDrafter } from "../../src/draft/host_drafter.ts";
import type { GenerateResult } from "../../src/engine/schedule/events.ts";
import { NO_PROPOSAL } from "../../src/speculate/trees.ts";

/** A drafter of trees that knows the texts: the right token and a wrong one beside it at each of three levels. */
export function knowingDrafter(
  texts: readonly Pick<GenerateResult, "promptIds" | "outputIds">[],
): HostDrafter {
  return pureDrafter({
    name: "knows",
    shapes: [{ depth: 3, width: 2, rows: 8 }],
    propose(ids, { depth }) {
      const text = texts.find(({ promptIds, outputIds }) =>
        ids.every((id, i) => (promptIds[i] ?? outputIds[i - promptIds.length]) === id)
      );
      const [a, b, c] = text?.outputIds.slice(ids.length - text.promptIds.length) ?? [];
      if (a === undefined || b === undefined || c === undefined || depth < 3) return NO_PROPOSAL;
      return { tokens: [a ^ 1, a, b ^ 1, b, a, c], parents: [0, 0, 2, 2, 4, 4] };
    },
  });
}

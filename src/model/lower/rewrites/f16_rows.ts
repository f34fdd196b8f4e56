import { takesF16 } from "../../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Rewrite } from "../rewrite.ts";
import { epilogueBuffers } from "./norm_in_matmul.ts";

/**
 * x of a matmul on matrix units is rounded to f16 once, not by each of its workgroups: by the norm that stores it, or
 * where there are as many rows as of a prompt by a dispatch before it.
 */
export const f16Rows: Rewrite = {
  name: "f16_rows",
  apply(edits, { tuning }) {
    for (const matmul of edits.ops) {
      if (matmul.kind !== "matmul" || matmul.paired || matmul.hold || !matmul.onUnits) continue;
      const { x, matrix, epilogue, label, part } = matmul;
      if (epilogue.of === "partials") continue;
      // A gate may store the scales of its output.
      const bound = Math.max(1, epilogueBuffers(epilogue));
      const taken = takesF16(matrix, { rows: x.rows, bound, tuning });
      if (!taken) continue;
      const norm = edits.soleReader(x) === matmul ? edits.writer(x) : undefined;
      const norms = norm?.kind === "norm" || norm?.kind === "gated_norm" ||
        norm?.kind === "norm_pair";
      if (norms && norm.notes && norm.put === "store" && matmul.xScales) {
        edits.replace(norm, { ...norm, put: taken.put });
        edits.replace(matmul, { ...matmul, paired: true });
      } else if (taken.before) {
        const halves = { label: `${label}.halves`, rows: x.rows, cols: x.cols / 2, parts: 1 };
        edits.replace(
          matmul,
          { kind: "half_rows", x, out: halves, label: halves.label, part },
          { ...matmul, x: halves, xScales: undefined, paired: true },
        );
      }
    }
  },
};

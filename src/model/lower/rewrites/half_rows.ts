import { takesHalves } from "../../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Rewrite } from "../rewrite.ts";
import { epilogueBuffers } from "./norm_in_matmul.ts";

/**
 * With `--precision f16` the rows of a prompt are rounded to f16 once for each matmul on matrix units: by their norm,
 * or before it.
 */
export const halfRows: Rewrite = {
  name: "half_rows",
  apply(edits, { tuning }) {
    for (const matmul of edits.ops) {
      if (matmul.kind !== "matmul" || matmul.paired || matmul.hold || !matmul.onUnits) continue;
      const { x, matrix, epilogue, label, part } = matmul;
      if (epilogue.of === "partials") continue;
      // A gate may store the scales of its output.
      const bound = Math.max(1, epilogueBuffers(epilogue));
      if (!takesHalves(matrix, { rows: x.rows, bound, tuning })) continue;
      const norm = edits.soleReader(x) === matmul ? edits.writer(x) : undefined;
      const normed = norm?.kind === "norm" || norm?.kind === "gated_norm";
      if (normed && norm.notes && norm.put === "store") {
        edits.replace(norm, { ...norm, put: "half" });
        edits.replace(matmul, { ...matmul, paired: true });
        continue;
      }
      const halves = { label: `${label}.halves`, rows: x.rows, cols: x.cols / 2, parts: 1 };
      edits.replace(
        matmul,
        { kind: "half_rows", x, out: halves, label: halves.label, part },
        { ...matmul, x: halves, xScales: undefined, paired: true },
      );
    }
  },
};

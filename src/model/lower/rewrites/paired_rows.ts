import { takesPairs } from "../../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Rewrite } from "../rewrite.ts";
import { epilogueBuffers } from "./norm_in_matmul.ts";

/** Storage buffers of an epilogue that notes scales. */
const NOTED_BUFFERS = 1;

/** On matrix units a norm stores its rows as two f16 numbers each, where one matmul of few rows reads them. */
export const pairedRows: Rewrite = {
  name: "paired_rows",
  apply(edits, { tuning }) {
    for (const matmul of edits.ops) {
      if (matmul.kind !== "matmul" || !matmul.xScales || matmul.hold || !matmul.onUnits) continue;
      const { x, matrix, epilogue } = matmul;
      const norm = edits.writer(x);
      if (!norm || edits.soleReader(x) !== matmul) continue;
      const buffers = epilogueBuffers(epilogue);
      const [rows, noting] = [x.rows, Math.max(buffers, NOTED_BUFFERS)];
      if (norm.kind === "norm_pair" && norm.notes) {
        if (!takesPairs(matrix, { rows, bound: buffers, tuning })) continue;
        edits.replace(norm, { ...norm, paired: true });
        edits.replace(matmul, { ...matmul, paired: true });
      }
      const normed = norm.kind === "norm" || norm.kind === "gated_norm";
      if (normed && norm.notes && norm.put === "store") {
        if (!takesPairs(matrix, { rows, bound: noting, tuning })) continue;
        edits.replace(norm, { ...norm, put: "pair" });
        edits.replace(matmul, { ...matmul, paired: true });
      }
    }
  },
};

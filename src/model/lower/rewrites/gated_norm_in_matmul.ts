import { gatesHeads } from "../../../../kernels/matmul/prologue/norms_rows.ts";
import type { Rewrite } from "../rewrite.ts";
import { epilogueBuffers } from "../emit/matmul.ts";

/** For few rows the only matmul that reads normed and gated heads norms and gates them itself. */
export const gatedNormInMatmul: Rewrite = {
  name: "gated_norm_in_matmul",
  apply(edits, { tuning }) {
    for (const matmul of edits.ops) {
      if (matmul.kind !== "matmul" || matmul.prologue || matmul.logits) continue;
      const norm = edits.producer(matmul.x, matmul, "gated_norm");
      if (norm?.put !== "store") continue;
      const { matrix, x: { rows }, out: { parts: splitK }, epilogue } = matmul;
      const bound = epilogueBuffers(epilogue);
      if (!gatesHeads(matrix, { rows, splitK, bound, headDim: norm.headDim, tuning })) continue;
      edits.replace(matmul, { ...matmul, x: norm.x, prologue: { of: "gated_norm", norm } });
      edits.remove(norm);
    }
  },
};

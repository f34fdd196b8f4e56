import { attentionStoresHalf } from "../../../../kernels/attention/attention_on_device.ts";
import { expertsTakeF16 } from "../../../../kernels/experts/experts_on_units.ts";
import { takesF16 } from "../../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Tuning } from "../../../gpu/tuning.ts";
import { jobsOfRow, type Value } from "../../graph/graph.ts";
import type { Edits } from "../edits.ts";
import type { AttentionOp, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";
import { epilogueBuffers } from "../emit/matmul.ts";

/**
 * x of a matmul on matrix units is rounded to f16 once, not by each of its workgroups. The norm that stores x does it;
 * where there are many rows, as in a prompt, the attention that stores x, or a dispatch before the matmul.
 */
export const f16Rows: Rewrite = {
  name: "f16_rows",
  apply(edits, { tuning }) {
    for (const matmul of edits.ops) {
      if (matmul.kind === "expert_matmul") roundExpertRows(edits, matmul, tuning);
      if (matmul.kind !== "matmul" || matmul.xIsF16 || matmul.prologue || !matmul.onUnits) continue;
      const { x, matrix, epilogue } = matmul;
      if (epilogue.of === "partials") continue;
      // A gate may store the scales of its output.
      const bound = Math.max(1, epilogueBuffers(epilogue));
      const taken = takesF16(matrix, { rows: x.rows, bound, tuning });
      if (!taken) continue;
      const writer = edits.soleReader(x) === matmul ? edits.writer(x) : undefined;
      const norms = writer?.kind === "norm" || writer?.kind === "gated_norm" ||
        writer?.kind === "norm_pair";
      if (norms && writer.storesScales && writer.put === "store" && matmul.xScales) {
        edits.replace(writer, { ...writer, put: taken.put });
        edits.replace(matmul, { ...matmul, xIsF16: true });
      } else if (taken.before) {
        const { before, rounded } = roundedBefore(matmul);
        // No operation between the two may store other scales in the same buffer.
        const follows = writer && edits.indexOf(matmul) === edits.indexOf(writer) + 1;
        if (follows && writer.kind === "attention" && storesHalf(writer, tuning)) {
          edits.replace(writer, { ...writer, out: rounded.x, put: "half", storesScales: false });
          edits.replace(matmul, rounded);
        } else edits.replace(matmul, before, rounded);
      }
    }
  },
};

/** A dispatch that rounds x, and the matmul of what it stores. */
function roundedBefore<Matmul extends OpOf<"matmul" | "expert_matmul">>(matmul: Matmul) {
  const { x, part } = matmul;
  const label = `${matmul.label}.halves`;
  const halves: Value = { label, rows: x.rows, cols: x.cols / 2, parts: 1 };
  return {
    before: { kind: "half_rows", x, out: halves, label, part } as const,
    rounded: { ...matmul, x: halves, xScales: undefined, xIsF16: true },
  };
}

/** A dispatch before a matmul of experts rounds its rows. The norm before it stores f32, which the router reads. */
function roundExpertRows(edits: Edits, matmul: OpOf<"expert_matmul">, { tensor }: Tuning): void {
  // Those of the forward; x of down has a row for each job.
  const rows = matmul.out.rows / jobsOfRow(matmul.jobs);
  if (!expertsTakeF16(matmul.matrix, { rows, tensor })) return;
  const { before, rounded } = roundedBefore(matmul);
  edits.replace(matmul, before, rounded);
}

/** Whether attention can store its output as f16. */
function storesHalf({ heads, of, window, stage, own }: AttentionOp, tuning: Tuning): boolean {
  const { count, perSlot, paths = false } = of;
  return stage === "all" && !own &&
    attentionStoresHalf({ ...heads, count, perSlot, paths, window, tuning });
}

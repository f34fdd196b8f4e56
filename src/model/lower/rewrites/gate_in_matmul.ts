import type { Edits } from "../edits.ts";
import type { OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** A matmul of pairs (gate, up) stores activation(gate) * up. */
export const gateInMatmul: Rewrite = {
  name: "gate_in_matmul",
  apply(edits) {
    gated(edits, () => true);
    clamped(edits);
  },
  // Gates and ups of a matrix in several buffers are not side by side, nor are those of stacked shared experts.
  required: (edits) =>
    gated(
      edits,
      (made) => made.kind === "matmul" ? made.matrix.shards.length > 1 : made.jobs.shared > 0,
    ),
};

function gated(
  edits: Edits,
  where: (made: OpOf<"matmul" | "expert_matmul">) => boolean,
): void {
  for (const gate of edits.ops) {
    if (gate.kind !== "gate" || edits.soleReader(gate.x) !== gate) continue;
    const { activation, out } = gate;
    const made = edits.writer(gate.x);
    if (made?.kind === "matmul" && made.epilogue.of === "store" && where(made)) {
      edits.replace(made, { ...made, out, epilogue: { of: "gate", activation, notes: false } });
      edits.remove(gate);
    }
    if (made?.kind === "expert_matmul" && where(made)) {
      edits.replace(made, { ...made, out, gated: activation });
      edits.remove(gate);
    }
  }
}

/** Of experts with biases, whose gates and ups are neighbours. */
function clamped(edits: Edits): void {
  for (const gate of edits.ops) {
    if (gate.kind !== "expert_gate" || edits.soleReader(gate.x) !== gate) continue;
    const made = edits.writer(gate.x);
    if (made?.kind !== "expert_matmul") continue;
    const { bias, limit, out } = gate;
    edits.replace(made, { ...made, out, gated: { bias, limit } });
    edits.remove(gate);
  }
}

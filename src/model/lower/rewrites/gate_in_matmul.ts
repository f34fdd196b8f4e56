import type { Edits } from "../edits.ts";
import type { OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** A matmul that computes pairs (gate, up) stores activation(gate) * up instead. */
export const gateInMatmul: Rewrite = {
  name: "gate_in_matmul",
  apply(edits) {
    gated(edits, () => true);
    clamped(edits);
  },
  // In the output of a matrix with several shards, or with stacked shared experts, gate and up are not paired as the
  // plain gate kernel expects.
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
      edits.replace(made, {
        ...made,
        out,
        epilogue: { of: "gate", activation, storesScales: false },
      });
      edits.remove(gate);
    }
    if (made?.kind === "expert_matmul" && where(made)) {
      edits.replace(made, { ...made, out, gated: activation });
      edits.remove(gate);
    }
  }
}

/** The same for experts with biases, whose gate and up rows are neighbours. */
function clamped(edits: Edits): void {
  for (const gate of edits.ops) {
    if (gate.kind !== "expert_gate") continue;
    const made = edits.producer(gate.x, gate, "expert_matmul");
    if (!made) continue;
    const { bias, limit, out } = gate;
    edits.replace(made, { ...made, out, gated: { bias, limit } });
    edits.remove(gate);
  }
}

import { attentionGates } from "../../../../kernels/attention/attention_on_device.ts";
import type { Rewrite } from "../rewrite.ts";

/** Attention multiplies its output by the gate in the dispatch that combines its partial sums. */
export const gateInAttention: Rewrite = {
  name: "gate_in_attention",
  apply(edits, { tuning }) {
    for (const gated of edits.ops) {
      if (gated.kind !== "output_gate") continue;
      const attention = edits.producer(gated.x, gated, "attention");
      if (!attention) continue;
      const { gate, out } = gated;
      const { value, first } = gate;
      // The kernels read the gate by fours. Blocks of eight rows bind it at multiples of 256 bytes.
      if (value.cols % 8 !== 0 || first % 4 !== 0) continue;
      if (!attentionGates(attention.heads, tuning)) continue;
      edits.replace(attention, { ...attention, out, gate });
      edits.remove(gated);
    }
  },
};

/** Several operations in one dispatch, whose workgroups hand rows to each other. */
import { headsWithHandoff } from "../../../../kernels/attention/handoff_heads.ts";
import { GATES } from "../../../../kernels/lib/gate.ts";
import { matmulsWithHandoff } from "../../../../kernels/matmul/handoff/handoff.ts";
import { splitKOf } from "../../../../kernels/matmul/matmul_shape.ts";
import { PLAIN_ROWS } from "../../../../kernels/matmul/prologue/prologue.ts";
import type { Dispatch } from "../../../gpu/kernel.ts";
import type { OpOf } from "../ops.ts";
import { attendOnce } from "./attention.ts";
import { missing, type Placing } from "./emitting.ts";
import { normOf, prologueOf } from "./matmul.ts";

export function emitHandoffHeads(to: Placing, op: OpOf<"handoff_heads">): Dispatch {
  const { context, at } = to;
  const { qkv, attention: scores, label } = op;
  const prologue = qkv.prologue ? prologueOf(to, qkv, qkv.prologue) : PLAIN_ROWS;
  const words = (context.handoff ?? missing("handoff buffers")).heads;
  const buffers = { matrix: qkv.matrix, x: at(qkv.x), words };
  return headsWithHandoff(
    buffers,
    { prologue, tuning: context.tuning, label },
    (handoff) => attendOnce(to, scores, handoff)[0] as Dispatch,
  );
}

export function emitHandoffMlp(to: Placing, op: OpOf<"handoff_mlp">): Dispatch {
  const { context, at } = to;
  const { gateUp, down, first, label } = op;
  const { tuning, handoff = missing("handoff buffers") } = context;
  const { epilogue, prologue } = gateUp;
  if (epilogue.of !== "gate") throw new Error(`${label}: an MLP without a gate`);
  return matmulsWithHandoff(
    { x: at(gateUp.x), handoff: handoff.act, act: at(down.x), out: at(down.out) },
    {
      gateUp: gateUp.matrix,
      down: down.matrix,
      splitK: splitKOf(down.matrix, tuning),
      tuning,
      norm: prologue?.of === "norm" ? normOf(to, prologue) : undefined,
      first: first && {
        matrix: first.matrix,
        splitK: first.out.parts,
        prologue: first.prologue ? prologueOf(to, first, first.prologue) : PLAIN_ROWS,
        x: at(first.x),
        words: handoff.heads,
      },
      gate: GATES[epilogue.activation].gate,
      label,
    },
  );
}

/** Turns each operation into dispatches: calls the kernels' functions with the operands of the operation's values. */
import {
  addRows,
  gateBy,
  gateRows,
  mapRows,
  outputGateRows,
  scaleBy,
} from "../../../kernels/elementwise/elementwise.ts";
import { canBeFused, fused, memoryOf } from "../../../kernels/fused.ts";
import { lanesOf } from "../../../kernels/matmul/matmul_lanes.ts";
import { launchStages, shapeKey } from "../../../kernels/matmul/matmul_shape.ts";
import { halfRows } from "../../../kernels/matmul/tensor/half_rows.ts";
import { embed } from "../../../kernels/norm/embed.ts";
import { copyRows, gatherRows, scatterRows } from "../../../kernels/round/move_rows.ts";
import { from } from "../../../kernels/lib/row_blocks.ts";
import { verifyRows } from "../../../kernels/round/round.ts";
import { slicePartialCount, slicePartials } from "../../../kernels/sample/slice_partials.ts";
import { type Dispatch, forCellsIn } from "../../gpu/kernel.ts";
import { workgroupInvocations } from "../../gpu/workgroup.ts";
import type { DecoderContext } from "../graph/context.ts";
import {
  emitAttention,
  emitHeads,
  emitLatentAttention,
  emitLatentPrepare,
  emitLatentValue,
} from "./emit/attention.ts";
import { type Emitting, halfScalesOf, missing, scalesOf } from "./emit/emitting.ts";
import {
  emitCombine,
  emitExpertGate,
  emitExpertMatmul,
  emitExpertSums,
  emitExpertTiles,
  emitNormedRouter,
  emitRoute,
} from "./emit/experts.ts";
import { emitHandoffHeads, emitHandoffMlp } from "./emit/handoff.ts";
import { emitMatmul } from "./emit/matmul.ts";
import { emitGatedNorm, emitNorm, emitNormPair, emitNormSum } from "./emit/norm.ts";
import { emitDeltaRule, emitShortConv } from "./emit/recurrent.ts";
import type { LoweredOp, MatmulOp, OpOf } from "./ops.ts";

/** The dispatches of an operation. */
export function emit(to: Emitting, op: LoweredOp): Dispatch[] {
  const all = dispatchesOf(to, op);
  const { forCells } = op;
  return forCells ? forCellsIn(all, forCells) : all;
}

function dispatchesOf(to: Emitting, op: LoweredOp): Dispatch[] {
  const { context, at } = to;
  const { tuning } = context;
  switch (op.kind) {
    case "embed": {
      const { table: matrix, rows, scale, out, label } = op;
      return embed({ matrix, rows, out: at(out) }, {
        count: out.rows,
        scale,
        label,
        outCols: out.cols,
      });
    }
    case "norm":
      return emitNorm(to, op);
    case "matmul":
      return emitMatmul(to, op);
    case "add": {
      const { x, y, label } = op;
      const { rows, cols } = x;
      return [addRows({ x: at(x), y: at(y) }, { rows, cols, parts: y.parts, label })];
    }
    case "gate": {
      const { x, out, activation, label } = op;
      const { rows, cols } = out;
      return [gateRows({ x: at(x), out: at(out) }, { rows, cols, activation, label })];
    }
    case "half_rows": {
      const { x, out, label } = op;
      const scales = halfScalesOf(context, label);
      const { rows, cols } = x;
      return [halfRows({ x: at(x), scales, out: at(out) }, { rows, cols, label })];
    }
    case "elementwise": {
      const { x, out, f, label } = op;
      const { rows, cols } = out;
      return [mapRows({ x: at(x), out: at(out) }, { rows, cols, f, label })];
    }
    case "scale_by": {
      const { x, scalar, out, label } = op;
      const { rows, cols } = out;
      return [scaleBy({ x: at(x), scalar, out: at(out) }, { rows, cols, label })];
    }
    case "store_heads":
      return [emitHeads(to, op)];
    case "attention":
      return emitAttention(to, op);
    case "short_conv":
      return emitShortConv(to, op);
    case "delta_rule":
      return emitDeltaRule(to, op);
    case "gated_norm":
      return emitGatedNorm(to, op);
    case "output_gate": {
      const { x, gate, out, label } = op;
      const { rows, cols } = out;
      const buffers = { x: at(x), gate: at(gate.value), out: at(out) };
      return [
        outputGateRows(buffers, { rows, cols, gate: { ...gate, cols: gate.value.cols }, label }),
      ];
    }
    case "gate_by": {
      const { x, by, first, out, label } = op;
      const { rows, cols } = out;
      const buffers = { x: at(x), y: from(at(by), 4 * first), out: at(out) };
      return [gateBy(buffers, { rows, cols, label })];
    }
    case "latent_prepare":
      return emitLatentPrepare(to, op);
    case "latent_attention":
      return emitLatentAttention(to, op);
    case "latent_value":
      return emitLatentValue(to, op);
    case "route":
      return emitRoute(to, op);
    case "normed_router":
      return emitNormedRouter(to, op);
    case "expert_tiles":
      return emitExpertTiles(to, op);
    case "expert_matmul":
      return emitExpertMatmul(to, op);
    case "expert_sums":
      return emitExpertSums(to, op);
    case "expert_gate":
      return emitExpertGate(to, op);
    case "combine":
      return emitCombine(to, op);
    case "fused":
      return [emitFused(to, op) ?? missing(`one dispatch of ${op.label}`)];
    case "norm_pair":
      return emitNormPair(to, op);
    case "norm_sum":
      return emitNormSum(to, op);
    case "handoff_heads":
      return [emitHandoffHeads(to, op)];
    case "handoff_mlp":
      return [emitHandoffMlp(to, op)];
    case "gather": {
      const { x, index, out, first, label } = op;
      return [
        gatherRows({ x: at(x), index, out: at(out) }, {
          rows: out.rows,
          cols: x.cols,
          outCols: out.cols,
          outFirst: first,
          label,
        }),
      ];
    }
    case "place": {
      const { x, out, first, label } = op;
      const window = { outCols: out.cols, outFirst: first };
      const shape = { rows: x.rows, cols: x.cols, ...window, label };
      return [copyRows({ x: at(x), out: at(out) }, shape)];
    }
    case "copy": {
      const { x, to: { out, ...window }, label } = op;
      return [copyRows({ x: at(x), out }, { rows: x.rows, cols: x.cols, ...window, label })];
    }
    case "scatter": {
      const { x, index, out, label } = op;
      return [
        scatterRows({ x: at(x), index, out: at(out) }, { rows: x.rows, cols: x.cols, label }),
      ];
    }
    case "partials": {
      const { logits, choice: kind, vocab, out, label } = op;
      to.partials.set(out, slicePartialCount(vocab));
      return [
        slicePartials({ logits: at(logits), partials: at(out) }, {
          kind,
          rows: logits.rows,
          vocab,
          stride: logits.cols,
          lanes: tuning.rowLanes,
          label,
        }),
      ];
    }
    case "verify_rows": {
      const { batchSlots, slots, drafts, rows, batch, perSlot, maxRows } = op;
      return [
        verifyRows({ batchSlots, slots, drafts, rows }, { batch, rows: perSlot, maxRows }),
      ];
    }
    case "call":
      return op.record(at, {
        partialsOf: (value) => to.partials.get(value) ?? missing(`partial results of ${op.label}`),
        attentionScales: op.resetsScales ? scalesOf(context, "attentionOutput") : undefined,
      });
  }
}

/**
 * Two operations as one dispatch. For the second it tries the measured launch, then the rule's, then workgroups of the
 * first's size. Returns undefined where either is more than one launch or the two cannot be fused.
 */
export function emitFused(
  to: Emitting,
  { first, second, label }: Pick<OpOf<"fused">, "first" | "second" | "label">,
): Dispatch | undefined {
  const { tuning } = to.context;
  const [one, ...more] = emit(to, first);
  if (!one || more.length > 0) return undefined;
  // On matrix units, one row's workgroups are one subgroup each, and many must run at once: no room for others.
  if (workgroupInvocations(one) <= (tuning.tensor?.unit.lanes ?? 0)) return undefined;
  const asked = [
    to,
    withTuning(to, { launches: undefined }),
    ...inWorkgroupsOf(workgroupInvocations(one), to, second),
  ];
  const launches = asked.flatMap((to, i) => {
    const [other, ...others] = emitMatmul(to, second);
    if (!other || others.length > 0) return [];
    // The smaller one comes first: its workgroups take as long as the other's, of which there are more.
    const both = [other, one] as const;
    const { bytes } = memoryOf(other, one);
    const roomy = i === asked.length - 1 || bytes <= MAX_FUSED;
    return roomy && canBeFused(both, tuning) ? [both] : [];
  });
  return launches[0] && fused(launches[0], label);
}

/** Most bytes of workgroup memory of a fused workgroup: a multiprocessor with 48 KiB then has room for four. */
const MAX_FUSED = 12 << 10;

/**
 * Contexts in which a matmul without matrix units has workgroups of `threads` invocations, the longest stage first. The
 * fewer stages there are, the less often its few invocations wait for memory, and the more workgroup memory they take.
 */
function inWorkgroupsOf(threads: number, to: Emitting, { x, matrix, out }: MatmulOp): Emitting[] {
  const { context: { tuning } } = to;
  if (threads % lanesOf(matrix, tuning) > 0) return [];
  const stages = launchStages(matrix, { rows: x.rows, splitK: out.parts, tuning });
  return stages.filter((stage) => stage > 0).toSorted((a, b) => b - a).map((stage) => {
    const launch = { stage, groups: threads / tuning.lanes, pairs: 1 } as const;
    const launches = new Map([[shapeKey(matrix), new Map([[1, launch], [x.rows, launch]])]]);
    return withTuning(to, { launches });
  });
}

function withTuning(to: Emitting, others: Pick<DecoderContext["tuning"], "launches">): Emitting {
  return { ...to, context: { ...to.context, tuning: { ...to.context.tuning, ...others } } };
}

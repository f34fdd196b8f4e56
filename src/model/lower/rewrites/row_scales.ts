import { attentionReducesScales } from "../../../../kernels/attention/attention_on_device.ts";
import { expertsStoreScales } from "../../../../kernels/experts/experts_on_units.ts";
import { routerStoresScales } from "../../../../kernels/experts/router_logits.ts";
import { storesScalesOnUnits } from "../../../../kernels/matmul/tensor/matmul_on_units.ts";
import { pairStoresScales } from "../../../../kernels/norm/norm_pair.ts";
import type { DecoderContext } from "../../graph/context.ts";
import { jobsOfRow, type Value } from "../../graph/graph.ts";
import type { Edits } from "../edits.ts";
import { attendsOnUnits } from "../emit/attention.ts";
import { epilogueOf } from "../emit/matmul.ts";
import { onPaper } from "../lifetimes.ts";
import type { LoweredOp, MatmulOp, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** Most rows for which attention on matrix units, and latent values, lower scales: there each invocation does. */
const MAX_REDUCED = 16;

/**
 * From this many numbers of a gate's output on, a separate dispatch finds the scales faster than the gate stores them.
 * With the dispatch a prompt chunk of 256 rows takes 30.3 ms on an H200 where it takes 31.8 without for Llama-3.1-8B's
 * 14,336 columns, and 6.07 where it takes 5.91 for Qwen3-0.6B's 3,072.
 */
const MANY_GATED = 1 << 21;

/** Storage buffers of a norm that adds experts with biases and stores scales. */
const BIASED_BUFFERS = 9;

/**
 * A norm stores the scales of its rows for the matmuls on matrix units that read the rows; without this, a dispatch
 * before each such matmul finds the scales. The norm also resets the scales of the layer's other matmul inputs to the
 * largest value, which the two rewrites below lower.
 */
export const rowScales: Rewrite = scaling("row_scales", normScales);

/** Attention stores the scales of the rows of its output. */
export const attentionRowScales: Rewrite = scaling("attention_row_scales", attentionScales);

/** A gate stores the scales of the rows of its output. */
export const gateRowScales: Rewrite = scaling("gate_row_scales", gateScales);

function scaling(
  name: string,
  visit: (edits: Edits, op: LoweredOp, context: DecoderContext) => void,
): Rewrite {
  return {
    name,
    apply(edits, context) {
      for (const op of context.scales ? edits.ops : []) visit(edits, op, context);
    },
  };
}

/** `row_scales` for one operation: a norm whose rows matmuls read stores their scales. */
function normScales(edits: Edits, op: LoweredOp, { config, tuning }: DecoderContext): void {
  const out = normedOf(op);
  if (!out) return;
  const readers = edits.readers(out);
  if (!readers.some(({ kind }) => kind === "matmul" || kind === "expert_matmul")) return;
  const mixture = readers.some(({ kind }) => kind === "expert_matmul");
  const biased = op.kind === "normed_router" && op.bias !== undefined;
  if (mixture && !routerStoresScales(tuning, biased)) return;
  if (op.kind === "norm" && op.cols !== config.hiddenSize) return;
  if (op.kind === "norm" && op.from.of === "experts" && op.from.bias) {
    if (tuning.storageBuffers < BIASED_BUFFERS + Number(op.keep !== undefined)) return;
  }
  if (op.kind === "norm_pair" && !(tuning.tensor && pairStoresScales(tuning.tensor.limits))) return;
  edits.replace(op, { ...op, storesScales: true } as LoweredOp);
  for (const reader of readers) {
    if (reader.kind === "matmul" || reader.kind === "expert_matmul") {
      edits.replace(reader, { ...reader, xScales: "normed" });
    }
  }
}

function normedOf(op: LoweredOp): Value | undefined {
  if (op.kind === "norm") {
    return op.put === "store" && op.cols === op.out.cols ? op.out : undefined;
  }
  if (op.kind === "norm_pair" || op.kind === "gated_norm") return op.out;
  return op.kind === "normed_router" ? op.normed : undefined;
}

/** `attention_row_scales` for one operation: attention whose queries come from rows with stored scales. */
function attentionScales(edits: Edits, op: LoweredOp, context: DecoderContext): void {
  const { tuning } = context;
  if (op.kind === "attention") {
    const onUnits = attendsOnUnits(op, context);
    if (onUnits && op.of.count > MAX_REDUCED || !attentionReducesScales(op.heads, tuning)) return;
    if (hasScales(edits, op.q)) storeScales(edits, op, op.out);
  }
  if (op.kind === "latent_value" && op.x.rows <= MAX_REDUCED && hasScales(edits, op.x)) {
    storeScales(edits, op, op.out);
  }
}

function storeScales(edits: Edits, op: OpOf<"attention" | "latent_value">, out: Value): void {
  const o = edits.soleReader(out);
  if (o?.kind !== "matmul") return;
  edits.replace(op, { ...op, storesScales: true });
  edits.replace(o, { ...o, xScales: "attentionOutput" });
}

/** Whether a value is computed from rows whose norm stored scales and so reset those of attention's output. */
function hasScales(edits: Edits, value: Value): boolean {
  const [op] = edits.writers(value);
  switch (op?.kind) {
    case "store_heads":
      return hasScales(edits, op.qkv);
    case "latent_attention":
      return hasScales(edits, op.q);
    case "latent_prepare":
      return hasScales(edits, op.x);
    case "matmul":
      return op.xScales === "normed" || op.xScales === undefined && hasScales(edits, op.x);
    case "norm":
      return op.storesScales ||
        op.from.of === "rows" && op.put === "store" && hasScales(edits, op.from.x);
    case "norm_pair":
      return op.storesScales;
    case "call":
      return op.resetsScales === true;
    default:
      return false;
  }
}

/**
 * `gate_row_scales` for one operation: the gate of an MLP whose input has stored scales, or that of the experts if no
 * shared expert has reduced the same scales before.
 */
function gateScales(edits: Edits, op: LoweredOp, context: DecoderContext): void {
  const { tuning } = context;
  if (op.kind === "matmul" && op.xScales && op.epilogue.of === "gate") {
    const down = edits.soleReader(op.out);
    const epilogue = { ...op.epilogue, storesScales: true };
    const storing: OpOf<"matmul"> = { ...op, epilogue };
    if (down?.kind !== "matmul" || op.out.rows * op.out.cols >= MANY_GATED) return;
    if (!storesScales(storing, context)) return;
    edits.replace(op, storing);
    edits.replace(down, { ...down, xScales: "act" });
  }
  if (op.kind === "expert_matmul" && op.xScales && op.gated) {
    const rows = op.out.rows / jobsOfRow(op.jobs);
    const down = edits.soleReader(op.out);
    const shared = edits.readers(op.x).some((of) =>
      of.kind === "matmul" && of.epilogue.of === "gate"
    );
    if (shared || down?.kind !== "expert_matmul") return;
    if (!expertsStoreScales(op.matrix, { rows, tensor: tuning.tensor })) return;
    if (tuning.storageBuffers < scaledBuffers(op)) return;
    edits.replace(op, { ...op, storesScales: true });
    edits.replace(down, { ...down, xScales: "act" });
  }
}

/** Storage buffers of an experts' matmul of quantized weights that reduces the scales of its outputs. */
function scaledBuffers({ gated, choice }: OpOf<"expert_matmul">): number {
  return 8 + (choice ? 2 : 0) + Number(typeof gated === "object");
}

function storesScales(op: MatmulOp, context: DecoderContext): boolean {
  const epilogue = epilogueOf({ context, at: onPaper }, op);
  return typeof epilogue !== "string" &&
    storesScalesOnUnits(op.matrix, { epilogue, tuning: context.tuning });
}

/** A causal model as a graph. */
import type { Operand } from "../../gpu/kernel.ts";
import type { TargetWeights } from "../weights/target_weights.ts";
import type { DecoderContext } from "./context.ts";
import { decoderLayer } from "./decoder.ts";
import type { Graph, LayerKv, RowsOf, Value, Window } from "./graph.ts";

/** The target, its keys and values, and what others read of its forwards. */
export interface Target extends DecoderContext {
  readonly weights: TargetWeights;
  readonly kv: readonly LayerKv[];
  /** Rows after the final norm, [rows, hidden]: the head's input and EAGLE-1's features. */
  readonly final: Operand;
  /** [rows that get logits, head.rows] */
  readonly logits: Operand;
  /** Largest logits of slices, u32 [rows that get logits, slicePartialWords(vocab)]. */
  readonly partials: Operand;
  /** What rows that sample have gathered, u32 [rows that get logits, gatheredWords(vocab, lanes)], see `choose`. */
  readonly gathered?: Operand | undefined;
}

/** Where a forward writes copies of the residual stream entering a layer. */
export interface AuxHidden extends Window {
  readonly layer: number;
}

/** The residual stream after all layers. Each of `auxHidden` is a copy of what enters its layer. */
export function targetLayers(
  graph: Graph,
  target: Target,
  of: RowsOf,
  auxHidden: readonly AuxHidden[],
): Value {
  const { weights, config } = target;
  let x = graph.embed(
    { table: weights.embed, rows: of.rows, count: of.count, scale: config.embedScale },
    "embed",
  );
  const { embedNorm: weight } = weights;
  if (weight) x = graph.norm(x, { weight, eps: config.rmsNormEps }, "embedNorm");
  for (const [i, weight] of weights.layers.entries()) {
    const label = `layers.${i}`;
    for (const { layer, ...to } of auxHidden) {
      if (layer === i) graph.copy(x, to, `${label}.auxHidden`);
    }
    const { inputNorm } = weight;
    const input = inputNorm
      ? graph.norm(x, { weight: inputNorm, eps: config.rmsNormEps }, `${label}.inputNorm`)
      : x;
    const layer = { ...weight, kv: target.kv[i] as LayerKv, label };
    x = decoderLayer(graph, target, layer, { x, input, of });
  }
  return x;
}

/** The final norm. @param at where it is stored; absent: in scratch memory. */
export function targetNorm(graph: Graph, target: Target, x: Value, at?: Operand): Value {
  const { weights: { norm: weight }, config: { rmsNormEps: eps } } = target;
  return graph.norm(x, { weight, eps, at }, "norm");
}

/** Logits of rows after the final norm. @param at where they are stored. */
export function targetHead(graph: Graph, target: Target, x: Value, at?: Operand): Value {
  const { weights: { head }, config: { logitCap, logitScale } } = target;
  const plain = logitCap === undefined && logitScale === 1;
  const logits = graph.linear(x, head, { logits: true, at: plain ? at : undefined, label: "head" });
  if (plain) return logits;
  if (logitCap === undefined) return graph.scale(logits, logitScale, "head.scale", at);
  return graph.softCap(graph.scale(logits, logitScale, "head.scale"), logitCap, "head.cap", at);
}

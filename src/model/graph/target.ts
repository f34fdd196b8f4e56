/** A causal model as a graph. */
import type { Operand } from "../../gpu/kernel.ts";
import type { TargetWeights } from "../weights/target_weights.ts";
import type { DecoderContext } from "./context.ts";
import { decoderLayer } from "./decoder.ts";
import { layerEmbeddings } from "./gemma4.ts";
import type { Graph, LayerKv, RowsOf, Value, Window } from "./graph.ts";

/** The target, its keys and values, and the buffers that its forwards write for others. */
export interface Target extends DecoderContext {
  readonly weights: TargetWeights;
  readonly kv: readonly LayerKv[];
  /** Rows after the final norm, [rows, hidden]: the head's input and EAGLE-1's features. */
  readonly final: Operand;
  /** [rows that get logits, head.rows] */
  readonly logits: Operand;
  /** Largest logit of each slice, u32 [rows that get logits, slicePartialWords(vocab)]. */
  readonly partials: Operand;
  /** Candidates gathered by rows that sample, u32 [rows that get logits, gatheredWords(vocab, lanes)], see `choose`. */
  readonly gathered?: Operand | undefined;
}

/** A window to which a forward copies the residual stream that enters a layer. */
export interface AuxHidden extends Window {
  readonly layer: number;
}

/** Returns the residual stream after all layers. Each of `auxHidden` gets a copy of the input of its layer. */
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
  const embeddings = weights.perLayer &&
    layerEmbeddings(graph, target, { x, of, weights: weights.perLayer });
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
    const embedded = embeddings && { all: embeddings, layer: i };
    const layer = { ...weight, kv: target.kv[i] as LayerKv, label, embedded };
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

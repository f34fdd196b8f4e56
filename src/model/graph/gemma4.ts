/** Gemma 4's per-layer embeddings. */
import { joinEmbeddings, layerWords } from "../../../kernels/norm/layer_embeddings.ts";
import type { PerLayerWeights } from "../weights/layer_weights.ts";
import type { PerLayerTable } from "../weights/target_weights.ts";
import type { DecoderContext } from "./context.ts";
import { type Graph, type RowsOf, type Value, value } from "./graph.ts";

/** One layer's part of the embeddings that `layerEmbeddings` made. */
export interface LayerEmbedding {
  readonly all: Value;
  readonly layer: number;
}

/**
 * Embeddings of the rows' tokens for all layers, [layers, rows, width]; each layer's part begins at a binding offset:
 *
 *     (norm(projection x hidden^-0.5) + table[token] sqrt(width)) / sqrt(2)
 *
 * @param of.x the scaled embeddings of the tokens.
 */
export function layerEmbeddings(
  graph: Graph,
  { config }: DecoderContext,
  { x, of, weights }: {
    readonly x: Value;
    readonly of: RowsOf;
    readonly weights: PerLayerTable;
  },
): Value {
  const { embed: table, projection, norm } = weights;
  const { rows, count } = of;
  const tokens = graph.embed({ table, rows, count }, "perLayer.embed");
  const projected = graph.linear(x, projection, { label: "perLayer.projection" });
  const layers = config.layers.length;
  const width = table.cols / layers;
  const out = value("perLayer", 1, layers * layerWords({ rows: count, width }));
  graph.call({
    reads: [tokens, projected],
    writes: [out],
    record: (at) => [
      joinEmbeddings(
        { tokens: at(tokens), projected: at(projected), weight: norm, out: at(out) },
        {
          rows: count,
          layers,
          width,
          eps: config.rmsNormEps,
          tokenScale: config.perLayer?.scale ?? 1,
          projectedScale: config.hiddenSize ** -0.5,
          label: "perLayer.join",
        },
      ),
    ],
  }, "perLayer.join");
  return out;
}

/** projection(gelu(gate x) * the layer's embeddings), which is normed before it is added to x. */
export function layerEmbedding(
  graph: Graph,
  { gate, projection }: PerLayerWeights,
  { x, embedded: { all, layer }, label }: {
    readonly x: Value;
    readonly embedded: LayerEmbedding;
    readonly label: string;
  },
): Value {
  const gated = graph.linear(x, gate, { label: `${label}.perLayerGate` });
  const { rows, cols: width } = gated;
  const by = { by: all, first: layer * layerWords({ rows, width }) };
  const out = graph.gateBy(gated, by, `${label}.perLayerGate.gate`);
  return graph.linear(out, projection, { label: `${label}.perLayerProjection` });
}

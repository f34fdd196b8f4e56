/**
 * layer_embeddings.wgsl: token embeddings that each layer has of its own, joined with a projection of the hidden row.
 */
import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

/** Words of 256 bytes: a layer's rows begin where every adapter lets a binding begin. */
const ALIGNED_WORDS = 64;

const JOIN = kernelOf("norm/layer_embeddings")({}, {
  name: "layer_embeddings",
  bindings: ["tokens", "projected", "weight", "out"],
  constants: ["LAYERS", "WIDTH", "LAYER_WORDS", "EPS", "TOKEN_SCALE", "PROJECTED_SCALE"],
});

/** f32 words from a layer's rows to those of the next. */
export function layerWords(
  { rows, width }: { readonly rows: number; readonly width: number },
): number {
  return ALIGNED_WORDS * Math.ceil(rows * width / ALIGNED_WORDS);
}

/**
 * Records `out[l, r] = (norm(projectedScale projected[r, l]) * weight + tokenScale tokens[r, l]) / sqrt(2)` of rows of
 * `layers` parts of `width` numbers; out is [layers, layerWords]. Source: Gemma4TextModel of transformers.
 */
export function joinEmbeddings(
  buffers: Readonly<Record<"tokens" | "projected" | "weight" | "out", Operand>>,
  { rows, layers, width, eps, tokenScale, projectedScale, label }: {
    readonly rows: number;
    readonly layers: number;
    readonly width: number;
    readonly eps: number;
    readonly tokenScale: number;
    readonly projectedScale: number;
    readonly label: string;
  },
): Dispatch {
  return dispatch(JOIN, {
    buffers,
    constants: {
      LAYERS: layers,
      WIDTH: width,
      LAYER_WORDS: layerWords({ rows, width }),
      EPS: eps,
      TOKEN_SCALE: tokenScale,
      PROJECTED_SCALE: projectedScale,
    },
    workgroups: [layers, rows],
    label,
    work: { bytes: 12 * rows * layers * width, flops: 8 * rows * layers * width },
  });
}

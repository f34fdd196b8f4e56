/** Reads the NextN layer of a DeepSeek-V3 checkpoint as a draft for the rest of it. */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { fieldsOf, parseModelConfig } from "./config.ts";
import type { DraftConfig } from "./types.ts";
import { unusable } from "../files/fields.ts";
import type { LayerConfig } from "./layer_config.ts";

/**
 * The draft that the first layer after the last is:
 *
 *     x = eh_proj [enorm(embedding); hnorm(h)],  y = shared_head.norm(layer(x))
 *
 * with h the target's rows after its last norm, and then y itself. Its embedding and lm_head are the
 * target's; the copies in the file are not read.
 * @param ropeTheta instead of the config's.
 * @throws UsageError where the checkpoint has no such layer.
 */
export function parseNextnConfig(checkpoint: Checkpoint, ropeTheta?: number): DraftConfig {
  const json = checkpoint.json("config.json");
  const config = parseModelConfig(checkpoint.name, json, undefined);
  const { layers, nextnLayers = 0, hiddenSize, vocabSize, ropes } = config;
  if (nextnLayers === 0) {
    const fields = fieldsOf(checkpoint.name, "config.json", json);
    throw unusable(fields, "has no num_nextn_predict_layers, which NEXTN drafts with");
  }
  const layerPrefix = `layers.${layers.length}`;
  return Object.freeze({
    algorithm: "NEXTN",
    layer: {
      ...config,
      layers: [layers.at(-1) as LayerConfig],
      ropes: ropes.map((rope) => ({ ...rope, theta: ropeTheta ?? rope.theta })),
      tied: false,
    },
    targetHiddenSize: hiddenSize,
    draftVocabSize: vocabSize,
    fcBias: false,
    auxLayers: [],
    ownEmbedding: false,
    ownHead: false,
    reducedVocab: false,
    normBeforeResidual: false,
    inputNorms: "each",
    normOutput: true,
    prefix: "model.",
    fc: `${layerPrefix}.eh_proj`,
    layerPrefix,
  });
}

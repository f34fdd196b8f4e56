/** Reads the NextN layer of a checkpoint of DeepSeek-V3, or of Qwen3.5, as a draft for the rest of it. */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { parseModelConfig } from "./config.ts";
import type { DraftConfig } from "./types.ts";
import { decoderFields } from "./architectures.ts";
import { fieldsOf, flag, unusable } from "../files/fields.ts";
import { isRecurrent, type LayerConfig } from "./layer_config.ts";

/**
 * The config of the draft that is the first layer after the model's last one:
 *
 *     x = eh_proj [enorm(embedding); hnorm(h)],  y = shared_head.norm(layer(x))
 *
 * where h is the target's rows after its last norm, and y itself in later steps. Qwen calls eh_proj mtp.fc. Embedding
 * and lm_head are the target's; the copies in the file are not read.
 * @param ropeTheta overrides the config's.
 * @throws UsageError where the checkpoint has no such layer.
 */
export function parseNextnConfig(checkpoint: Checkpoint, ropeTheta?: number): DraftConfig {
  const json = checkpoint.json("config.json");
  const config = parseModelConfig(checkpoint.name, json, undefined);
  const { layers, nextnLayers = 0, mtp = false, hiddenSize, vocabSize, ropes } = config;
  const fields = fieldsOf(checkpoint.name, "config.json", json);
  if (nextnLayers === 0 && !mtp) {
    throw unusable(fields, "has no num_nextn_predict_layers, which NEXTN drafts with");
  }
  if (mtp && !checkpoint.tensors.has("mtp.fc.weight")) {
    const why = "has no tensors mtp.*, which NEXTN drafts with: many exports leave them out";
    throw unusable(
      { ...fields, where: "it" },
      `${why}; --donor MODEL reads them from another checkpoint of the model`,
    );
  }
  const dedicated = "mtp_use_dedicated_embeddings";
  if (mtp && flag(decoderFields(fields), dedicated, false)) {
    throw unusable(fields, `has ${dedicated} true, expected false for NEXTN`);
  }
  const layerPrefix = mtp ? "layers.0" : `layers.${layers.length}`;
  const layer = layers.findLast(({ attention }) => !isRecurrent(attention)) as LayerConfig;
  return Object.freeze({
    algorithm: "NEXTN",
    layer: {
      ...config,
      layers: [layer],
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
    prefix: mtp ? "mtp." : "model.",
    fc: mtp ? "fc" : `${layerPrefix}.eh_proj`,
    layerPrefix,
    nextnNorms: mtp ? MTP_NORMS : nextnNorms(layerPrefix),
  });
}

type NextnNorms = NonNullable<DraftConfig["nextnNorms"]>;

const MTP_NORMS: NextnNorms = {
  inputs: ["pre_fc_norm_embedding", "pre_fc_norm_hidden"],
  output: "norm",
};

function nextnNorms(layer: string): NextnNorms {
  return { inputs: [`${layer}.enorm`, `${layer}.hnorm`], output: `${layer}.shared_head.norm` };
}

/** Reads a causal model as a draft for another (`--drafter STANDALONE`). */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { parseModelConfig } from "./config.ts";
import type { ModelConfig, StandaloneConfig } from "./types.ts";

/**
 * Reads the config of a STANDALONE draft. Whether its vocabulary is that of `target` is checked elsewhere, see
 * src/text/vocabulary.ts.
 *
 * @param ropeTheta overrides the config's.
 * @throws UsageError as `parseModelConfig`.
 */
export function parseStandaloneConfig(
  checkpoint: Checkpoint,
  target: ModelConfig,
  ropeTheta?: number,
): StandaloneConfig {
  const config = parseModelConfig(checkpoint.name, checkpoint.json("config.json"), undefined);
  return Object.freeze({
    algorithm: "STANDALONE",
    layer: {
      ...config,
      ropes: config.ropes.map((rope) => ({ ...rope, theta: ropeTheta ?? rope.theta })),
    },
    // A vocabulary may be padded: the target cannot use ids beyond its own.
    draftVocabSize: Math.min(config.vocabSize, target.vocabSize),
  });
}

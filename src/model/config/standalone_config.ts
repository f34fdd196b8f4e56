/** Reads a causal model as a draft for another (`--drafter STANDALONE`). */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { parseModelConfig } from "./config.ts";
import type { ModelConfig, StandaloneConfig } from "./types.ts";

/**
 * Whether it has the vocabulary of `target` is another question, see src/text/vocabulary.ts.
 *
 * @param ropeTheta instead of the config's.
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
    // A vocabulary may be padded: the target has no use for the rest.
    draftVocabSize: Math.min(config.vocabSize, target.vocabSize),
  });
}

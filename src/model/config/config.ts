import { decoderFields, readArchitecture } from "./architectures.ts";
import { type Fields, fieldsOf, quote, unusable, value } from "../files/fields.ts";
import type { ModelConfig } from "./types.ts";

/**
 * The checked, frozen config of a target. Defaults are those of transformers.
 * @param name the checkpoint, for messages.
 * @param config parsed config.json.
 * @param generationConfig parsed generation_config.json, undefined when there is none.
 * @throws UsageError naming the field and what is known or allowed.
 */
export function parseModelConfig(
  name: string,
  config: unknown,
  generationConfig: unknown,
): ModelConfig {
  const fields = fieldsOf(name, "config.json", config);
  const generation = fieldsOf(name, "generation_config.json", generationConfig ?? {});
  const decoder = readArchitecture(fields);
  const text = decoderFields(fields);
  const ends = endIds(generation) ?? endIds(fields) ?? [];
  // Multimodal models may have one of their two end tokens only in text_config (Qwen3.5's <|endoftext|>).
  const inner = text === fields ? [] : endIds(text) ?? [];
  // transformers only warns of ids that are no tokens, -1 for example.
  const eosTokenIds = [...new Set([...ends, ...inner])]
    .filter((id) => id >= 0 && id < decoder.vocabSize);
  return Object.freeze({ ...decoder, eosTokenIds });

  function endIds(of: Fields): number[] | undefined {
    const found = value(of, "eos_token_id");
    if (found === undefined) return undefined;
    return [found].flat().map((id) => {
      if (Number.isSafeInteger(id)) return Number(id);
      throw unusable(of, `has ${quote(id)} in eos_token_id, expected integers`);
    });
  }
}

import { UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import { decoderFields, readArchitecture } from "./architectures.ts";
import { type Fields, integers, quote, value } from "../files/fields.ts";
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
  const last = decoder.vocabSize - 1;
  const ends = integers(generation, "eos_token_id", last) ??
    integers(fields, "eos_token_id", last) ?? integers(text, "eos_token_id", last) ?? [];
  // Multimodal models may have one of their two end tokens only in text_config (Qwen3.5's <|endoftext|>). Ids there
  // that are no tokens are skipped, as they were never read by others.
  const inner = text === fields ? [] : [value(text, "eos_token_id")].flat();
  const eosTokenIds = [...new Set([...ends, ...inner.filter((id) => isToken(id, last))])];
  return Object.freeze({ ...decoder, eosTokenIds });
}

function isToken(id: unknown, last: number): id is number {
  return Number.isSafeInteger(id) && Number(id) >= 0 && Number(id) <= last;
}

/** A checkpoint's JSON file as fields to read. @throws UsageError when it is not an object. */
export function fieldsOf(name: string, file: string, json: unknown): Fields {
  if (isObject(json)) return { name, where: file, values: json };
  throw new UsageError(`Cannot use ${quote(name)}: ${file} is not a JSON object`);
}

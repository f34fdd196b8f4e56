/** The architectures Eyrie runs; docs/models.md says how to add one. */
import { DEEPSEEK_V2, DEEPSEEK_V3 } from "./architectures/deepseek.ts";
import { GEMMA2, GEMMA3, GEMMA3_TEXT } from "./architectures/gemma.ts";
import { GRANITE } from "./architectures/granite.ts";
import { LFM2 } from "./architectures/lfm2.ts";
import { LLAMA } from "./architectures/llama.ts";
import { MISTRAL } from "./architectures/mistral.ts";
import { MIXTRAL } from "./architectures/mixtral.ts";
import { OLMO2 } from "./architectures/olmo2.ts";
import { PHI3 } from "./architectures/phi3.ts";
import { QWEN2, QWEN3, QWEN3_MOE } from "./architectures/qwen.ts";
import { SEED_OSS } from "./architectures/seed_oss.ts";
import { SMOLLM3 } from "./architectures/smollm3.ts";
import { readDecoder } from "./decoder_config.ts";
import type { DecoderConfig, Family } from "./types.ts";
import { type Fields, quote, unusable, value } from "../files/fields.ts";

/** What each is, by its name in config.json. */
export const FAMILIES: readonly Family[] = [
  LLAMA,
  MISTRAL,
  QWEN2,
  QWEN3,
  PHI3,
  OLMO2,
  GEMMA2,
  GEMMA3_TEXT,
  GEMMA3,
  MIXTRAL,
  QWEN3_MOE,
  DEEPSEEK_V2,
  DEEPSEEK_V3,
  GRANITE,
  SEED_OSS,
  SMOLLM3,
  LFM2,
];

/**
 * The decoder of a target, by `model_type`. Where there are `architectures`, the first must be the one
 * of that type.
 * @throws UsageError naming the known ones, or what in the config is not supported.
 */
export function readArchitecture(config: Fields): DecoderConfig {
  const listed = value(config, "architectures");
  const name: unknown = Array.isArray(listed) ? listed[0] : listed;
  if (name === undefined) return parseDecoder(config, familyByType(config).architecture);
  const family = FAMILIES.find(({ architecture }) => architecture === name);
  if (family === undefined) {
    const known = FAMILIES.map(({ architecture }) => architecture).join(", ");
    throw unusable(config, `has architecture ${quote(name)}, known are ${known}`);
  }
  if (family !== familyByType(config)) {
    const type = quote(value(config, "model_type"));
    throw unusable(config, `has architecture ${quote(name)} but model_type ${type}`);
  }
  return readDecoder(family, config, family.architecture);
}

/** Whether the first of a config's `architectures` is one of these. */
export function isKnown(config: Fields): boolean {
  const listed = value(config, "architectures");
  return Array.isArray(listed) &&
    FAMILIES.some(({ architecture }) => architecture === listed[0]);
}

/**
 * The decoder of a config, by `model_type` alone.
 * @param architecture for display.
 * @throws UsageError as above.
 */
export function parseDecoder(config: Fields, architecture: string): DecoderConfig {
  return readDecoder(familyByType(config), config, architecture);
}

function familyByType(config: Fields): Family {
  const type = value(config, "model_type");
  const family = FAMILIES.find(({ modelType }) => modelType === type);
  if (family !== undefined) return family;
  const known = FAMILIES.map(({ modelType }) => modelType).join(", ");
  throw unusable(config, `has model_type ${quote(type ?? null)}, known are ${known}`);
}

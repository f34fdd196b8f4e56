/** The architectures Eyrie runs; docs/models.md says how to add one. */
import { DEEPSEEK_V2, DEEPSEEK_V3, GLM4_MOE_LITE } from "./architectures/deepseek.ts";
import { ERNIE4_5, ERNIE4_5_MOE } from "./architectures/ernie4_5.ts";
import { EXAONE4 } from "./architectures/exaone4.ts";
import { GEMMA2, GEMMA3 } from "./architectures/gemma.ts";
import { GEMMA4, GEMMA4_UNIFIED } from "./architectures/gemma4.ts";
import { GPT_OSS } from "./architectures/gpt_oss.ts";
import { GRANITE } from "./architectures/granite.ts";
import { GRANITE_HYBRID } from "./architectures/granite_hybrid.ts";
import { GRANITE_SWA } from "./architectures/granite_swa.ts";
import { HUNYUAN_DENSE } from "./architectures/hunyuan.ts";
import { LAGUNA } from "./architectures/laguna.ts";
import { LFM2, LFM2_MOE } from "./architectures/lfm2.ts";
import { LLAMA } from "./architectures/llama.ts";
import { MINISTRAL3, MISTRAL } from "./architectures/mistral.ts";
import { MISTRAL4 } from "./architectures/mistral4.ts";
import { MIXTRAL } from "./architectures/mixtral.ts";
import { MUSE_GLIMMER } from "./architectures/muse_glimmer.ts";
import { OLMO2 } from "./architectures/olmo2.ts";
import { OLMO3 } from "./architectures/olmo3.ts";
import { PHI3 } from "./architectures/phi3.ts";
import { QWEN2, QWEN3, QWEN3_MOE } from "./architectures/qwen.ts";
import { QWEN3_5, QWEN3_5_MOE, QWEN3_NEXT } from "./architectures/qwen3_5.ts";
import { SEED_OSS } from "./architectures/seed_oss.ts";
import { SMOLLM3 } from "./architectures/smollm3.ts";
import { readDecoder } from "./decoder_config.ts";
import type { DecoderConfig, Family, FamilyName } from "./types.ts";
import { type Fields, nested, quote, unusable, value } from "../files/fields.ts";

/** All families; config.json names one of them. */
export const FAMILIES: readonly Family[] = [
  LLAMA,
  MISTRAL,
  QWEN2,
  QWEN3,
  PHI3,
  OLMO2,
  GEMMA2,
  GEMMA3,
  MIXTRAL,
  QWEN3_MOE,
  DEEPSEEK_V2,
  DEEPSEEK_V3,
  GRANITE,
  GRANITE_HYBRID,
  SEED_OSS,
  SMOLLM3,
  GLM4_MOE_LITE,
  OLMO3,
  EXAONE4,
  GPT_OSS,
  GEMMA4,
  GEMMA4_UNIFIED,
  MINISTRAL3,
  MISTRAL4,
  MUSE_GLIMMER,
  LAGUNA,
  LFM2,
  LFM2_MOE,
  QWEN3_5,
  QWEN3_5_MOE,
  QWEN3_NEXT,
  ERNIE4_5,
  ERNIE4_5_MOE,
  HUNYUAN_DENSE,
  GRANITE_SWA,
];

/** A model name that config.json may have, and its family. */
interface Known extends FamilyName {
  readonly family: Family;
  /** Whether the decoder's fields are in `text_config`. */
  readonly wrapper: boolean;
}

const KNOWN: readonly Known[] = FAMILIES.flatMap((family) => [
  { architecture: family.architecture, modelType: family.modelType, family, wrapper: false },
  ...(family.wrappers ?? []).map((name): Known => ({ ...name, family, wrapper: true })),
]);

/**
 * Reads the decoder of a target, by `model_type`. If the config has `architectures`, the first must be the
 * one of that type.
 * @throws UsageError naming the known ones, or what in the config is not supported.
 */
export function readArchitecture(config: Fields): DecoderConfig {
  const { architecture, family, text } = identify(config);
  return readDecoder(family, text, architecture);
}

/** The fields of the decoder: those of a model that also reads images or audio are in `text_config`. */
export function decoderFields(config: Fields): Fields {
  return identify(config).text;
}

/** Whether the first of a config's `architectures` is one that Eyrie runs. */
export function isKnown(config: Fields): boolean {
  const listed = value(config, "architectures");
  return Array.isArray(listed) && KNOWN.some(({ architecture }) => architecture === listed[0]);
}

/**
 * Reads the decoder of a config, by `model_type` alone.
 * @param architecture for display.
 * @throws UsageError as above.
 */
export function parseDecoder(config: Fields, architecture: string): DecoderConfig {
  // EAGLE heads run in SGLang and vLLM, whose layers all heed partial_rotary_factor.
  return readDecoder({ ...typed(config)[0].family, partialRope: true }, config, architecture);
}

function identify(config: Fields): Pick<Known, "architecture" | "family"> & { text: Fields } {
  const listed = value(config, "architectures");
  const name: unknown = Array.isArray(listed) ? listed[0] : listed;
  if (name !== undefined && !KNOWN.some(({ architecture }) => architecture === name)) {
    const known = list(
      KNOWN.filter(({ wrapper }) => !wrapper).map(({ architecture }) => architecture),
    );
    throw unusable(config, `has architecture ${quote(name)}, known are ${known}`);
  }
  const found = typed(config).filter(({ architecture }) =>
    name === undefined || architecture === name
  );
  const [first] = found;
  if (first === undefined) {
    const type = quote(value(config, "model_type"));
    throw unusable(config, `has architecture ${quote(name)} but model_type ${type}`);
  }
  if (!first.wrapper) return { ...first, text: config };
  const text = textFields(config);
  const type = value(text, "model_type");
  const { architecture } = first;
  if (type === undefined) return { ...first, text };
  const family = found.map(({ family }) => family).find(({ modelType }) => modelType === type);
  if (family !== undefined) return { architecture, family, text };
  const known = list(found.map(({ family }) => family.modelType));
  throw unusable(text, `has model_type ${quote(type)}, known are ${known}`);
}

/**
 * `text_config`, but whether the head is tied is the outer config's, as in transformers. If that does not say it, its
 * class does there; here the files do (`withHeadOfFile`), and before there are any, `text_config`.
 */
function textFields(config: Fields): Fields {
  const text = nested(config, "text_config");
  if (text === undefined) throw unusable(config, "has no text_config");
  const tie_word_embeddings = value(config, "tie_word_embeddings");
  if (tie_word_embeddings === undefined) return text;
  return { ...text, values: { ...text.values, tie_word_embeddings } };
}

/** All known names with a config's `model_type`, at least one. */
function typed(config: Fields): readonly [Known, ...Known[]] {
  const type = value(config, "model_type");
  const [first, ...others] = KNOWN.filter(({ modelType }) => modelType === type);
  if (first !== undefined) return [first, ...others];
  const known = list(KNOWN.map(({ modelType }) => modelType));
  throw unusable(config, `has model_type ${quote(type ?? null)}, known are ${known}`);
}

function list(names: readonly string[]): string {
  return [...new Set(names)].join(", ");
}

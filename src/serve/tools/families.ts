import { DEEPSEEK } from "./deepseek.ts";
import type { ToolFamily } from "./family.ts";
import { GEMMA4 } from "./gemma4.ts";
import { GENERIC } from "./generic.ts";
import { GLIMMER } from "./glimmer.ts";
import { GLM } from "./glm.ts";
import { GRANITE } from "./granite.ts";
import { HARMONY } from "./harmony.ts";
import { HERMES } from "./hermes.ts";
import { LFM2 } from "./lfm2.ts";
import { LLAMA3 } from "./llama3.ts";
import { MISTRAL } from "./mistral.ts";
import { OLMO3 } from "./olmo3.ts";
import { QWEN_CODER } from "./qwen_coder.ts";
import { SEED_OSS } from "./seed_oss.ts";

/** The more particular marks first. */
const FAMILIES: readonly ToolFamily[] = [
  DEEPSEEK,
  HARMONY,
  GLIMMER,
  GEMMA4,
  SEED_OSS,
  LFM2,
  MISTRAL,
  OLMO3,
  GRANITE,
  QWEN_CODER,
  GLM,
  HERMES,
  LLAMA3,
];

/** How a model calls tools, by its chat template. */
export function toolFamily(
  { chatTemplate: template }: { readonly chatTemplate: string | undefined },
): ToolFamily {
  if (template === undefined || !/\b(xml_)?tools\b/.test(template)) return GENERIC;
  return FAMILIES.find(({ speaks }) => speaks(template)) ?? GENERIC;
}

import { DEEPSEEK } from "./deepseek.ts";
import type { ToolFamily } from "./family.ts";
import { GENERIC } from "./generic.ts";
import { HERMES } from "./hermes.ts";
import { LLAMA3 } from "./llama3.ts";
import { MISTRAL } from "./mistral.ts";

/** The more particular marks first. */
const FAMILIES: readonly ToolFamily[] = [DEEPSEEK, MISTRAL, HERMES, LLAMA3];

/** How a model calls tools, by its chat template. */
export function toolFamily(
  { chatTemplate: template }: { readonly chatTemplate: string | undefined },
): ToolFamily {
  if (template === undefined || !/\btools\b/.test(template)) return GENERIC;
  return FAMILIES.find(({ speaks }) => speaks(template)) ?? GENERIC;
}

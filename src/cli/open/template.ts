import { UsageError } from "../../errors.ts";
import type { TemplateArguments } from "../../text/chat_template.ts";
import { thinkArguments } from "../../text/reasoning.ts";
import type { ChatOptions } from "../options/options.ts";
import type { EngineInfo } from "../../engine/engine.ts";

/** Whether the model is to think before it answers. */
export type Think = NonNullable<ChatOptions["think"]>;

/** Names that the conversation itself sets. */
const TAKEN = ["messages", "add_generation_prompt"];

/**
 * The variables that `--think` and `--template-arg` give the chat template; `--template-arg` wins.
 * @throws UsageError for a value that is not JSON.
 */
export function templateArguments(
  { think = "auto", templateArg }: Pick<ChatOptions, "think" | "templateArg">,
): TemplateArguments {
  return { ...thinkArguments(think), ...Object.fromEntries(templateArg.map(templateArgument)) };
}

function templateArgument(text: string): [string, unknown] {
  const refuse = (why: string) => new UsageError(`Cannot use "--template-arg ${text}": ${why}`);
  const [, name, json] = /^([A-Za-z_]\w*)=([^]*)$/.exec(text) ?? [];
  if (name === undefined || json === undefined) throw refuse("allowed is NAME=JSON");
  if (TAKEN.includes(name)) {
    throw refuse(`${name} is set by the conversation itself; allowed are other names`);
  }
  try {
    return [name, JSON.parse(json)];
  } catch (cause) {
    const quoted = `'${name}=${JSON.stringify(json)}'`;
    throw Object.assign(refuse(`${json} is not JSON; a text is written ${quoted}`), { cause });
  }
}

/** Warnings where `--think` has no effect. */
export function templateWarnings(
  { think = "auto" }: Pick<ChatOptions, "think">,
  { name, hasChatTemplate, reasoning }: Pick<EngineInfo, "name" | "hasChatTemplate" | "reasoning">,
): string[] {
  if (think === "auto" || !hasChatTemplate || reasoning.switchable) return [];
  return [
    `the chat template of "${name}" has no switch for thinking; --think ${think} does nothing`,
  ];
}

import conservative from "../../../presets/conservative.json" with { type: "json" };
import type { NamedPolicy } from "../../engine/schedule/speculation_choice.ts";
import { UsageError } from "../../errors.ts";
import { POLICIES } from "../../speculate/policies/registry.ts";
import { PolicyError } from "../../speculate/policy.ts";

/**
 * A policy as `NAME` or `NAME:key=value,key=value`; a value is a number, a word, or a list of them
 * with `/` between.
 *
 * @param flag as the user spelled it, for messages.
 * @throws UsageError for a policy that does not exist or options that it does not take.
 */
export function policyOf(text: string, flag = "--policy"): NamedPolicy {
  const refuse = (why: string) => new UsageError(`Cannot use "${flag} ${text}": ${why}`);
  const [, name = text, given] = /^([^:]*):(.*)$/s.exec(text) ?? [];
  const kind = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined;
  if (kind === undefined) {
    throw refuse(`no such policy (there are ${Object.keys(POLICIES).join(", ")})`);
  }
  const typed = Object.fromEntries((given?.split(",") ?? []).map((part) => {
    const [, key, value] = /^([^=]+)=(.+)$/.exec(part) ?? [];
    if (key === undefined || value === undefined) {
      throw refuse(`options are key=value with commas between them, got "${part}"`);
    }
    return [key.trim(), valueOf(value.trim())];
  }));
  // SGLang's controller takes a config: by default the same as `--speculative-adaptive`.
  const options = name === "ema" && typed["candidate_steps"] === undefined
    ? { ...conservative, ...typed }
    : typed;
  try {
    kind.check(options);
  } catch (error) {
    throw error instanceof PolicyError ? refuse(error.message) : error;
  }
  return { policy: name, options };
}

/**
 * The texts of several policies, of a list that was split at its commas: a part `key=value` is an
 * option of the policy before it.
 */
export function policyTexts(parts: readonly string[]): string[] {
  const texts: string[] = [];
  for (const part of parts) {
    const last = texts.at(-1);
    if (last !== undefined && /^[^:=]*=/.test(part)) texts[texts.length - 1] = `${last},${part}`;
    else texts.push(part);
  }
  return texts;
}

function valueOf(text: string): unknown {
  const one = (item: string) => Number.isNaN(Number(item)) ? item : Number(item);
  return text.includes("/") ? text.split("/").map((item) => one(item.trim())) : one(text);
}

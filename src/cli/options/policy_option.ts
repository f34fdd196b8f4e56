import { asUsageError, DEFAULT_PRESET, presetJson } from "../../engine/schedule/presets.ts";
import type { NamedPolicy } from "../../engine/schedule/speculation_choice.ts";
import { UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import { POLICIES } from "../../speculate/policies/registry.ts";
import { draftsAlone } from "../../draft/algorithms.ts";
import { clash } from "./clash.ts";
import { drafterOf } from "./drafter_option.ts";
import { decimal } from "./decimal.ts";
import { didYouMean, nearest } from "./nearest.ts";
import { POLICY_NAMES } from "./option_speculation.ts";

/** A policy for simulations only: it reads the result of a round before the round is run. */
const SIMULATED = "oracle";

/**
 * Reads a policy as `--policy` takes it: `NAME` or `NAME:key=value,key=value`. A value is a number, a word,
 * or a list of them separated by `/`. `config=FILE` reads options from a JSON file or a named preset; the
 * other keys override them.
 *
 * @param flag as the user spelled it, for messages.
 * @param simulated names that the caller reads itself, which are allowed too: those of oracles.
 * @throws UsageError for a policy that does not exist or options that it does not take.
 */
export function policyOf(
  text: string,
  flag = "--policy",
  simulated: readonly string[] = [],
): NamedPolicy {
  const refuse = (why: string) => new UsageError(`Cannot use "${flag} ${text}": ${why}`);
  const [name, given] = halves(text, ":");
  const kind = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined;
  if (name === SIMULATED && simulated.length === 0) {
    throw refuse(
      "it has to know in advance which drafts are accepted: it exists in eyrie simulate only",
    );
  }
  if (kind === undefined) {
    const names = [...POLICY_NAMES, ...simulated];
    const near = didYouMean(nearest(name, names));
    throw refuse(`no such policy${near} (there are ${names.join(", ")})`);
  }
  const { config = defaultConfig(name, given), ...typed } = optionsOf(given, refuse);
  const read = config === undefined ? {} : presetJson(config);
  const written = Object.entries(typed).map(([key, value]) => [key, valueOf(value)]);
  // The policy itself refuses a config that is no object.
  const options = isObject(read) ? { ...read, ...Object.fromEntries(written) } : read;
  asUsageError(() => kind.check(options), `Cannot use "${flag} ${text}": `);
  return { policy: name, options };
}

/**
 * Restores the texts of several policies from a list that was split at its commas: a part `key=value`
 * belongs to the policy before it.
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

/** SGLang's controller takes a config. */
function defaultConfig(name: string, given = ""): string | undefined {
  return name === "ema" && !/(^|,)\s*(candidate_steps|generation)\s*=/.test(given)
    ? DEFAULT_PRESET
    : undefined;
}

/** Whether the value of `--draft-tree` says how many steps are drafted. */
export function isWholeTree(draftTree: unknown): boolean {
  return typeof draftTree === "string" && !/^(topk|tokens)=/.test(draftTree);
}

/** Whether the value of `--draft-tree` is a chain: one candidate for each position. */
export function isChainText(draftTree: unknown): boolean {
  return typeof draftTree === "string" && /^(topk=1|tokens=\d+)(,|$)/.test(draftTree) &&
    !/topk=(?!1(,|$))/.test(draftTree);
}

/** Whether a policy of `--policy` never drafts. */
export function draftsNothing(policy: string): boolean {
  return /^(off|static:num_steps=0)$/.test(policy.trim());
}

/**
 * Refuses flags that contradict `--policy`. `given` has only what was typed.
 *
 * @throws UsageError
 */
export function refuseBesidePolicy(given: Readonly<Record<string, unknown>>): void {
  const { policy, drafter, draftTree } = given;
  if (policy === undefined) return;
  if (typeof drafter === "string" && draftsAlone(drafterOf(drafter)?.name)) {
    const why = "a policy chooses the steps of a draft model; allowed is HYBRID";
    clash(`--policy ${policy}`, `--drafter ${drafter}`, why);
  }
  // SGLang's adaptive mode is started with topk 1.
  if (draftTree !== undefined && !isChainText(draftTree)) {
    const why = "a tree has one fixed shape, and a policy chooses the shape of each round";
    clash(`--policy ${policy}`, `--draft-tree ${draftTree}`, why);
  }
}

/** Keys and values as typed. */
function optionsOf(
  given: string | undefined,
  refuse: (why: string) => UsageError,
): { readonly config?: string; readonly [key: string]: string } {
  const options = new Map<string, string>();
  for (const part of given?.split(",") ?? []) {
    const [key, value] = halves(part, "=").map((each) => each?.trim());
    if (!key || !value) {
      throw refuse(`options are key=value with commas between them, got "${part}"`);
    }
    if (options.has(key)) throw refuse(`option "${key}" is given twice`);
    options.set(key, value);
  }
  return Object.fromEntries(options);
}

/** `0/1/3` is a list; what is no number is a word. */
function valueOf(text: string): unknown {
  const one = (item: string) => Number.isNaN(decimal(item)) ? item : decimal(item);
  return text.includes("/") ? text.split("/").map((item) => one(item.trim())) : one(text);
}

/** What is before the first `mark`, and what is after it. */
function halves(text: string, mark: string): [string, string?] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

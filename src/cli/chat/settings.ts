import { UsageError } from "../../errors.ts";
import { type Grammar, GrammarError } from "../../grammar/rules/grammar.ts";
import { schemaRules } from "../../grammar/json/schema.ts";
import { regexExpression } from "../../grammar/rules/regex.ts";
import { grammarOf } from "../generate/constraint.ts";
import type { EngineInfo } from "../../engine/engine.ts";
import { expandHome, withoutQuotes } from "./paths.ts";
import type { SamplingChoice } from "../../engine/sampling.ts";
import { samplingChoice } from "../open/sampling.ts";
import type { Think } from "../open/template.ts";
import { allowed, parseValue } from "../options/flag.ts";
import { flagNamed } from "../options/commands.ts";
import type { ChatOptions } from "../options/options.ts";

/** Sampling settings; a server is sent only those that the person set. */
type MaybeSampling = {
  readonly [K in keyof SamplingChoice]: SamplingChoice[K] | undefined;
};

/** What `/set` changes between answers. */
export interface Settings extends MaybeSampling {
  /** A server answers: sampling that is undefined is its own, and it drafts as it was started. */
  readonly remote: boolean;
  /** Undefined = what the context has left. */
  readonly maxTokens: number | undefined;
  /** Undefined = another one for every answer. */
  readonly seed: number | undefined;
  readonly stop: readonly string[];
  /** Undefined = as the engine was opened: `openedSteps`, or what its policy chooses. */
  readonly numSteps: number | undefined;
  /** Draft steps that the engine began with; `/set` does not change them. */
  readonly openedSteps: number;
  readonly think: Think;
  readonly draft: boolean;
  readonly stats: boolean;
  /** What answers have to be; undefined = any text. */
  readonly format: Format | undefined;
}

/** A grammar with the value of `/set format` that makes it again. */
export interface Format {
  readonly text: string;
  readonly grammar: Grammar;
}

/** Names of `/set` and the setting each one changes. */
const NUMBERS = {
  "temperature": "temperature",
  "top-p": "topP",
  "top-k": "topK",
  "min-p": "minP",
  "repetition-penalty": "repetitionPenalty",
  "frequency-penalty": "frequencyPenalty",
  "presence-penalty": "presencePenalty",
  "max-tokens": "maxTokens",
  "seed": "seed",
  "num-steps": "numSteps",
} as const;

type NumberKey = typeof NUMBERS[keyof typeof NUMBERS];

/** Words for a number that is not set. */
const UNSET: Readonly<Partial<Record<NumberKey, string>>> = {
  maxTokens: "context",
  seed: "random",
};

/** The word for sampling that is left to the server. */
export const SERVERS = "server";

/** Settings that a server does not have. */
export const LOCAL: readonly string[] = ["num-steps", "draft"];

function unsetWord(key: NumberKey, { remote }: Pick<Settings, "remote">): string | undefined {
  return UNSET[key] ?? (remote && key !== "numSteps" ? SERVERS : undefined);
}

const CHOICES = { think: ["auto", "on", "off"], draft: ["on", "off"], stats: ["on", "off"] };

/** Answers may be any text. */
const NO_FORMAT = "off";
const FORMATS = `json, a JSON schema or its file, regex PATTERN, or ${NO_FORMAT}`;

/** No stop texts. */
const NONE = "none";

/** All names that `/set` takes. */
export const SETTING_NAMES: readonly string[] = [
  ...Object.keys(NUMBERS),
  "stop",
  ...Object.keys(CHOICES),
  "format",
];

/** Settings whose values may have spaces. */
export const TEXT_SETTINGS: readonly string[] = ["stop", "format"];

/** The settings that a chat begins with. */
export function settingsOf(
  options: ChatOptions,
  engine: Pick<EngineInfo, "generation" | "draftName" | "tier">,
): Settings {
  const { maxTokens, seed, stop, think = "auto", stats } = options;
  return {
    ...samplingChoice(options, engine),
    maxTokens,
    seed,
    stop,
    think,
    stats,
    remote: false,
    format: undefined,
    numSteps: undefined,
    openedSteps: engine.tier.depth,
    draft: engine.draftName !== undefined,
  };
}

/** The settings that a chat with a server begins with: what the command line names. */
export function remoteSettings(options: ChatOptions): Settings {
  const { temperature, topK, topP, minP, logitBias } = options;
  const { repetitionPenalty, frequencyPenalty, presencePenalty } = options;
  const { maxTokens, seed, stop, think = "auto", stats } = options;
  return {
    temperature,
    topK,
    topP,
    minP,
    logitBias,
    repetitionPenalty,
    frequencyPenalty,
    presencePenalty,
    maxTokens,
    seed,
    stop,
    think,
    stats,
    remote: true,
    format: undefined,
    numSteps: undefined,
    openedSteps: 0,
    draft: false,
  };
}

/** The settings that the command line names. */
export function givenSettings(options: ChatOptions): string[] {
  const numbers = Object.entries(NUMBERS).filter(([, key]) => options[key] !== undefined);
  const { think, stop, stats } = options;
  const more = { stop: stop.length > 0, think: think !== undefined, stats };
  return [
    ...numbers.map(([name]) => name),
    ...Object.entries(more).filter(([, given]) => given).map(([name]) => name),
  ];
}

/** The settings with one changed; values are checked by the rows of the option table. */
export function withSetting(settings: Settings, name: string, value: string): Settings {
  const spelled = `/set ${name}`;
  if (settings.remote && LOCAL.includes(name)) {
    throw new UsageError(`Cannot set "${name}": how a server drafts is decided when it is started`);
  }
  if (isChoice(name)) {
    if (!CHOICES[name].includes(value)) {
      throw new UsageError(
        `Cannot use "${spelled} ${value}": allowed is ${settingAllows(name, settings)}`,
      );
    }
    return { ...settings, [name]: name === "think" ? value : value === "on" };
  }
  if (name === "stop") return { ...settings, stop: stopTexts(value) };
  if (name === "format") return { ...settings, format: formatOf(value, settings) };
  if (!Object.hasOwn(NUMBERS, name)) {
    throw new UsageError(`Cannot set "${name}": allowed are ${SETTING_NAMES.join(", ")}`);
  }
  const key = NUMBERS[name as keyof typeof NUMBERS];
  if (value === unsetWord(key, settings)) return { ...settings, [key]: undefined };
  return { ...settings, [key]: parseValue(flagNamed(key), value, spelled) };
}

/** What a setting takes, for the message when its value is missing. */
export function settingAllows(
  name: string,
  of: Pick<Settings, "remote"> = { remote: false },
): string {
  if (isChoice(name)) return CHOICES[name].join(" or ");
  if (name === "format") return FORMATS;
  if (name === "stop") return `a text, a JSON list of texts, or ${NONE}`;
  const key = NUMBERS[name as keyof typeof NUMBERS];
  const unset = unsetWord(key, of);
  return unset === undefined ? allowed(flagNamed(key)) : `${allowed(flagNamed(key))}, or ${unset}`;
}

/** Name and value of every setting as `/set` takes them. */
export function settingTexts(settings: Settings): Record<string, string> {
  const { openedSteps, numSteps = openedSteps, stop, draft, stats, think } = settings;
  const shown = { ...settings, numSteps };
  const numbers = Object.entries(NUMBERS).map((
    [name, key],
  ) => [name, String(shown[key] ?? unsetWord(key, settings))]);
  const onOff = (on: boolean) => on ? "on" : "off";
  const texts: Record<string, string> = {
    ...Object.fromEntries(numbers),
    stop: stop.length === 0 ? NONE : JSON.stringify(stop.length === 1 ? stop[0] : stop),
    think,
    draft: onOff(draft),
    stats: onOff(stats),
    format: settings.format?.text ?? NO_FORMAT,
  };
  const own = ([name]: [string, unknown]) => !(settings.remote && LOCAL.includes(name));
  return Object.fromEntries(Object.entries(texts).filter(own));
}

/** The word for none, JSON (a text or a list of them: for line ends and spaces), or a text as it is. */
function stopTexts(value: string): readonly string[] {
  if (value === NONE) return [];
  if (!/^["[]/.test(value)) return [value];
  const refuse = () =>
    new UsageError(`Cannot use "/set stop ${value}": allowed is ${settingAllows("stop")}`);
  let texts: unknown;
  try {
    texts = [JSON.parse(value)].flat();
  } catch {
    throw refuse();
  }
  if ((texts as unknown[]).every((text) => typeof text === "string" && text !== "")) {
    return texts as string[];
  }
  throw refuse();
}

/** JSON, a schema (its text or its file), or a regular expression. */
function formatOf(value: string, { remote }: Pick<Settings, "remote">): Format | undefined {
  if (value === NO_FORMAT) return undefined;
  if (value === "json") return { text: value, grammar: { kind: "json object" } };
  const [, pattern] = /^regex\s+([^]+)$/.exec(value) ?? [];
  if (pattern !== undefined) {
    if (!remote) checked(() => regexExpression(pattern)); // a server may take other expressions
    return { text: value, grammar: { kind: "regex", pattern } };
  }
  if (value === "regex") {
    throw new UsageError(`Cannot use "/set format regex": allowed is ${FORMATS}`);
  }
  const inline = value.startsWith("{");
  const grammar = grammarOf({
    jsonSchema: inline ? value : expandHome(withoutQuotes(value)),
    grammar: undefined,
    regex: undefined,
  });
  // The word object, as --json-schema takes it.
  if (grammar?.kind !== "json schema") return formatOf("json", { remote });
  const { schema } = grammar;
  if (!remote) checked(() => schemaRules(schema)); // a server may take other schemas
  // A saved conversation has the schema itself: its file may be gone.
  return { text: JSON.stringify(schema), grammar };
}

/** @throws UsageError for what the engine would refuse at every message. */
function checked(translate: () => unknown): void {
  try {
    translate();
  } catch (error) {
    if (!(error instanceof GrammarError)) throw error;
    throw new UsageError(`Cannot constrain the output: ${error.message}`, { cause: error });
  }
}

function isChoice(name: string): name is keyof typeof CHOICES {
  return Object.hasOwn(CHOICES, name);
}

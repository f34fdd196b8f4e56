import { UsageError } from "../../errors.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import { allowed, parseValue } from "../options/flag.ts";
import { type ChatOptions, flagNamed } from "../options/options.ts";

/** What `/set` changes between answers. */
export interface Settings {
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repetitionPenalty: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  /** As on the command line; `/set` does not change it. */
  readonly logitBias: Sampling["logitBias"];
  readonly maxTokens: number;
  /** Undefined = another one for every answer. */
  readonly seed: number | undefined;
  /** Undefined = as the engine was opened: `openedSteps`, or what its policy chooses. */
  readonly numSteps: number | undefined;
  /** Draft steps that the engine began with; `/set` does not change them. */
  readonly openedSteps: number;
  readonly draft: boolean;
  readonly stats: boolean;
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

const SWITCHES = ["draft", "stats"] as const;

/** All names that `/set` takes. */
export const SETTING_NAMES: readonly string[] = [...Object.keys(NUMBERS), ...SWITCHES];

/** The settings that the command line asks for. */
export function settingsOf(
  options: ChatOptions,
  { drafts, numSteps: openedSteps }: { readonly drafts: boolean; readonly numSteps: number },
): Settings {
  const { temperature, topK, topP, minP, maxTokens, seed, stats } = options;
  const { repetitionPenalty, frequencyPenalty, presencePenalty, logitBias } = options;
  return {
    ...{ temperature, topK, topP, minP, maxTokens, seed, stats },
    ...{ repetitionPenalty, frequencyPenalty, presencePenalty, logitBias },
    ...{ numSteps: undefined, openedSteps, draft: drafts },
  };
}

/** The settings with one changed; values are checked by the rows of the option table. */
export function withSetting(settings: Settings, name: string, value: string): Settings {
  const spelled = `/set ${name}`;
  if (isSwitch(name)) {
    if (value !== "on" && value !== "off") {
      throw new UsageError(`Cannot use "${spelled} ${value}": allowed is on or off`);
    }
    return { ...settings, [name]: value === "on" };
  }
  if (!Object.hasOwn(NUMBERS, name)) {
    throw new UsageError(`Cannot set "${name}": allowed are ${SETTING_NAMES.join(", ")}`);
  }
  const key = NUMBERS[name as keyof typeof NUMBERS];
  if (key === "seed" && value === "random") return { ...settings, seed: undefined };
  return { ...settings, [key]: parseValue(flagNamed(key), value, spelled) };
}

/** What a setting takes, for the message when its value is missing. */
export function settingAllows(name: string): string {
  if (isSwitch(name)) return "on or off";
  const key = NUMBERS[name as keyof typeof NUMBERS];
  return key === "seed" ? `${allowed(flagNamed(key))}, or random` : allowed(flagNamed(key));
}

/** Name and value of every setting as `/set` takes them. */
export function settingTexts(settings: Settings): Record<string, string> {
  const { openedSteps, numSteps = openedSteps, seed = "random" } = settings;
  const shown = { ...settings, numSteps, seed };
  const numbers = Object.entries(NUMBERS).map(([name, key]) => [name, String(shown[key])]);
  const switches = SWITCHES.map((name) => [name, settings[name] ? "on" : "off"]);
  return Object.fromEntries([...numbers, ...switches]);
}

function isSwitch(name: string): name is typeof SWITCHES[number] {
  return (SWITCHES as readonly string[]).includes(name);
}

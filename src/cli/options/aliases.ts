/**
 * Other spellings of flags: SGLang's, and older ones of Eyrie. They are replaced before the option table is
 * read. So the rest of the program knows one spelling of each flag; help and completion list only that one.
 */
import { randomNames } from "./measure/random_model.ts";
import { acceptanceOf } from "./acceptance_option.ts";
import type { CommandName } from "./command.ts";
import type { Flag, FlagTable } from "./flag.ts";

/** What a spelling stands for. */
export interface Alias {
  /** The flag, by its long spelling. */
  readonly flag: string;
  /** Converts the alias's value to the flag's value; default: unchanged. */
  readonly value?: (given: string) => string;
  /** It is a switch. */
  readonly bare?: true;
  /**
   * Joins the value with the one that the flag has already, from itself or from another alias; undefined
   * where the two contradict each other. Absent: the later value counts, as for a repeated flag.
   */
  readonly join?: (before: string, value: string) => string | undefined;
  /** Whether a value is meant for the alias; other values belong to the flag that has the same spelling. */
  readonly when?: (given: string) => boolean;
  /** The commands that have it; default: all that have the flag. */
  readonly commands?: readonly CommandName[];
}

/** An alias of a command, and the row of the option table that it stands for. */
export interface AliasRow {
  readonly alias: Alias;
  /** The flag's name in the program. */
  readonly key: string;
  readonly flag: Flag;
}

/** What `--output` took as a format, before there was `--format`. */
const FORMATS: readonly string[] = ["md", "csv", "json", "jsonl", "html", "text"];

/** Commands that take one policy and one tree; `bench` and `simulate` take lists of them. */
const DRAFTING: readonly CommandName[] = ["generate", "chat", "serve", "serve-command"];
/** Commands that take models of random weights. */
const MEASURING: readonly CommandName[] = ["bench", "bench load", "breakeven", "profile"];

export const ALIASES: Readonly<Record<string, Alias>> = {
  "--speculative-draft-model-path": { flag: "--draft" },
  "--speculative-num-steps": { flag: "--num-steps" },
  "--speculative-token-map": { flag: "--token-map" },
  "--speculative-algorithm": { flag: "--drafter" },
  "--ngram-min": matching("min"),
  "--ngram-max": matching("max"),
  "--speculative-rejection": rejection("token"),
  "--speculative-block-verification": rejection("block"),
  "--speculative-use-rejection-sampling": rejection("token"),
  "--speculative-use-block-verification": rejection("block"),
  "--speculative-accept-threshold-single": relaxed("single"),
  "--speculative-accept-threshold-acc": relaxed("acc"),
  "--steps": { flag: "--num-steps" },
  "--speculative-eagle-topk": treePart("topk"),
  "--speculative-num-draft-tokens": treePart("tokens"),
  "--speculative-adaptive": {
    flag: "--policy",
    bare: true,
    value: () => "ema",
    join: (before) => /^ema(:|$)/.test(before) ? before : undefined,
    commands: DRAFTING,
  },
  "--speculative-adaptive-config": emaConfig(),
  "--preset": emaConfig(),
  "--policies": { flag: "--policy", commands: ["bench", "bench load", "simulate"] },
  "--presets": {
    flag: "--policy",
    value: (names) => names.split(",").map((name) => `ema:config=${name}`).join(","),
    join: (before, value) => `${before},${value}`,
    commands: ["bench"],
  },
  "--trees": { flag: "--draft-tree", commands: ["bench"] },
  "--seconds": { flag: "--duration", commands: ["profile"] },
  "--profile": table("profile"),
  "--growth": table("growth"),
  "--rewrites": table("rewrites"),
  "--llama-bench": table("llama-bench"),
  "--random-weights": { flag: "--model", value: randomNames, join: noOther, commands: MEASURING },
  "--random-draft": { flag: "--draft", value: randomNames, join: noOther, commands: MEASURING },
  "--time-scale": traceFactor("time"),
  "--length-scale": traceFactor("length", ["bench load"]),
  "--rate-schedule": { flag: "--request-rate" },
  "--json-object": { flag: "--json-schema", bare: true, value: () => "object" },
  "--batch-size": { flag: "--batch-sizes" },
  "--batches": { flag: "--batch-sizes" },
  "--num-prompts": { flag: "--num-requests" },
  "--kv-tokens": { flag: "--max-kv-tokens" },
  "--record": { flag: "--recording" },
  "--recorded": { flag: "--recording" },
  "--slo-ttft-ms": goodput("ttft"),
  "--slo-tpot-ms": goodput("tpot"),
  "--any-model": { flag: "--served-model-name", bare: true, value: () => "*", commands: ["serve"] },
  "--config-file": { flag: "--emit-config", commands: ["serve-command"] },
  "--yes": { flag: "--force", bare: true, commands: ["rm"] },
  "--output-file": { flag: "--output" },
  "--output": { flag: "--format", when: (given) => FORMATS.includes(given) },
  "--json": {
    flag: "--format",
    bare: true,
    value: () => "json",
    join: (before) => before === "json" ? before : undefined,
  },
  "--wide": { flag: "--format", bare: true, value: () => "md", join: (before) => before },
  "--acceptance": {
    flag: "--simulate-acceptance",
    when: (given) => acceptanceOf(given) === undefined,
    commands: ["simulate"],
  },
};

/** For an alias that cannot be given together with its flag. */
function noOther(): undefined {}

function emaConfig(): Alias {
  return {
    flag: "--policy",
    value: (config) => `ema:config=${config}`,
    join: (before, value) => before === "ema" ? value : undefined,
    commands: DRAFTING,
  };
}

/** One of the tables of `bench`. */
function table(name: string): Alias {
  return {
    flag: "--table",
    bare: true,
    value: () => name,
    join: (before) => before === name ? name : undefined,
  };
}

/** The factor of the times or of the lengths of a trace. */
function traceFactor(key: "time" | "length", commands?: readonly CommandName[]): Alias {
  return {
    flag: "--trace",
    value: (factor) => `${key}=${factor}`,
    join: (before, value) => `${before}${/:(time|length)=/.test(before) ? "," : ":"}${value}`,
    ...commands ? { commands } : {},
  };
}

/** How many tokens a drafter must or may match. */
function matching(key: "min" | "max"): Alias {
  return {
    flag: "--drafter",
    value: (given) => `${key}=${given}`,
    join: (before, value) => `${before}${/[:=]/.test(before) ? "," : ":"}${value}`,
  };
}

/** `block` includes `token`: verifying a chain as a block is rejection sampling too. */
function rejection(rule: "token" | "block"): Alias {
  return {
    flag: "--acceptance",
    bare: true,
    value: () => rule,
    join: (before, value) => before === "token" ? value : before === "block" ? before : undefined,
  };
}

function relaxed(key: "single" | "acc"): Alias {
  return {
    flag: "--acceptance",
    value: (given) => `relaxed:${key}=${given}`,
    join: (before, value) =>
      before.startsWith("relaxed:") ? `${before},${value.slice("relaxed:".length)}` : undefined,
  };
}

function goodput(key: "ttft" | "tpot"): Alias {
  return {
    flag: "--goodput",
    value: (ms) => `${key}:${ms}`,
    join: (before, value) => `${before},${value}`,
  };
}

/** One part of a tree's shape. Several parts are joined to one value; --num-steps gives the depth. */
function treePart(key: "topk" | "tokens"): Alias {
  return {
    flag: "--draft-tree",
    value: (given) => `${key}=${given}`,
    join: (before, value) => before.includes("=") ? `${before},${value}` : undefined,
    commands: DRAFTING,
  };
}

/** A flag that stands for an operand of a command. */
export interface OperandAlias {
  readonly command: CommandName;
  /** The operand's name in the command's usage. */
  readonly operand: string;
  /** Several operands may be given with commas between them. */
  readonly many?: true;
}

export const OPERAND_ALIASES: Readonly<Record<string, OperandAlias>> = {
  "--prompt": { command: "generate", operand: "PROMPT" },
  "-p": { command: "generate", operand: "PROMPT" },
  "--engine": { command: "serve-command", operand: "ENGINE" },
  "--corpus": { command: "token-map", operand: "FILE", many: true },
};

/** Flags that were removed, and what to do instead. */
export const REMOVED: Readonly<Record<string, string>> = {
  "--bandwidth": "set the variable EYRIE_BANDWIDTH to the GB/s",
};

/** The aliases of a command by their spelling. */
export function aliasesOf(command: CommandName, flags: FlagTable): Map<string, AliasRow> {
  const rows = new Map(Object.entries(flags).map(([key, flag]) => [flag.flag, { key, flag }]));
  return new Map(
    Object.entries(ALIASES).flatMap(([spelling, alias]): [string, AliasRow][] => {
      const row = rows.get(alias.flag);
      const own = rows.has(spelling) && alias.when === undefined;
      if (row === undefined || own || alias.commands?.includes(command) === false) return [];
      return [[spelling, { alias, key: row.key, flag: row.flag }]];
    }),
  );
}

/** The value that one use of an alias gives its flag. */
export function aliasValue({ value, bare }: Alias, given: string): string {
  return value === undefined ? given : value(bare ? "" : given);
}

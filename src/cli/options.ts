import type { Flag, FlagTable, Values } from "./flag.ts";

/** Where the weights come from and what runs them. */
const TARGET = {
  model: {
    flag: "--model",
    type: "folder",
    help: "checkpoint folder of the target model",
    absent: "the embedded fledgling",
    example: "--model ./Llama-3.2-1B-Instruct",
  },
} as const;

const DRAFT = {
  draft: {
    flag: "--draft",
    alias: "--speculative-draft-model-path",
    type: "folder",
    help: "checkpoint folder of the EAGLE head, or none",
    absent: "the embedded EAGLE-3 head with the embedded model, else none",
    example: "--draft ./EAGLE3-LLaMA3.2-1B",
  },
} as const;

const ADAPTER = {
  adapter: {
    flag: "--adapter",
    type: "choice",
    choices: ["high-performance", "low-power", "software"],
    help: "which WebGPU adapter to ask for",
    absent: "high-performance, else any",
    example: "--adapter software",
  },
} as const;

const SPECULATION = {
  algorithm: {
    flag: "--speculative-algorithm",
    type: "choice",
    choices: ["EAGLE", "EAGLE3", "NONE"],
    help: "kind of draft head",
    absent: "read from the draft checkpoint",
    example: "--speculative-algorithm EAGLE3",
  },
  numSteps: {
    flag: "--speculative-num-steps",
    alias: "--num-steps",
    type: "integer",
    min: 0,
    max: 7,
    default: 3,
    help: "tokens drafted a round; 0 = no speculation; the text is the same for all",
    example: "--num-steps 5",
  },
} as const;

const SAMPLING = {
  temperature: {
    flag: "--temperature",
    type: "number",
    min: 0,
    max: 100,
    default: 0.7,
    help: "flattens (above 1) or sharpens the choice; 0 = greedy",
    example: "--temperature 0",
  },
  topK: {
    flag: "--top-k",
    type: "integer",
    min: 0,
    max: 1_000_000,
    default: 0,
    help: "keep the k most probable tokens; 0 = all",
    example: "--top-k 40",
  },
  topP: {
    flag: "--top-p",
    type: "number",
    min: 0,
    max: 1,
    above: true,
    default: 1,
    help: "keep the most probable tokens until their sum reaches p; 1 = all",
    example: "--top-p 0.95",
  },
  minP: {
    flag: "--min-p",
    type: "number",
    min: 0,
    max: 1,
    default: 0,
    help: "keep tokens with at least p times the top probability; 0 = all",
    example: "--min-p 0.05",
  },
  seed: {
    flag: "--seed",
    type: "integer",
    min: 0,
    max: 4_294_967_295,
    help: "same seed, same text",
    absent: "drawn at random, shown with the statistics",
    example: "--seed 42",
  },
  maxTokens: {
    flag: "--max-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000,
    default: 512,
    help: "most tokens to generate; the context bounds it too",
    example: "--max-tokens 64",
  },
  stop: {
    flag: "--stop",
    type: "list",
    help: "text that ends the output and is left out of it; may be repeated",
    absent: "none",
    example: "--stop END",
  },
  ignoreEos: {
    flag: "--ignore-eos",
    type: "switch",
    help: "go on after an end-of-sequence token",
    example: "--ignore-eos",
  },
} as const;

const SYSTEM = {
  system: {
    flag: "--system",
    type: "text",
    help: "system message that opens the conversation",
    absent: "none",
    example: '--system "Answer briefly."',
  },
} as const;

const RAW = {
  raw: {
    flag: "--raw",
    type: "switch",
    help: "give the prompt to the model as it is, without its chat template",
    example: "--raw",
  },
} as const;

const TALK = {
  stats: {
    flag: "--stats",
    type: "switch",
    help: "all statistics at the end, on stderr",
    example: "--stats",
  },
  quiet: {
    flag: "--quiet",
    type: "switch",
    help: "no progress, notes or statistics; warnings and errors stay",
    example: "--quiet",
  },
} as const;

const JSON_OUTPUT = {
  json: {
    flag: "--json",
    type: "switch",
    help: "print one JSON object instead of text",
    example: "--json",
  },
} as const;

const CHECK = {
  expected: {
    flag: "--expected",
    type: "file",
    required: true,
    help: "safetensors file with input_ids and logits; hidden_states.N and greedy_ids if there",
    example: "--expected expected.safetensors",
  },
  tolerance: {
    flag: "--tolerance",
    type: "number",
    min: 0,
    max: 1000,
    default: 2e-3,
    help: "largest error allowed, in standard deviations of the logits",
    example: "--tolerance 0.01",
  },
} as const;

const DOCTOR = {
  fix: {
    flag: "--fix",
    type: "switch",
    help: "install the software Vulkan driver where there is no adapter (Debian-like, as root)",
    example: "--fix",
  },
} as const;

/** Values of the sampling group, shared by every command that generates. */
export type SamplingOptions = Values<typeof SAMPLING>;

/** Values of `eyrie generate`. */
export type GenerateOptions = Values<
  & typeof TARGET
  & typeof DRAFT
  & typeof ADAPTER
  & typeof SPECULATION
  & typeof SAMPLING
  & typeof SYSTEM
  & typeof RAW
  & typeof JSON_OUTPUT
  & typeof TALK
>;

/** Values of `eyrie chat`. */
export type ChatOptions = Omit<GenerateOptions, "raw" | "json">;

/** Values of `eyrie check`. */
export type CheckOptions = Values<
  typeof TARGET & typeof CHECK & typeof ADAPTER & typeof JSON_OUTPUT & Pick<typeof TALK, "quiet">
>;

/** Values of `eyrie inspect`. */
export type InspectOptions = Values<typeof TARGET & typeof DRAFT & typeof JSON_OUTPUT>;

/** Values of `eyrie doctor`. */
export type DoctorOptions = Values<typeof DOCTOR & typeof JSON_OUTPUT>;

export type CommandName = "generate" | "chat" | "check" | "inspect" | "doctor";

/** One command: its line in the overview and its flags in groups, in the order help shows them. */
export interface CommandSpec {
  readonly summary: string;
  readonly usage: string;
  /** Positional arguments, at most one: name and help. */
  readonly argument?: { readonly name: string; readonly help: string };
  readonly groups: Readonly<Record<string, FlagTable>>;
}

/** Every command. The only place where flags are joined to commands. */
export const COMMANDS: Readonly<Record<CommandName, CommandSpec>> = {
  generate: {
    summary: "answer one prompt",
    usage: "eyrie generate [flags] [PROMPT]",
    argument: {
      name: "PROMPT",
      help: "the prompt; standard input where absent or -; with both, standard input comes first",
    },
    groups: {
      Model: { ...TARGET, ...DRAFT, ...ADAPTER },
      Prompt: { ...SYSTEM, ...RAW },
      Speculation: SPECULATION,
      Sampling: SAMPLING,
      Output: { ...JSON_OUTPUT, ...TALK },
    },
  },
  chat: {
    summary: "talk with the model; /help inside lists its commands",
    usage: "eyrie chat [flags]",
    groups: {
      Model: { ...TARGET, ...DRAFT, ...ADAPTER },
      Prompt: SYSTEM,
      Speculation: SPECULATION,
      Sampling: SAMPLING,
      Output: TALK,
    },
  },
  check: {
    summary: "compare a checkpoint's logits with expected values",
    usage: "eyrie check --expected FILE [flags]",
    groups: {
      Check: { ...TARGET, ...CHECK },
      Model: ADAPTER,
      Output: { ...JSON_OUTPUT, quiet: TALK.quiet },
    },
  },
  inspect: {
    summary: "what a checkpoint is and the memory it needs; uses no GPU",
    usage: "eyrie inspect [flags]",
    groups: { Model: { ...TARGET, ...DRAFT }, Output: JSON_OUTPUT },
  },
  doctor: {
    summary: "can this machine run eyrie, and how fast is its GPU",
    usage: "eyrie doctor [flags]",
    groups: { Machine: DOCTOR, Output: JSON_OUTPUT },
  },
};

/** The flags of a command, by name, all groups together. */
export function flagsOf(command: CommandName): FlagTable {
  return Object.assign({}, ...Object.values(COMMANDS[command].groups));
}

/** One flag of the sampling and speculation groups: `/set` in chat checks values by the same rows. */
export function flagNamed(name: keyof typeof SAMPLING | "numSteps"): Flag {
  return name === "numSteps" ? SPECULATION.numSteps : SAMPLING[name];
}

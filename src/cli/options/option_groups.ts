// The rows of the option table, in the groups that commands share.

import { REQUEST_RANGES } from "../../speculate/request_ranges.ts";

/** Where the weights come from and what runs them. */
export const TARGET = {
  model: {
    flag: "--model",
    common: true,
    short: "-m",
    type: "model",
    help: "target model: a checkpoint folder, or a name on the Hugging Face hub",
    absent: "the embedded fledgling",
    example: "--model Qwen/Qwen3-4B",
  },
} as const;

export const DRAFT = {
  draft: {
    flag: "--draft",
    common: true,
    type: "model",
    help:
      "EAGLE head: a folder or a name, auto (one known for the model; else generate, chat and serve take SUFFIX), or none",
    absent: "auto with chat, run and serve, else none; the embedded model has its own head",
    example: "--draft AngelSlim/Qwen3-4B_eagle3",
  },
  draftRopeTheta: {
    flag: "--draft-rope-theta",
    type: "number",
    min: 0.1,
    max: 1_000_000_000_000,
    help: "the draft's rope base where its config.json is wrong; eyrie check --draft tells",
    absent: "what its config.json says",
    example: "--draft-rope-theta 10000",
  },
} as const;

/** What the weights become on the GPU. */
export const QUANTIZE = {
  quantize: {
    flag: "--quantize",
    common: true,
    type: "choice",
    choices: ["q8", "q4"],
    help: "turn the target's matrices into 8 or 4 bit integers, one f16 scale for 32 of them",
    absent: "as the checkpoint has them",
    example: "--quantize q8",
  },
} as const;

export const QUANTIZE_DRAFT = {
  quantizeDraft: {
    flag: "--quantize-draft",
    type: "switch",
    help: "quantize the draft's matrices as well",
    example: "--quantize q8 --quantize-draft",
  },
} as const;

/** How keys and values are kept. */
export const KV = {
  kvDtype: {
    flag: "--kv-dtype",
    type: "choice",
    choices: ["f32", "f16", "bf16"],
    help: "how the keys and values of target and draft are kept; 16 bits halve memory and traffic",
    absent: "f32",
    example: "--kv-dtype bf16",
  },
} as const;

export const ADAPTER = {
  adapter: {
    flag: "--adapter",
    type: "choice",
    choices: ["high-performance", "low-power", "software"],
    help: "which WebGPU adapter to ask for",
    absent: "high-performance, else any",
    example: "--adapter software",
  },
  webgpu: {
    flag: "--webgpu",
    type: "choice",
    choices: ["builtin", "dawn"],
    help: "Deno's own WebGPU, or Dawn, an npm package that is added once",
    absent: "EYRIE_WEBGPU of the environment, else builtin",
    example: "--webgpu dawn",
  },
  precision: {
    flag: "--precision",
    type: "choice",
    choices: ["f32", "f16"],
    help:
      "input precision on matrix units (--webgpu dawn): f16 is faster and less exact; the text may differ from that of f32",
    absent: "f32",
    example: "--precision f16",
  },
} as const;

export const AUTOTUNE = {
  autotune: {
    flag: "--autotune",
    type: "choice",
    choices: ["on", "off", "again"],
    help:
      "measure at first use how this GPU multiplies fastest, under 2 s, and remember it; the text is the same",
    absent: "on, except on software adapters",
    example: "--autotune off",
  },
} as const;

export const COSTS = {
  costs: {
    flag: "--costs",
    type: "file",
    help:
      "what rounds cost, for policies and breakeven: a file that eyrie profile --output wrote, or off; the text is the same",
    absent: "what eyrie profile measured here, else measured where the policy wants it",
    example: "--costs cost.json",
  },
} as const;

export const SAMPLING = {
  generationConfig: {
    flag: "--generation-config",
    type: "choice",
    choices: ["auto", "none"],
    help: "take what no flag says of sampling from the model's generation_config.json, or do not",
    absent: "auto",
    example: "--generation-config none",
  },
  temperature: {
    flag: "--temperature",
    common: true,
    type: "number",
    min: REQUEST_RANGES.temperature.min as number,
    max: REQUEST_RANGES.temperature.max as number,
    absent: "generation_config.json, else 0.7",
    help: "flattens (above 1) or sharpens the choice; 0 = greedy",
    example: "--temperature 0",
  },
  topK: {
    flag: "--top-k",
    type: "integer",
    min: REQUEST_RANGES.topK.min as number,
    max: REQUEST_RANGES.topK.max as number,
    absent: "generation_config.json, else 0",
    help: "first filter, after the temperature: keep the k most probable tokens; 0 = all",
    example: "--top-k 40",
  },
  topP: {
    flag: "--top-p",
    type: "number",
    min: REQUEST_RANGES.topP.min as number,
    max: REQUEST_RANGES.topP.max as number,
    above: true,
    absent: "generation_config.json, else 1",
    help: "then the most probable until they have p of what top-k kept; 1 = all",
    example: "--top-p 0.95",
  },
  minP: {
    flag: "--min-p",
    type: "number",
    min: REQUEST_RANGES.minP.min as number,
    max: REQUEST_RANGES.minP.max as number,
    absent: "generation_config.json, else 0",
    help: "then those with at least p times the top probability; 0 = all",
    example: "--min-p 0.05",
  },
  seed: {
    flag: "--seed",
    common: true,
    short: "-s",
    type: "integer",
    min: REQUEST_RANGES.seed.min as number,
    max: REQUEST_RANGES.seed.max as number,
    help: "same seed, same text",
    absent: "drawn at random, shown with the statistics",
    example: "--seed 42",
  },
  maxTokens: {
    flag: "--max-tokens",
    common: true,
    short: "-n",
    type: "integer",
    min: 1,
    max: 1_000_000,
    help: "most tokens to generate; the context bounds it too",
    absent: "512; in chat what the context has left",
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
  },
} as const;

export const SYSTEM = {
  system: {
    flag: "--system",
    common: true,
    type: "text",
    help: "system message that opens the conversation",
    absent: "none",
    example: '--system "Answer briefly."',
  },
} as const;

export const PROMPT = {
  promptFile: {
    flag: "--prompt-file",
    common: true,
    short: "-f",
    type: "file",
    help: "file that the prompt is read from, - is standard input; PROMPT comes after its text",
    absent: "standard input where it is piped",
    example: "-f article.txt 'Sum this up.'",
  },
  prediction: {
    flag: "--prediction",
    type: "file",
    help:
      "file with what the output, or a part of it, is likely to be, such as a text before an edit: drafts are taken from it",
    absent: "none",
    example: "-f page.md --prediction page.md 'Fix the typos.'",
  },
} as const;

/** What the chat template is given besides the messages. */
export const TEMPLATE = {
  think: {
    flag: "--think",
    common: true,
    type: "choice",
    choices: ["auto", "on", "off"],
    help: "tell the chat template to let the model think before it answers, or not to",
    absent: "auto: as the template has it",
    example: "--think off",
  },
  templateArg: {
    flag: "--template-arg",
    type: "list",
    help: "NAME=JSON, a variable of the chat template; may be repeated",
    absent: "none",
    example: "--template-arg 'reasoning_effort=\"high\"'",
  },
  allowSpecial: {
    flag: "--allow-special",
    type: "switch",
    help: "control tokens that messages spell (<|im_end|>) are tokens, not text",
  },
} as const;

export const RAW = {
  raw: {
    flag: "--raw",
    type: "switch",
    help: "give the prompt to the model as it is, without its chat template",
  },
} as const;

export const TALK = {
  stats: {
    flag: "--stats",
    type: "switch",
    help: "all statistics at the end, on stderr",
  },
  quiet: {
    flag: "--quiet",
    type: "switch",
    help: "no progress, notes, warnings or statistics; errors stay",
  },
} as const;

export const HISTORY = {
  noHistory: {
    flag: "--no-history",
    type: "switch",
    help: "keep what is typed for this chat only: no file, nothing of earlier chats",
    example: "--no-history",
  },
} as const;

export const JSON_OUTPUT = {
  json: {
    flag: "--json",
    common: true,
    type: "switch",
    help: "print one JSON object instead of text",
  },
} as const;

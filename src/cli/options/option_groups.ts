// The rows of the option table, in the groups that commands share.

import { REQUEST_RANGES } from "../../speculate/request_ranges.ts";

/** Where the weights come from and what runs them. */
export const TARGET = {
  model: {
    flag: "--model",
    common: true,
    short: "-m",
    type: "model",
    help: "target model: a checkpoint folder or a name on the Hugging Face hub",
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
      "draft model: a checkpoint folder or a name on the hub; auto, the EAGLE head that is known for the target (where none is known, generate, chat and serve draft with SUFFIX); or none",
    absent:
      "auto in chat, run and serve, none in other commands; the embedded model has its own head",
    example: "--draft AngelSlim/Qwen3-4B_eagle3",
  },
  draftRopeTheta: {
    flag: "--draft-rope-theta",
    type: "number",
    min: 0.1,
    max: 1_000_000_000_000,
    help:
      "rope base (theta) of the draft, for a config.json that has a wrong one; eyrie check --draft measures which one fits",
    absent: "the value in its config.json",
    example: "--draft-rope-theta 10000",
  },
} as const;

export const DONOR = {
  donor: {
    flag: "--donor",
    type: "model",
    help:
      "another checkpoint of the target: tensors that --model lacks are read from it, such as the layer that NEXTN drafts with, which exports of quantized models often leave out",
    absent: "none",
    example: "--donor zai-org/GLM-4.7-Flash",
  },
} as const;

/** What the weights become on the GPU. */
export const QUANTIZE = {
  quantize: {
    flag: "--quantize",
    common: true,
    type: "choice",
    choices: ["q8", "q4"],
    help:
      "quantize the target's matrices to 8 or 4 bit integers, in blocks of 32 with one f16 scale",
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
    help:
      "type of the stored keys and values of target and draft; 16 bits need half the memory and bandwidth",
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
    absent: "high-performance, or any other if there is none",
    example: "--adapter software",
  },
  webgpu: {
    flag: "--webgpu",
    type: "choice",
    choices: ["builtin", "dawn"],
    help:
      "WebGPU implementation: Deno's own, or Dawn, an npm package that has to be downloaded once",
    absent: "EYRIE_WEBGPU of the environment, else builtin",
    example: "--webgpu dawn",
  },
  precision: {
    flag: "--precision",
    type: "choice",
    choices: ["f32", "f16"],
    help:
      "precision of the inputs of matrix units (--webgpu dawn): f16 with a power of two for each row, which is nearer to float32 than bf16 inference, or f32, slower; the texts may differ",
    absent: "f16; check --expected: f32",
    example: "--precision f32",
  },
} as const;

export const AUTOTUNE = {
  autotune: {
    flag: "--autotune",
    type: "choice",
    choices: ["on", "off", "again"],
    help:
      "measure at first use which kernels are fastest on this GPU, which takes less than 2 s, and store the result; again measures anew; the text does not depend on it",
    absent: "on, except on software adapters",
    example: "--autotune off",
  },
} as const;

export const COSTS = {
  costs: {
    flag: "--costs",
    type: "file",
    help:
      "cost table of rounds, which policies and breakeven use: a file that eyrie profile --output wrote, or off; the text does not depend on it",
    absent:
      "the table that eyrie profile stored on this machine, or one that is measured when a policy needs it",
    example: "--costs cost.json",
  },
} as const;

export const SAMPLING = {
  generationConfig: {
    flag: "--generation-config",
    type: "choice",
    choices: ["auto", "none"],
    help:
      "auto: sampling settings for which no flag is given are read from the model's generation_config.json; none: they are not",
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
    help: "sampling temperature: above 1 the distribution is flatter, below 1 sharper; 0 is greedy",
    example: "--temperature 0",
  },
  topK: {
    flag: "--top-k",
    type: "integer",
    min: REQUEST_RANGES.topK.min as number,
    max: REQUEST_RANGES.topK.max as number,
    absent: "generation_config.json, else 0",
    help: "sample from the k most probable tokens only; 0 keeps all",
    example: "--top-k 40",
  },
  topP: {
    flag: "--top-p",
    type: "number",
    min: REQUEST_RANGES.topP.min as number,
    max: REQUEST_RANGES.topP.max as number,
    above: true,
    absent: "generation_config.json, else 1",
    help:
      "of the tokens that top-k keeps, sample from the most probable ones that together have probability p; 1 keeps all",
    example: "--top-p 0.95",
  },
  minP: {
    flag: "--min-p",
    type: "number",
    min: REQUEST_RANGES.minP.min as number,
    max: REQUEST_RANGES.minP.max as number,
    absent: "generation_config.json, else 0",
    help: "of these, keep the tokens with at least p times the highest probability; 0 keeps all",
    example: "--min-p 0.05",
  },
  seed: {
    flag: "--seed",
    common: true,
    short: "-s",
    type: "integer",
    min: REQUEST_RANGES.seed.min as number,
    max: REQUEST_RANGES.seed.max as number,
    help: "random seed; the same seed gives the same text",
    absent: "a random one, which is printed with the statistics",
    example: "--seed 42",
  },
  maxTokens: {
    flag: "--max-tokens",
    common: true,
    short: "-n",
    type: "integer",
    min: 1,
    max: 1_000_000,
    help: "maximum number of tokens to generate, within the context length",
    absent: "512; in chat and serve as many as fit the context",
    example: "--max-tokens 64",
  },
  stop: {
    flag: "--stop",
    type: "list",
    help: "text that ends the output and is not part of it; may be repeated",
    absent: "none",
    example: "--stop END",
  },
  ignoreEos: {
    flag: "--ignore-eos",
    type: "switch",
    help: "keep generating after an end-of-sequence token",
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
    help: "file that the prompt is read from; - is standard input; PROMPT is appended to its text",
    absent: "standard input if it is a pipe",
    example: "-f article.txt 'Sum this up.'",
  },
  prediction: {
    flag: "--prediction",
    type: "file",
    help:
      "file with text that the output is likely to repeat, such as a document before an edit; drafts are taken from it",
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
    help: "whether the chat template lets the model think before it answers",
    absent: "auto: the template's own default",
    example: "--think off",
  },
  templateArg: {
    flag: "--template-arg",
    type: "list",
    help: "a variable for the chat template, as NAME=JSON; may be repeated",
    absent: "none",
    example: "--template-arg 'reasoning_effort=\"high\"'",
  },
  allowSpecial: {
    flag: "--allow-special",
    type: "switch",
    help:
      "read control tokens that are spelled out in messages (<|im_end|>) as tokens, not as text",
  },
} as const;

export const RAW = {
  raw: {
    flag: "--raw",
    type: "switch",
    help: "give the prompt to the model without its chat template",
  },
} as const;

export const TALK = {
  stats: {
    flag: "--stats",
    type: "switch",
    help: "print all statistics on stderr at the end",
  },
  quiet: {
    flag: "--quiet",
    short: "-q",
    type: "switch",
    help: "print no progress, notes, warnings or statistics, only errors",
  },
} as const;

export const HISTORY = {
  noHistory: {
    flag: "--no-history",
    type: "switch",
    help: "neither read nor write the history file: what is typed is kept for this chat only",
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

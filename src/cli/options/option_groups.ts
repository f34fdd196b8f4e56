// The rows of the option table, in the groups that commands share.
import { MOST_ROWS, MOST_STEPS, MOST_TOPK } from "../../speculate/round_shape.ts";

/** Where the weights come from and what runs them. */
export const TARGET = {
  model: {
    flag: "--model",
    type: "model",
    help: "target model: a checkpoint folder, or a name on the Hugging Face hub",
    absent: "the embedded fledgling",
    example: "--model Qwen/Qwen3-4B",
  },
} as const;

export const DRAFT = {
  draft: {
    flag: "--draft",
    alias: "--speculative-draft-model-path",
    type: "model",
    help: "EAGLE head: a folder or a name, auto (one known for the model), or none",
    absent: "the embedded EAGLE-3 head with the embedded model, else none",
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
    help: "the draft's matrices too, as --quantize says",
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

export const SPECULATION = {
  algorithm: {
    flag: "--speculative-algorithm",
    type: "choice",
    choices: ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NONE"],
    help:
      "kind of draft; NEXTN: the layer of DeepSeek-V3 checkpoints that predicts one token further; STANDALONE: a small model of the same vocabulary",
    absent: "read from the draft checkpoint",
    example: "--speculative-algorithm EAGLE3",
  },
  numSteps: {
    flag: "--speculative-num-steps",
    alias: "--num-steps",
    type: "integer",
    min: 0,
    max: MOST_STEPS as number,
    help: "tokens drafted a round; 0 = no speculation; the text is the same for all",
    absent: "3, or the middle candidate of an adaptive config",
    example: "--num-steps 5",
  },
  eagleTopk: {
    flag: "--speculative-eagle-topk",
    type: "integer",
    min: 1,
    max: MOST_TOPK as number,
    help: "candidates of each drafted token: 1 drafts a chain, more a tree",
    absent: "1",
    example: "--num-steps 5 --speculative-eagle-topk 4",
  },
  numDraftTokens: {
    flag: "--speculative-num-draft-tokens",
    type: "integer",
    min: 1,
    max: MOST_ROWS as number,
    help: "rows a round verifies: of a tree the best candidates; always num-steps + 1 for a chain",
    absent: "num-steps + 1; of a tree 8, or that where it is more",
    example: "--num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
  },
  draftTree: {
    flag: "--draft-tree",
    type: "text",
    help:
      "the three above as STEPS:TOPK:TOKENS or as EAGLE writes them (total_token=60,depth=7,top_k=10); auto: SGLang's for the architecture",
    example: "--draft-tree 5:4:8",
  },
  adaptive: {
    flag: "--speculative-adaptive",
    type: "switch",
    help: "choose num-steps while it runs, by what is accepted at each batch size",
    example: "--speculative-adaptive",
  },
  adaptiveConfig: {
    flag: "--speculative-adaptive-config",
    type: "file",
    help: "adaptive config in SGLang's JSON format",
    absent: "the conservative preset",
    example: "--speculative-adaptive-config tuned.json",
  },
  preset: {
    flag: "--preset",
    type: "text",
    help:
      "adaptive config by name (conservative, aggressive) or file; implies --speculative-adaptive",
    absent: "none",
    example: "--preset aggressive",
  },
} as const;

export const SAMPLING = {
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
    help: "first filter, after the temperature: keep the k most probable tokens; 0 = all",
    example: "--top-k 40",
  },
  topP: {
    flag: "--top-p",
    type: "number",
    min: 0,
    max: 1,
    above: true,
    default: 1,
    help: "then the most probable until they have p of what top-k kept; 1 = all",
    example: "--top-p 0.95",
  },
  minP: {
    flag: "--min-p",
    type: "number",
    min: 0,
    max: 1,
    default: 0,
    help: "then those with at least p times the top probability; 0 = all",
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

export const SYSTEM = {
  system: {
    flag: "--system",
    type: "text",
    help: "system message that opens the conversation",
    absent: "none",
    example: '--system "Answer briefly."',
  },
} as const;

export const RAW = {
  raw: {
    flag: "--raw",
    type: "switch",
    help: "give the prompt to the model as it is, without its chat template",
    example: "--raw",
  },
} as const;

export const TALK = {
  stats: {
    flag: "--stats",
    type: "switch",
    help: "all statistics at the end, on stderr",
    example: "--stats",
  },
  quiet: {
    flag: "--quiet",
    type: "switch",
    help: "no progress, notes, warnings or statistics; errors stay",
    example: "--quiet",
  },
} as const;

export const JSON_OUTPUT = {
  json: {
    flag: "--json",
    type: "switch",
    help: "print one JSON object instead of text",
    example: "--json",
  },
} as const;

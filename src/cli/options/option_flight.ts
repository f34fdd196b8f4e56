// The rows of the option table about how much is in flight.

export const CONTEXT = {
  contextLength: {
    flag: "--context-length",
    common: true,
    short: "-c",
    type: "integer",
    min: 1,
    max: 16_777_216,
    help: "tokens a sequence may hold, prompt and output",
    absent: "the model's most, at most 8192",
    example: "--context-length 4096",
  },
} as const;

export const CACHE = {
  noPrefixCache: {
    flag: "--no-prefix-cache",
    type: "switch",
    help: "do not reuse the cached keys and values of earlier prompts that begin alike",
  },
} as const;

export const BATCH = {
  batch: {
    flag: "--batch",
    common: true,
    type: "file",
    help:
      "answer the prompts of a JSONL file (- is standard input), one JSON line each, in order of completion",
    absent: "one prompt",
    example: "--batch prompts.jsonl",
  },
  output: {
    flag: "--output",
    type: "file",
    help:
      "file for the lines of --batch, each written when it is finished; one that holds something is refused",
    absent: "standard output",
    example: "--output answers.jsonl",
  },
  force: {
    flag: "--force",
    type: "switch",
    help: "replace the file of --output, at the first line that is written",
  },
  maxBatch: {
    flag: "--max-batch",
    type: "integer",
    min: 1,
    max: 128,
    default: 8,
    help: "requests of --batch in flight",
    example: "--max-batch 32",
  },
  maxKvTokens: {
    flag: "--max-kv-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000_000,
    help: "tokens whose keys and values are kept, over all requests; shortage makes them wait",
    absent: "what the batch can use",
    example: "--max-kv-tokens 65536",
  },
} as const;

export const ROUNDS = {
  roundsPerSync: {
    flag: "--rounds-per-sync",
    type: "choice",
    // Of 1 to MOST_ROUNDS, and SHARE, of src/engine/schedule/sync_interval.ts.
    choices: ["auto", "1", "2", "3", "4", "5", "6", "7", "8", "12", "16", "24", "32"],
    help:
      "rounds the GPU does before the host looks; more hide the host, text comes in larger pieces",
    absent: "auto: as few as keep the host's share to 2 %",
    example: "--rounds-per-sync 4",
  },
} as const;

// The rows of the option table about how much is in flight.

export const CONTEXT = {
  contextLength: {
    flag: "--context-length",
    common: true,
    short: "-c",
    type: "integer",
    min: 1,
    max: 16_777_216,
    help: "maximum length of a sequence in tokens, prompt and output together",
    absent: "the model's maximum, or 8192 if that is less",
    example: "--context-length 4096",
  },
} as const;

export const CACHE = {
  noPrefixCache: {
    flag: "--no-prefix-cache",
    type: "switch",
    help: "do not reuse the cached keys and values of earlier prompts with the same beginning",
  },
} as const;

/** Sizes that all requests of an engine share. */
export const BATCH_SIZES = {
  maxKvTokens: {
    flag: "--max-kv-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000_000,
    help: "size of the KV cache in tokens, over all requests; when it is full, requests wait",
    absent:
      "what the requests that run at a time can use, or what fits in --gpu-memory-utilization",
    example: "--max-kv-tokens 65536",
  },
  gpuMemoryUtilization: {
    flag: "--gpu-memory-utilization",
    type: "number",
    min: 0,
    max: 1,
    above: true,
    help:
      "share of the GPU's memory that weights, working memory and KV cache may take together; --max-kv-tokens is used instead if it is given",
    // UTILIZATION and SHARED_UTILIZATION of src/engine/load/fits.ts.
    absent: "0.9, or 0.7 of what is free where the GPU shares the machine's memory",
    example: "--gpu-memory-utilization 0.5",
  },
  maxBatchedRows: {
    flag: "--max-batched-rows",
    type: "integer",
    min: 1,
    max: 8192,
    help:
      "rows of a forward that stores prompts, of all requests together; more store prompts faster, but requests that generate wait longer between two tokens",
    absent: "64 to 1024, as suits adapter and model; 64 to 512 while other requests generate",
    example: "--max-batched-rows 256",
  },
  sloItlMs: {
    flag: "--slo-itl-ms",
    type: "number",
    min: 0,
    max: 1_000_000,
    above: true,
    help:
      "milliseconds that requests which generate should wait between two tokens at most: prompts are stored in smaller forwards for it, by what those cost on this machine",
    absent: "no limit but --max-batched-rows",
    example: "--slo-itl-ms 50",
  },
} as const;

export const BATCH = {
  batch: {
    flag: "--batch",
    common: true,
    type: "file",
    help:
      "answer the prompts of a JSONL file (- is standard input) and write one JSON line for each answer as soon as it is complete",
    absent: "one prompt",
    example: "--batch prompts.jsonl",
  },
  output: {
    flag: "--output",
    type: "file",
    help: "file that the answers of --batch are written to; a file that is not empty is refused",
    absent: "standard output",
    example: "--output answers.jsonl",
  },
  force: {
    flag: "--force",
    type: "switch",
    help: "replace the file of --output when the first line is written",
  },
  maxBatch: {
    flag: "--max-batch",
    type: "integer",
    min: 1,
    max: 128,
    default: 8,
    help: "requests of --batch that run at a time",
    example: "--max-batch 32",
  },
} as const;

export const ROUNDS = {
  roundsPerSync: {
    flag: "--rounds-per-sync",
    type: "choice",
    // Of 1 to MAX_ROUNDS, and SHARE, of src/engine/schedule/sync_interval.ts.
    choices: ["auto", "1", "2", "3", "4", "5", "6", "7", "8", "12", "16", "24", "32"],
    help:
      "rounds that the GPU runs before the host reads their tokens; more rounds hide the host's time, but text arrives in larger pieces",
    absent: "auto: the fewest that keep the host's share of the time to 2 %",
    example: "--rounds-per-sync 4",
  },
} as const;

import { POLICY_NAMES, POLICY_TEXT } from "../option_speculation.ts";
import { MAX_STEPS } from "../../../speculate/round_shape.ts";

/** What is measured: all combinations of these. */
export const BENCH_AXES = {
  batchSizes: {
    flag: "--batch-sizes",
    common: true,
    type: "axis",
    min: 1,
    max: 128,
    whole: true,
    help: "numbers of requests that run at a time",
    absent: "1; with --table growth 1 to 128, on software adapters up to 16",
    example: "--batch-sizes 1,2,4,8",
  },
  numSteps: {
    flag: "--num-steps",
    common: true,
    type: "axis",
    min: 0,
    max: MAX_STEPS as number,
    whole: true,
    help:
      "numbers of draft steps to measure; 0, plain decoding, is always measured, except with --table profile",
    absent: "0,1,3,7, with --table profile 0,3; 0 if there is no draft",
    example: "--num-steps 0-7",
  },
  trees: {
    flag: "--draft-tree",
    measured: true,
    type: "names",
    help:
      "draft trees to measure, each as STEPS:TOPK:TOKENS (levels, candidates of each node, verified rows)",
    absent: "none",
    example: "--draft-tree 5:4:8,6:10:32",
  },
  policies: {
    flag: "--policy",
    common: true,
    measured: true,
    type: "names",
    words: POLICY_NAMES as readonly string[],
    help:
      `policies to measure, each as NAME or NAME:key=value,...; names: ${POLICY_TEXT}` as string,
    absent: "none",
    example: "--policy ema:config=aggressive,ema:config=tuned.json",
  },
  promptTokens: {
    flag: "--prompt-tokens",
    type: "axis",
    min: 1,
    max: 1_000_000,
    whole: true,
    help: "tokens of a prompt, for --workload random",
    absent: "128; other workloads have their own prompts",
    example: "--prompt-tokens 128,1024",
  },
  outputTokens: {
    flag: "--output-tokens",
    common: true,
    type: "axis",
    min: 1,
    max: 1_000_000,
    whole: true,
    default: [128],
    help: "maximum tokens of an answer",
    example: "--output-tokens 64,256",
  },
  temperatures: {
    flag: "--temperature",
    common: true,
    type: "axis",
    min: 0,
    max: 100,
    whole: false,
    default: [0],
    help:
      "sampling temperature; at 0, greedy, the outputs of all settings are also compared with each other",
    example: "--temperature 0,0.7",
  },
  depths: {
    flag: "--depth",
    type: "axis",
    min: 0,
    max: 1_000_000,
    whole: true,
    help: "tokens in the KV cache before the prompt",
    absent:
      "0; with --table growth 0 to 32768, on software adapters up to 2048; with --table profile or rewrites 512",
    example: "--depth 0,1024",
  },
  roundsPerSync: {
    flag: "--rounds-per-sync",
    type: "names",
    help:
      "rounds that the GPU runs before the host reads their tokens: auto, 1 to 8, 12, 16, 24 or 32",
    absent: "auto",
    example: "--rounds-per-sync 1,2,4,auto",
  },
} as const;

/** How it is measured. */
export const BENCH_RUN = {
  workload: {
    flag: "--workload",
    common: true,
    type: "text",
    help:
      "prompts: fledgling:TASK, phases (easy and hard ones in turn), file:PROMPTS.jsonl, spec-bench:FILE or random",
    absent: "fledgling:all, or random for a model of random weights",
    example: "--workload phases",
  },
  repeat: {
    flag: "--repeat",
    common: true,
    type: "integer",
    min: 1,
    max: 1000,
    default: 5,
    help:
      "number of blocks, each of which measures every setting once in random order; with --table profile a block is 4 rounds",
    example: "--repeat 10",
  },
  seed: {
    flag: "--seed",
    type: "integer",
    min: 0,
    max: 4_294_967_295,
    default: 1,
    help: "random seed of prompts, sampling and the order within blocks",
    example: "--seed 7",
  },
} as const;

/** What is measured in place of settings. */
export const BENCH_TABLE = {
  table: {
    flag: "--table",
    common: true,
    type: "choice",
    choices: ["profile", "growth", "rewrites", "llama-bench"],
    help:
      "measure something else than settings. profile: device time of each kernel in rounds and in prefill, against the time that its bytes need. growth: time and memory of a round against context, batch, rows and model. rewrites: device time of rounds and of a prompt chunk with all rewrites of the model's graph, and without each. llama-bench: its rows pp512 (prompt) and tg128 (answer), the latter with each setting too",
    absent: "the settings, each compared with plain decoding",
    example: "--table growth --depth 0,512,8192 --batch-sizes 1,8",
  },
  rows: {
    flag: "--rows",
    type: "axis",
    min: 1,
    // Drafts of the longest chain, MAX_STEPS, and the pending token.
    max: 17,
    whole: true,
    help:
      "rows of each request that a round verifies, the pending token and its drafts; with --table growth or rewrites",
    absent: "1,2,4,8,16, on software adapters up to 8; with --table rewrites 1,4",
    example: "--table rewrites --rows 1,4,8",
  },
} as const;

/** Models that are measured may have random weights, and acceptance that is drawn. */
export const BENCH_RANDOM = {
  model: {
    flag: "--model",
    common: true,
    short: "-m",
    type: "model",
    help:
      "target model: a checkpoint folder, a name on the Hugging Face hub, or random:CONFIG.json for random weights of that shape",
    absent: "the embedded fledgling",
    example: "--model random:llama-8b/config.json",
  },
  draft: {
    flag: "--draft",
    common: true,
    type: "model",
    help:
      "draft model: a checkpoint folder, a name on the hub, auto (the EAGLE head that is known for the target), none, or random:CONFIG.json with a random target",
    absent: "none; the embedded model has its own head",
    example: "--draft random:eagle3-8b/config.json",
  },
  simulateAcceptance: {
    flag: "--simulate-acceptance",
    type: "axis",
    min: 0,
    max: 1,
    whole: false,
    help:
      "draw at random whether a draft is accepted, with this probability if all before it were: one number, or one for each position",
    absent: "off",
    example: "--simulate-acceptance 0.8,0.7,0.6",
  },
} as const;

/** For every command that writes its result into a file. */
export const OVERWRITE = {
  force: {
    flag: "--force",
    type: "switch",
    help: "replace result files that exist; without it the command refuses to start",
  },
} as const;

/** Where results go. */
export const BENCH_OUTPUT = {
  format: {
    flag: "--format",
    common: true,
    type: "choice",
    choices: ["md", "csv", "json", "jsonl", "html"],
    help: "format of the results; html is a page with charts",
    absent: "md; on a terminal a table with fewer columns, which fits its width",
    example: "--format html",
  },
  output: {
    flag: "--output",
    common: true,
    type: "file",
    help:
      "file for the results; the table is printed to standard output as well. Without --table and on one WebGPU, and with --table profile, it is updated while measuring",
    absent: "standard output",
    example: "--format html --output bench.html",
  },
  resume: {
    flag: "--resume",
    type: "file",
    help:
      "JSONL file of earlier results: what is in it is not measured again, and new rows are added to it",
    absent: "none",
    example: "--resume rows.jsonl",
  },
  emitConfig: {
    flag: "--emit-config",
    type: "file",
    help: "write an adaptive config with the steps that were fastest at each batch size",
    absent: "none",
    example: "--emit-config mine.json",
  },
} as const;

/** Will there be a draft: the embedded model brings its own, others only where one is named. */
export function hasDraft(given: Readonly<Record<string, unknown>>): boolean {
  const { model, draft } = given;
  return draft === undefined ? model === undefined : draft !== "none";
}

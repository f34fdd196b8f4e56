import { UsageError } from "../../../errors.ts";
import { clash } from "../clash.ts";
import { POLICY_NAMES } from "../option_speculation.ts";
import { type ArrivalFlags, arrivalFlags, refuseImpossibleArrivals } from "./arrival_flags.ts";
import { goodputOf } from "./goodput_option.ts";
import { refuseImpossibleBench } from "./bench_refusals.ts";
import { traceOf } from "./trace_option.ts";
import { REQUEST_RATE_TEXT, requestRateOf } from "./request_rate_option.ts";

const ARRIVALS = {
  requestRate: {
    valid: ((text) => requestRateOf(text) !== undefined) as (text: string) => boolean,
    allows: REQUEST_RATE_TEXT as string,
    help:
      "open loop: requests that arrive per second on average; each rate of a list is measured; 0:2,60:20 is one load, which changes from 2 per second to 20 after 60 seconds",
    absent: "2, if no other load is given",
    example: "--request-rate 1,2,4,8",
  },
  burstiness: {
    help:
      "shape of the gamma distribution of the gaps between requests: 1 is a Poisson process, below 1 requests come in bursts",
  },
  trace: {
    valid: ((text) => traceOf(text, ["time", "length"]) !== undefined) as (text: string) => boolean,
    allows: "FILE, or FILE:time=S,length=S with factors above 0",
    help:
      "a CSV of Azure's LLM traces (TIMESTAMP,ContextTokens,GeneratedTokens), whose requests arrive at its times and have answers of its lengths, with --workload random prompts too; FILE:time=2,length=0.5 makes times twice as long and lengths half",
  },
  concurrency: {
    type: "axis",
    whole: true,
    help:
      "closed loop: requests in flight, of which each is followed by the next when it ends; each number is measured",
    absent: "open loop",
    example: "--concurrency 1,4,16",
  },
  numRequests: {
    help: "maximum number of requests of a measurement",
    absent:
      "as many as arrive in 6 seconds, or with --concurrency N 4 * N, but at least 12; with --duration or --trace all",
    example: "--num-requests 200",
  },
  duration: { help: "seconds in which requests arrive; those in flight are finished after that" },
} as const;

/** When requests arrive. */
export const LOAD_ARRIVALS: ArrivalFlags<typeof ARRIVALS> = arrivalFlags(ARRIVALS);

const REQUESTS = {
  promptTokens: {
    help: "tokens of a prompt, for --workload random",
    absent: "128; other workloads have their own prompts",
  },
  outputTokens: {
    help: "exact number of tokens of every answer: an end-of-sequence token does not end it",
    absent: "answers end at an end-of-sequence token, or have the lengths of the trace",
  },
  maxTokens: {
    flag: "--max-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000,
    default: 128,
    help: "maximum tokens of an answer, which may end earlier",
    example: "--max-tokens 256",
  },
} as const;

/** What they ask. */
export const LOAD_REQUESTS: ArrivalFlags<typeof REQUESTS> = arrivalFlags(REQUESTS);

/** What is compared, and how. */
export const LOAD_RUN = {
  policies: {
    flag: "--policy",
    common: true,
    measured: true,
    type: "names",
    words: POLICY_NAMES as readonly string[],
    help:
      "policies to measure, each as NAME or NAME:key=value,...; the first is measured twice, and the others are compared with it",
    absent: "off, and with a draft static:num_steps=3, ema and hybrid",
    example: "--policy off,static:num_steps=3,ema",
  },
  maxBatch: {
    flag: "--max-batch",
    common: true,
    type: "integer",
    min: 1,
    max: 128,
    default: 8,
    help: "maximum number of requests that run at a time; others wait",
    example: "--max-batch 32",
  },
  warmup: {
    flag: "--warmup",
    type: "integer",
    min: 0,
    max: 100_000,
    default: 4,
    help:
      "requests at the start of each measurement that are not counted; policies learn from them too",
    example: "--warmup 16",
  },
  repeat: {
    flag: "--repeat",
    type: "integer",
    min: 1,
    max: 1000,
    default: 3,
    help: "number of blocks, each of which measures every policy once in random order",
    example: "--repeat 10",
  },
  goodput: {
    flag: "--goodput",
    common: true,
    type: "text",
    valid: ((text) => goodputOf(text) !== undefined) as (text: string) => boolean,
    allows: "ttft:MS, tpot:MS or both with a comma between, in milliseconds above 0",
    words: ["ttft:", "tpot:"] as readonly string[],
    help:
      "limits that a request has to meet to count as goodput: milliseconds to its first token (ttft), and per output token after it (tpot)",
    absent: "nothing",
    example: "--goodput ttft:200,tpot:50",
  },
} as const;

export const LOAD_OUTPUT = {
  record: {
    flag: "--recording",
    type: "file",
    help:
      "folder in which each measurement is recorded for eyrie simulate --recording; for a single measurement a .jsonl file",
    absent: "none",
    example: "--recording runs",
  },
  format: {
    flag: "--format",
    common: true,
    type: "choice",
    choices: ["md", "json", "jsonl", "html"],
    help: "format of the results; html is a page with charts over time",
    absent: "md",
    example: "--format html",
  },
  output: {
    flag: "--output",
    common: true,
    type: "file",
    help:
      "file for the results, which is updated while measuring; the table is printed to standard output as well",
    absent: "standard output",
    example: "--format html --output load.html",
  },
} as const;

/** Loads of which one can be given. */
const LOADS = ["requestRate", "trace", "concurrency"] as const;
/** Flags of `bench load` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleLoad(given: Readonly<Record<string, unknown>>): void {
  const { duration, numRequests, outputTokens, maxTokens, requestRate } = given;
  const flags: Readonly<Record<string, { readonly flag: string }>> = {
    ...LOAD_ARRIVALS,
    ...LOAD_REQUESTS,
  };
  refuseImpossibleArrivals(given, {
    loads: LOADS,
    flagOf: (key) => flags[key]?.flag ?? key,
    ofTrace: { keys: ["promptTokens"], allowed: "; allowed is --trace FILE:length=S" },
  });
  const scheduled = typeof requestRate === "string" &&
    requestRateOf(requestRate)?.kind === "schedule";
  if (scheduled && duration === undefined && numRequests === undefined) {
    throw new UsageError(
      `Cannot use "--request-rate ${requestRate}" alone: its last rate has no end; give --duration`,
    );
  }
  if (outputTokens !== undefined && maxTokens !== undefined) {
    clash("--max-tokens", "--output-tokens", "allowed is one of them");
  }
  refuseImpossibleBench(given);
}

import { UsageError } from "../../../errors.ts";
import { POLICY_NAMES } from "../option_speculation.ts";
import { type ArrivalFlags, arrivalFlags } from "./arrival_flags.ts";
import { goodputOf } from "./goodput_option.ts";
import { refuseImpossibleBench } from "./bench_refusals.ts";
import { traceOf } from "./trace_option.ts";
import { REQUEST_RATE_TEXT, requestRateOf } from "./request_rate_option.ts";

const ARRIVALS = {
  requestRate: {
    valid: ((text) => requestRateOf(text) !== undefined) as (text: string) => boolean,
    allows: REQUEST_RATE_TEXT as string,
    help:
      "requests a second that arrive whether or not others have ended; each rate is measured; 0:2,60:20 is one load, of 2 a second and from second 60 on of 20",
    absent: "2, where no other load is given",
    example: "--request-rate 1,2,4,8",
  },
  burstiness: {
    help:
      "shape of the gaps' gamma distribution, as vLLM's: 1 is a Poisson process, below 1 is bursty",
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
    help: "closed loop: so many requests in flight, the next when one ends; each is measured",
    absent: "open loop",
    example: "--concurrency 1,4,16",
  },
  numRequests: {
    help: "requests of each measurement, at most",
    absent:
      "those of 6 seconds, at least 12; 4 for each place of --concurrency; with --duration or --trace all",
    example: "--num-requests 200",
  },
  duration: { help: "seconds in which requests arrive; then those in flight end" },
} as const;

/** When requests arrive. */
export const LOAD_ARRIVALS: ArrivalFlags<typeof ARRIVALS> = arrivalFlags(ARRIVALS);

const REQUESTS = {
  promptTokens: {
    help: "tokens of a prompt; with --workload random",
    absent: "128, or the workload's own prompts",
  },
  outputTokens: {
    help: "tokens of every answer: it goes on where the model would end it",
    absent: "answers end by themselves, or as the trace says",
  },
  maxTokens: {
    flag: "--max-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000,
    default: 128,
    help: "most tokens of an answer that ends by itself",
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
    type: "names",
    words: POLICY_NAMES as readonly string[],
    help:
      "policies to measure, NAME or NAME:key=value,...; the others are compared with the first, which is measured twice",
    absent: "plain decoding, 3 steps and those that choose",
    example: "--policy off,static:num_steps=3,ema",
  },
  maxBatch: {
    flag: "--max-batch",
    common: true,
    type: "integer",
    min: 1,
    max: 128,
    default: 8,
    help: "requests that run at a time; the others wait",
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
  warmup: {
    flag: "--warmup",
    type: "integer",
    min: 0,
    max: 100_000,
    default: 4,
    help: "requests of each measurement before the clock runs; the policy learns from them too",
    example: "--warmup 16",
  },
  repeat: {
    flag: "--repeat",
    type: "integer",
    min: 1,
    max: 1000,
    default: 3,
    help: "blocks; each measures every policy once, beginning with another",
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
      "what a request has to meet to count as goodput: most milliseconds to its first token, and per output token after that",
    absent: "nothing",
    example: "--goodput ttft:200,tpot:50",
  },
} as const;

export const LOAD_OUTPUT = {
  record: {
    flag: "--recording",
    type: "file",
    help:
      "folder for a recording of each measurement, which eyrie simulate --recording reads; a file (.jsonl) of a single one",
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
    help: "file for the results, kept up to date; the table still goes to standard output",
    absent: "standard output",
    example: "--format html --output load.html",
  },
} as const;

/** Loads of which one can be given. */
const LOADS = ["requestRate", "trace", "concurrency"] as const;
/** Flags of `bench load` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleLoad(given: Readonly<Record<string, unknown>>): void {
  const flagOf = (key: keyof typeof LOAD_ARRIVALS) => LOAD_ARRIVALS[key].flag;
  const [one, other] = LOADS.filter((key) => given[key] !== undefined);
  if (one !== undefined && other !== undefined) {
    throw new UsageError(
      `Cannot use "${flagOf(one)}" with "${flagOf(other)}": allowed is one of them`,
    );
  }
  // A rate is what there is where no load is given.
  if (given["burstiness"] !== undefined && (one ?? "requestRate") !== "requestRate") {
    throw new UsageError('Cannot use "--burstiness": it needs --request-rate');
  }
  const { duration, numRequests, outputTokens, maxTokens, requestRate } = given;
  if (one === "concurrency" && duration !== undefined) {
    throw new UsageError(
      'Cannot use "--duration" with "--concurrency": a closed loop has no time; allowed is --num-requests',
    );
  }
  const scheduled = typeof requestRate === "string" &&
    requestRateOf(requestRate)?.kind === "schedule";
  if (scheduled && duration === undefined && numRequests === undefined) {
    throw new UsageError(
      `Cannot use "--request-rate ${requestRate}" alone: its last rate has no end; give --duration`,
    );
  }
  if (outputTokens !== undefined && maxTokens !== undefined) {
    throw new UsageError(
      'Cannot use "--max-tokens" with "--output-tokens": allowed is one of them',
    );
  }
  if (given["promptTokens"] !== undefined && one === "trace") {
    throw new UsageError(
      'Cannot use "--prompt-tokens" with "--trace": the trace has lengths; allowed is --trace FILE:length=S',
    );
  }
  refuseImpossibleBench(given);
}

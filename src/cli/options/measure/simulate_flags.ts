import { UsageError } from "../../../errors.ts";
import { SCENARIO_NAMES } from "../../../simulate/compare/scenario_names.ts";
import { clash } from "../clash.ts";
import { POLICY_NAMES } from "../option_speculation.ts";
import { type ArrivalFlags, arrivalFlags, refuseImpossibleArrivals } from "./arrival_flags.ts";
import { traceOf } from "./trace_option.ts";
import { requestRateOf } from "./request_rate_option.ts";

/** The files of presets/costs. */
export const COST_NAMES = [
  "toy",
  "rtx4090-7b",
  "a100-13b",
  "sglang-qwen3-235b",
  "sglang-glm-4.7",
] as const;

const COST_TEXT: string = COST_NAMES.join(", ");
const SCENARIO_TEXT: string = SCENARIO_NAMES.join(", ");

/** The simulated machine. */
export const SIMULATE_MACHINE = {
  costs: {
    flag: "--costs",
    common: true,
    type: "text",
    words: COST_NAMES as readonly string[],
    help:
      `cost table of the machine: a file that eyrie profile --output wrote, or a published table (${COST_TEXT})` as string,
    absent: "toy, or that of the recording",
    example: "--costs rtx4090-7b",
  },
  maxBatch: {
    flag: "--max-batch",
    common: true,
    type: "integer",
    min: 1,
    max: 1024,
    help: "maximum number of requests that run at a time; others wait",
    absent: "8, or that of the scenario or recording",
    example: "--max-batch 32",
  },
  maxKvTokens: {
    flag: "--max-kv-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000_000,
    help:
      "size of the KV cache in tokens, over all requests; when it is full, the youngest request is preempted",
    absent: "no limit, or that of the recording",
    example: "--max-kv-tokens 16384",
  },
  prefillRows: {
    flag: "--prefill-rows",
    type: "integer",
    min: 1,
    max: 65_536,
    help:
      "prompt tokens that are prefilled at a time, half as many, 256 at least, while other requests decode; the engine has 64 on software adapters",
    absent: "256, or that of the recording",
    example: "--prefill-rows 64",
  },
  roundsPerSync: {
    flag: "--rounds-per-sync",
    type: "integer",
    min: 1,
    max: 32,
    help: "rounds that the GPU runs before the host reads their tokens",
    absent: "the engine's choice, or that of the recording; 1 in scenarios",
    example: "--rounds-per-sync 1",
  },
  noise: {
    flag: "--noise",
    type: "number",
    min: 0,
    max: 1,
    default: 0.05,
    help: "random noise of round times, as the standard deviation of their logarithm",
    example: "--noise 0",
  },
} as const;

const LOAD = {
  scenario: {
    flag: "--scenario",
    type: "names",
    words: ["all", ...SCENARIO_NAMES] as readonly string[],
    help:
      `scenarios to simulate, each with its own batch sizes and acceptance: all, or some of ${SCENARIO_TEXT}` as string,
    absent: "all, if no other load is given",
    example: "--scenario bursty,phases-1",
  },
  batches: {
    flag: "--batch-sizes",
    type: "axis",
    min: 1,
    max: 1024,
    whole: true,
    help:
      "constant batch sizes, with the prompts already stored: one simulation for each number and each acceptance",
    absent: "none",
    example: "--batch-sizes 1,4,16,64",
  },
  requestRate: {
    valid: oneRate as (text: string) => boolean,
    allows: "a number from 0.001 to 1000000, or a schedule SECONDS:RATE,SECONDS:RATE",
    help:
      "open loop: requests that arrive per second on average; 0:2,60:20 changes from 2 per second to 20 after 60 seconds",
    absent: "none",
    example: "--request-rate 4",
  },
  burstiness: {
    help:
      "shape of the gamma distribution of the gaps between requests: 1 is a Poisson process, below 1 requests come in bursts",
  },
  trace: {
    valid: ((text) => traceOf(text, ["time"]) !== undefined) as (text: string) => boolean,
    allows: "FILE, or FILE:time=S with a factor above 0",
    help:
      "a CSV of Azure's LLM traces (TIMESTAMP,ContextTokens,GeneratedTokens), whose requests arrive at its times; FILE:time=2 makes times twice as long",
  },
  concurrency: {
    type: "integer",
    help: "closed loop: requests in flight, of which each is followed by the next when it ends",
    absent: "none",
    example: "--concurrency 16",
  },
  numRequests: {
    help: "maximum number of requests",
    absent: "256; with --duration or --trace all that arrive",
    example: "--num-requests 1000",
  },
  duration: { help: "simulated seconds in which requests arrive" },
  promptTokens: { default: 128, help: "tokens of a prompt" },
  outputTokens: { default: 128, help: "tokens of an answer" },
  rounds: {
    flag: "--rounds",
    type: "integer",
    min: 1,
    max: 100_000_000,
    help:
      "length of a scenario, in rounds of plain decoding; for other loads the maximum number of rounds",
    absent: "3000; for other loads until the last request has ended",
    example: "--rounds 100000",
  },
} as const;

/** A simulation has one load. */
function oneRate(text: string): boolean {
  const rate = requestRateOf(text);
  return rate?.kind === "schedule" || rate?.perSecond.length === 1;
}

/** What comes to it. */
export const SIMULATE_LOAD: ArrivalFlags<typeof LOAD> = arrivalFlags(LOAD);

/** What is accepted of drafts. */
export const SIMULATE_ACCEPTANCE = {
  acceptance: {
    flag: "--simulate-acceptance",
    common: true,
    type: "text",
    help:
      "model of the acceptance of drafts: geometric:A, positions:A/B/C, beta:A/B, phases:A/B,dwell=TOKENS, phases:A/B,every=SECONDS or replay:FILE; ,spread=S and ,tokens=S add standard deviations of the log-odds between requests and between tokens; several models have ; between them",
    absent: "geometric:0.7,spread=0.6,tokens=1, or that of the scenario",
    example: "--simulate-acceptance phases:0.35/0.85,dwell=150",
  },
  confidenceNoise: {
    flag: "--confidence-noise",
    type: "number",
    min: 0,
    max: 100,
    default: 0.5,
    help:
      "error of the draft's confidence: standard deviation of its log-odds around the true ones",
    example: "--confidence-noise 1",
  },
} as const;

/** What is compared, and how. */
export const SIMULATE_RUN = {
  policies: {
    flag: "--policy",
    common: true,
    measured: true,
    type: "names",
    words: ["oracle", ...POLICY_NAMES] as readonly string[],
    help:
      "policies to simulate, each as NAME or NAME:key=value,..., in addition to every fixed number of steps and the oracles, which know all probabilities and costs; oracle:depth chooses only the depth",
    absent: "all but static whose steps the cost table has, or that of the recording",
    example: "--policy ema,static:num_steps=3",
  },
  recorded: {
    flag: "--recording",
    type: "file",
    help:
      "file that bench load --recording wrote: its requests, acceptance, machine and policy are simulated, and the simulated throughput of the first policy is compared with the measured one",
    absent: "none",
    example: "--recording run.jsonl",
  },
  repeat: {
    flag: "--repeat",
    type: "integer",
    min: 1,
    max: 1000,
    default: 3,
    help: "simulations of each load, with different seeds; all policies run in each of them",
    example: "--repeat 10",
  },
  seed: {
    flag: "--seed",
    short: "-s",
    type: "integer",
    min: 0,
    max: 4_294_967_295,
    default: 0,
    help: "random seed; the same seed gives the same results",
    example: "--seed 42",
  },
} as const;

export const SIMULATE_OUTPUT = {
  format: {
    flag: "--format",
    common: true,
    type: "choice",
    choices: ["md", "json"],
    help: "output format",
    absent: "md",
    example: "--format json",
  },
  output: {
    flag: "--output",
    common: true,
    type: "file",
    help: "file for the tables",
    absent: "standard output",
    example: "--format json --output simulated.json",
  },
} as const;

/** Loads, of which one at most can be given. */
const LOADS = ["requestRate", "trace", "concurrency", "recorded", "batches"] as const;
/** Flags for loads whose requests arrive over time. */
const ARRIVING = ["burstiness", "numRequests", "duration", "promptTokens", "outputTokens"];
/** Flags for what a scenario defines itself. */
const OWN = [...LOADS, ...ARRIVING, "acceptance"];

/** Flags of `simulate` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleSimulation(
  given: Readonly<Record<string, unknown>>,
  flagOf: (key: string) => string,
): void {
  const refuse = (key: string, other: string, why: string) =>
    clash(flagOf(key), flagOf(other), why);
  const own = OWN.find((key) => given[key] !== undefined);
  if (given["scenario"] !== undefined && own !== undefined) {
    refuse("scenario", own, "a scenario has its own load and acceptance");
  }
  const load = LOADS.find((key) => given[key] !== undefined);
  if (load === undefined && own !== undefined) {
    throw new UsageError(
      `Cannot use "${flagOf(own)}" alone: it needs a load; give --request-rate, --trace, ` +
        "--concurrency or --batch-sizes",
    );
  }
  const arriving = ARRIVING.find((key) => given[key] !== undefined);
  if (given["batches"] !== undefined && arriving !== undefined) {
    refuse(
      "batches",
      arriving,
      "its requests do not arrive, they run from the beginning to the end",
    );
  }
  if (given["recorded"] !== undefined && arriving !== undefined) {
    refuse("recorded", arriving, "a recording has its own requests");
  }
  refuseImpossibleArrivals(given, {
    loads: LOADS,
    flagOf,
    ofTrace: { keys: ["promptTokens", "outputTokens"], allowed: "" },
  });
  if (given["recorded"] !== undefined && given["acceptance"] !== undefined) {
    refuse("recorded", "acceptance", "a recording has its own acceptance");
  }
}

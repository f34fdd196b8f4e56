import { UsageError } from "../../../errors.ts";
import { SCENARIO_NAMES } from "../../../simulate/compare/scenario_names.ts";
import { POLICY_NAMES } from "../option_speculation.ts";
import { type ArrivalFlags, arrivalFlags } from "./arrival_flags.ts";
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
      `what rounds cost: a file of eyrie profile, or a published machine (${COST_TEXT})` as string,
    absent: "toy, or the recording's",
    example: "--costs rtx4090-7b",
  },
  maxBatch: {
    flag: "--max-batch",
    common: true,
    type: "integer",
    min: 1,
    max: 1024,
    help: "requests that run at a time; the others wait",
    absent: "8, or the scenario's or recording's",
    example: "--max-batch 32",
  },
  maxKvTokens: {
    flag: "--max-kv-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000_000,
    help:
      "tokens whose keys and values are kept, over all requests; shortage preempts the youngest",
    absent: "no limit, or the recording's",
    example: "--max-kv-tokens 16384",
  },
  prefillRows: {
    flag: "--prefill-rows",
    type: "integer",
    min: 1,
    max: 65_536,
    help:
      "tokens of a prompt that are stored at a time, at most 512 while others decode; the engine's on software adapters: 64",
    absent: "256, or the recording's",
    example: "--prefill-rows 64",
  },
  roundsPerSync: {
    flag: "--rounds-per-sync",
    type: "integer",
    min: 1,
    max: 32,
    help: "rounds that are submitted at once",
    absent: "as the engine chooses, or the recording's; 1 in scenarios",
    example: "--rounds-per-sync 1",
  },
  noise: {
    flag: "--noise",
    type: "number",
    min: 0,
    max: 1,
    default: 0.05,
    help: "standard deviation of the logarithm of a round's time",
    example: "--noise 0",
  },
} as const;

const LOAD = {
  scenario: {
    flag: "--scenario",
    type: "names",
    words: ["all", ...SCENARIO_NAMES] as readonly string[],
    help: `worlds with a batch and acceptance of their own: all, or of ${SCENARIO_TEXT}` as string,
    absent: "all, where no other load is given",
    example: "--scenario bursty,phases-1",
  },
  batches: {
    flag: "--batch-sizes",
    type: "axis",
    min: 1,
    max: 1024,
    whole: true,
    help:
      "requests in flight all the time, their prompts stored: a world for each number and acceptance",
    absent: "none",
    example: "--batch-sizes 1,4,16,64",
  },
  requestRate: {
    valid: oneRate as (text: string) => boolean,
    allows: "a number from 0.001 to 1000000, or a schedule SECONDS:RATE,SECONDS:RATE",
    help:
      "requests a second that arrive whether or not others have ended; 0:2,60:20 is 2 a second and from second 60 on 20",
    absent: "none",
    example: "--request-rate 4",
  },
  burstiness: {
    help: "shape of the gaps' gamma distribution: 1 is a Poisson process, below 1 is bursty",
  },
  trace: {
    valid: ((text) => traceOf(text, ["time"]) !== undefined) as (text: string) => boolean,
    allows: "FILE, or FILE:time=S with a factor above 0",
    help:
      "a CSV of Azure's LLM traces (TIMESTAMP,ContextTokens,GeneratedTokens), whose requests arrive at its times; FILE:time=2 makes times twice as long",
  },
  concurrency: {
    type: "integer",
    help: "closed loop: so many requests in flight, the next when one ends",
    absent: "none",
    example: "--concurrency 16",
  },
  numRequests: {
    help: "requests, at most",
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
    help: "length: of a scenario in plain rounds, else the most rounds",
    absent: "3000, or to the last request's end",
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
      "geometric:A, positions:A/B/C, beta:A/B, phases:A/B,dwell=TOKENS or phases:A/B,every=SECONDS, replay:FILE; each with ,spread=S and ,tokens=S, deviations of log-odds between requests and tokens; several with ; between",
    absent: "geometric:0.7,spread=0.6,tokens=1, or the scenario's",
    example: "--simulate-acceptance phases:0.35/0.85,dwell=150",
  },
  confidenceNoise: {
    flag: "--confidence-noise",
    type: "number",
    min: 0,
    max: 100,
    default: 0.5,
    help:
      "how well the draft knows which drafts are accepted: deviation of its log-odds from the true ones",
    example: "--confidence-noise 1",
  },
} as const;

/** What is compared, and how. */
export const SIMULATE_RUN = {
  policies: {
    flag: "--policy",
    common: true,
    type: "names",
    words: ["oracle", ...POLICY_NAMES] as readonly string[],
    help:
      "policies beside every static depth and the oracles: NAME or NAME:key=value,...; oracle:depth never cuts a chain",
    absent: "every one but static, or the recording's",
    example: "--policy ema,static:num_steps=3",
  },
  recorded: {
    flag: "--recording",
    type: "file",
    help:
      "a run that bench load --recording wrote: its arrivals, acceptance, machine and policy; tells simulated over measured throughput of the first policy",
    absent: "none",
    example: "--recording run.jsonl",
  },
  repeat: {
    flag: "--repeat",
    type: "integer",
    min: 1,
    max: 1000,
    default: 3,
    help: "worlds of each kind, with seeds of their own; policies are compared within each",
    example: "--repeat 10",
  },
  seed: {
    flag: "--seed",
    short: "-s",
    type: "integer",
    min: 0,
    max: 4_294_967_295,
    default: 0,
    help: "same seed, same run",
    example: "--seed 42",
  },
} as const;

export const SIMULATE_OUTPUT = {
  format: {
    flag: "--format",
    common: true,
    type: "choice",
    choices: ["md", "json"],
    help: "format",
    absent: "md",
    example: "--format json",
  },
  output: {
    flag: "--output",
    common: true,
    type: "file",
    help: "where the tables go",
    absent: "standard output",
    example: "--format json --output simulated.json",
  },
} as const;

/** Loads of which there is one. */
const LOADS = [
  ...["requestRate", "trace", "concurrency", "recorded", "batches"],
] as const;
/** What only requests that arrive have. */
const ARRIVING = [
  ...["burstiness", "numRequests", "duration", "promptTokens", "outputTokens"],
];
/** What a scenario has of its own. */
const OWN = [...LOADS, ...ARRIVING, "acceptance"];

/** Flags of `simulate` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleSimulation(
  given: Readonly<Record<string, unknown>>,
  flagOf: (key: string) => string,
): void {
  const loads = LOADS.filter((key) => given[key] !== undefined);
  const clash = (key: string, other: string, why: string) => {
    throw new UsageError(`Cannot use "${flagOf(key)}" with "${flagOf(other)}": ${why}`);
  };
  const [first, second] = loads;
  if (first !== undefined && second !== undefined) clash(first, second, "allowed is one of them");
  const own = OWN.find((key) => given[key] !== undefined);
  if (given["scenario"] !== undefined && own !== undefined) {
    clash("scenario", own, "a scenario has its own load and acceptance");
  }
  if (first === undefined && own !== undefined) {
    throw new UsageError(
      `Cannot use "${flagOf(own)}" alone: it needs a load; give --request-rate, --trace, ` +
        "--concurrency or --batch-sizes",
    );
  }
  const arriving = ARRIVING.find((key) => given[key] !== undefined);
  if (given["batches"] !== undefined && arriving !== undefined) {
    clash("batches", arriving, "its requests are there all the time");
  }
  if (given["recorded"] !== undefined && given["acceptance"] !== undefined) {
    clash("recorded", "acceptance", "a recorded run has its own");
  }
}

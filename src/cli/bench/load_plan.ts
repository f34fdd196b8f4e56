import { basename } from "node:path";
import { defined } from "../../defined.ts";
import type { Extent } from "../../arrivals/arrival.ts";
import { parseSchedule } from "../../arrivals/schedule.ts";
import { readTrace } from "../../arrivals/trace.ts";
import {
  cellSeed,
  closedCase,
  type LoadArm,
  loadArms,
  type LoadCase,
  type LoadPlan,
  rateCase,
  scheduleCase,
  traceCase,
} from "../../measure/load/plan.ts";
import type { Workload } from "../../measure/workload/workload.ts";
import { UsageError } from "../../errors.ts";
import { hasDraft } from "../options/measure/bench_flags.ts";
import { requestRateOf } from "../options/measure/request_rate_option.ts";
import { type TraceChoice, traceOf } from "../options/measure/trace_option.ts";
import type { LoadOptions } from "../options/options.ts";
import { policyOf, policyTexts } from "../options/policy_option.ts";
import { DEFAULT_PROMPT_TOKENS } from "./bench.ts";
import { readNamed } from "./files.ts";

/** Length of a measurement, about so many seconds, where neither its requests nor a duration is given. */
const DEFAULT_SECONDS = 6;
/** Fewest requests of such a measurement. */
const FEWEST_REQUESTS = 12;
/** Requests of a closed loop for each of its concurrent places. */
const REQUESTS_A_PLACE = 4;
const DEFAULT_RATES = [2];
/** Policies that are compared where none is named, besides plain decoding. */
const DEFAULT_POLICIES = ["static:num_steps=3", "ema", "hybrid"];

/** What the flags ask to be measured. @throws UsageError */
export function loadPlan(options: LoadOptions, workload: Workload): LoadPlan {
  const { promptTokens, outputTokens, maxTokens, repeat, warmup, seed } = options;
  if (promptTokens !== undefined && !workload.sized) {
    throw new UsageError(
      `Cannot use "--prompt-tokens" with "--workload ${workload.name}": its prompts have their own lengths; ` +
        `allowed is --workload random`,
    );
  }
  return {
    cases: withRequests(casesOf(options), options),
    arms: armsOf(options),
    work: {
      workload,
      promptTokens: promptTokens ?? DEFAULT_PROMPT_TOKENS[0],
      ...defined({ outputTokens }),
      maxTokens,
    },
    blocks: repeat,
    warmup,
    seed,
  };
}

/**
 * What will be measured, how long requests arrive (a slow engine takes longer, and a closed loop as long as
 * its answers) and how to ask for more.
 *
 * @param arms measurements of each block.
 */
export function planText({ cases, blocks, seed }: LoadPlan, arms: number): string {
  const lists = cases.map((one) =>
    Array.from({ length: blocks }, (_, block) => one.arrivals(cellSeed(seed, block)))
  );
  const requests = lists.flat().reduce((sum, { length }) => sum + length, 0) * arms;
  const ms = lists.flat().reduce((sum, list) => sum + (list.at(-1)?.atMs ?? 0), 0) * arms;
  const loads = cases.map(({ name }) => name).join(", ");
  const closed = cases.every(({ concurrency }) => concurrency !== null);
  const time = closed ? "as long as the answers take" : `about ${durationText(ms)} of arrivals`;
  return `${loads}: ${count(arms, "measurement")} in each of ${count(blocks, "block")}, ` +
    `${count(requests, "request")}, ${time}; for more --num-requests, --duration, --repeat, ` +
    `${closed ? "--concurrency 1,4,16" : "--request-rate 1,4,16"}`;
}

function count(number: number, of: string): string {
  return `${number} ${of}${number === 1 ? "" : "s"}`;
}

function durationText(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000));
  return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

function casesOf(options: LoadOptions): LoadCase[] {
  const { burstiness, requestRate, trace, concurrency, numRequests } = options;
  const distinct = (values: readonly number[]) => [...new Set(values)];
  const choice = trace === undefined ? undefined : traceOf(trace, ["time", "length"]);
  if (choice !== undefined) return [traced(choice, options)];
  if (concurrency !== undefined) {
    return distinct(concurrency)
      .map((places) =>
        closedCase(places, numRequests ?? Math.max(FEWEST_REQUESTS, REQUESTS_A_PLACE * places))
      );
  }
  const rate = requestRate === undefined ? undefined : requestRateOf(requestRate);
  if (rate?.kind === "schedule") {
    const { text } = rate;
    return [scheduleCase(parseSchedule(text), { text, burstiness, extent: extentOf(options) })];
  }
  return distinct(rate?.perSecond ?? DEFAULT_RATES).map((rate) => {
    const absent = Math.max(FEWEST_REQUESTS, Math.ceil(DEFAULT_SECONDS * rate));
    return rateCase(rate, burstiness, extentOf(options, absent));
  });
}

/** @throws UsageError where a block of a case has no request. */
function withRequests(
  cases: readonly LoadCase[],
  { seed, repeat }: Pick<LoadOptions, "seed" | "repeat">,
): readonly LoadCase[] {
  const blocks = Array.from({ length: repeat }, (_, block) => cellSeed(seed, block));
  for (const { name, arrivals } of cases) {
    const block = blocks.findIndex((seed) => arrivals(seed).length === 0);
    if (block < 0) continue;
    throw new UsageError(
      `Cannot measure "${name}": no request arrives in block ${block + 1} of ${repeat}; ` +
        "give a longer --duration",
    );
  }
  return cases;
}

function traced(
  { path, timeScale, lengthScale }: TraceChoice,
  options: LoadOptions,
): LoadCase {
  const { seed } = options;
  const arrivals = readTrace(readNamed(path), { path, seed, timeScale, ...extentOf(options) });
  const scale = timeScale === 1 ? "" : `, time x ${timeScale}`;
  const lengths = lengthScale === 1 ? "" : `, lengths x ${lengthScale}`;
  return traceCase(arrivals, {
    name: `trace ${basename(path)}${scale}${lengths}`,
    lengthScale,
  });
}

function extentOf({ numRequests, duration }: LoadOptions, absent?: number): Extent {
  const requests = numRequests ?? (duration === undefined ? absent : undefined);
  return {
    ...defined({ requests }),
    ...duration === undefined ? {} : { durationMs: duration * 1000 },
  };
}

/** The arms to compare. Without a draft only plain decoding is left. */
function armsOf(options: LoadOptions): LoadArm[] {
  const others = hasDraft({ ...options }) ? DEFAULT_POLICIES : [];
  const given = policyTexts(options.policies);
  const texts = given.length > 0 ? given : ["off", ...others];
  return loadArms(
    texts.map((label) => ({ label, policy: policyOf(label, "--policy") })),
  );
}

import { fitCosts, type Reading, type TableNames } from "../../../speculate/costs/fit.ts";
import type { CostTable } from "../../../speculate/costs/table.ts";
import type { Runner } from "../../device/runner.ts";
import { openLanes } from "./lanes.ts";
import { openPartClock, openProgramTimer } from "../program_timer.ts";
import { costProbes, holds, LONG_CONTEXTS, type ProbePlanRequest, SHORT_CONTEXT } from "./plan.ts";
import { type Probe, type ProbeParts } from "./probes.ts";

/** What is measured, and for how long. */
export interface CostsRequest extends Omit<ProbePlanRequest, "longContext"> {
  /** Names of the table's buckets, adapter and models. */
  readonly names: TableNames;
  /** Seconds that it may take; twice as many for what a table cannot do well without. */
  readonly seconds: number;
  readonly onProgress?: (done: number) => void;
  /** Milliseconds; tests have their own. */
  readonly now?: () => number;
  /** Ends it with what was measured until then. */
  readonly signal?: AbortSignal;
}

export interface MeasuredCosts {
  readonly table: CostTable;
  readonly readings: readonly Reading[];
  readonly seconds: number;
  /** Fewest readings that any probe has. */
  readonly repeats: number;
  /** Things measured. */
  readonly probes: number;
  /** What there was no time or room for. */
  readonly skipped: readonly string[];
}

/** Share of the time that storing the long context may take. */
const LONG_SHARE = 0.08;
/** Readings of a median: the usual number, the fewest however slow they are, and the most. */
const [USUAL_REPEATS, FEWEST_REPEATS, MAX_REPEATS] = [7, 3, 15];
/** How many times the requested time is used at most, if it is too short for FEWEST_REPEATS of what a table needs. */
const MAX_SHARE = 2;
/** Idle GPUs lower their clocks; this much work raises them. */
const WARM_MS = 200;

/**
 * Measures what rounds cost on this runner by running them alone: the scheduler is idle.
 * All slots and pages it takes are given back. Repeats are interleaved: each pass runs everything
 * once, so what slows the machine for a while slows all alike.
 */
export async function measureCosts(runner: Runner, asked: CostsRequest): Promise<MeasuredCosts> {
  const { now = () => performance.now() } = asked;
  const started = now();
  const end = started + asked.seconds * 1000;
  const last = started + asked.seconds * 1000 * MAX_SHARE;
  using timer = await openProgramTimer(runner.gpu, openPartClock);
  using lanes = openLanes(runner);
  const parts = { runner, lanes, timer };
  const longContext = await longContextOf(parts, { ...asked, now });
  const probes = costProbes(parts, { ...asked, longContext });
  const firsts = await firstRuns(probes, { ...asked, now, end, last });
  const { readings, repeats } = await passes(firsts, { ...asked, now, end, last });
  return {
    table: fitCosts(readings, asked.names),
    readings,
    seconds: (now() - started) / 1000,
    repeats,
    probes: firsts.chosen.length,
    skipped: firsts.skipped.map(({ name }) => name),
  };
}

type Clocked = CostsRequest & Required<Pick<CostsRequest, "now">>;

/** The longest context whose prompt can be stored in time, estimated from a short one. */
async function longContextOf(parts: ProbeParts, { seconds, now }: Clocked): Promise<number> {
  // The second one is compiled.
  let perToken = 0;
  for (const batch of [1, 2].filter((batch) => batch <= parts.runner.capacity.batch)) {
    const started = now();
    await parts.lanes.at(batch, SHORT_CONTEXT, 0);
    perToken = (now() - started) / SHORT_CONTEXT;
  }
  return LONG_CONTEXTS.find((context) =>
    holds(parts, context) && context * perToken < 1000 * seconds * LONG_SHARE
  ) ?? SHORT_CONTEXT;
}

/**
 * When to stop. First runs: after `end` only those of probes of rank 0 or less are begun, after `last` only those of
 * rank below 0. Passes: after `end` only as many as FEWEST_REPEATS needs are begun, after `last` none.
 */
interface Deadline extends Pick<Clocked, "signal" | "onProgress" | "now"> {
  readonly end: number;
  readonly last: number;
}

interface FirstRuns {
  readonly chosen: readonly Probe[];
  /** One of each that is chosen. */
  readonly readings: readonly Reading[];
  readonly skipped: readonly Probe[];
}

/**
 * Runs each twice, the most important first, for as long as there is time to run all of them
 * USUAL_REPEATS times: the first run compiles, the second is a reading and says what one takes.
 */
async function firstRuns(
  probes: readonly Probe[],
  { end, last, signal, now }: Deadline,
): Promise<FirstRuns> {
  const chosen: Probe[] = [];
  const readings: Reading[] = [];
  const skipped: Probe[] = [];
  let passMs = 0;
  for (const probe of probes) {
    const time = now();
    const late = probe.rank > 0 ? time + USUAL_REPEATS * passMs > end : time > last;
    if ((late && probe.rank >= 0) || signal?.aborted || await probe.run() === undefined) {
      skipped.push(probe);
      continue;
    }
    const started = now();
    readings.push(...await probe.run() ?? []);
    passMs += now() - started;
    chosen.push(probe);
  }
  return { chosen, readings, skipped };
}

async function passes(
  { chosen, readings: firsts }: FirstRuns,
  { end, last, signal, onProgress = () => {}, now }: Deadline,
): Promise<{ readings: Reading[]; repeats: number }> {
  const began = now();
  // Probes of one context run one after the other, because another context opens the lanes again.
  const order = chosen.toSorted((a, b) => b.context - a.context);
  const [first] = order;
  const readings = [...firsts];
  if (first === undefined || signal?.aborted) return { readings, repeats: 0 };
  const warmUntil = Math.min(began + WARM_MS, end);
  while (now() < warmUntil) await first.run();
  let repeats = 1;
  let passMs = 0;
  // Whole passes: one that would end too late is not begun.
  const fits = () => now() + passMs < (repeats < FEWEST_REPEATS ? last : end);
  while (repeats < MAX_REPEATS && !signal?.aborted && fits()) {
    const started = now();
    for (const probe of order) readings.push(...await probe.run() ?? []);
    repeats++;
    const ended = now();
    passMs = ended - started;
    onProgress(ended < end ? (ended - began) / (end - began) : 1);
  }
  return { readings, repeats };
}

import { fitCosts, type Reading, type TableNames } from "../../../speculate/costs/fit.ts";
import type { CostTable } from "../../../speculate/costs/table.ts";
import type { Core } from "../../device/core.ts";
import { openLanes } from "./lanes.ts";
import { openPartTimer } from "./part_timer.ts";
import { costProbes, holds, LONG_CONTEXTS, type PlanAsked, SHORT_CONTEXT } from "./plan.ts";
import { type Probe, type ProbeParts } from "./probes.ts";

/** What is measured, and for how long. */
export interface CostsAsked extends Omit<PlanAsked, "longContext"> {
  /** Of the table's buckets, adapter and models. */
  readonly names: TableNames;
  /** Seconds that it may take, but for what a table cannot do without. */
  readonly seconds: number;
  readonly onProgress?: (done: number) => void;
  /** Ends it with what was measured until then. */
  readonly signal?: AbortSignal;
}

export interface MeasuredCosts {
  readonly table: CostTable;
  readonly readings: readonly Reading[];
  readonly seconds: number;
  /** Readings of each thing, the fewest. */
  readonly repeats: number;
  /** Things measured. */
  readonly probes: number;
  /** What there was no time or room for. */
  readonly skipped: readonly string[];
}

/** Share of the time that the first runs may take: they compile. */
const FIRST_SHARE = 0.4;
/** Share of the time that storing the long context may take. */
const LONG_SHARE = 0.08;
/** Readings that a median needs, and more than which it is hardly better for. */
const [FEWEST_REPEATS, MOST_REPEATS] = [5, 25];
/** Without these there is no table. */
const FEWEST_PROBES = 3;
/** Idle GPUs lower their clocks; this much work raises them. */
const WARM_MS = 200;

/**
 * Measures what rounds cost on this core by running them, beside nothing else: the scheduler is idle.
 * All slots and pages it takes are given back. Repeats are interleaved: each pass runs everything
 * once, so what slows the machine for a while slows all alike.
 */
export async function measureCosts(core: Core, asked: CostsAsked): Promise<MeasuredCosts> {
  const started = performance.now();
  const end = started + asked.seconds * 1000;
  using timer = await openPartTimer(core.gpu);
  using lanes = openLanes(core);
  const parts = { core, lanes, timer };
  const longContext = await longContextOf(parts, asked);
  const probes = costProbes(parts, { ...asked, longContext });
  const firsts = await firstRuns(probes, {
    ...asked,
    until: started + 1000 * FIRST_SHARE * asked.seconds,
  });
  const chosen = affordable(firsts.timed, end - performance.now());
  const skipped = [...firsts.skipped, ...firsts.timed.slice(chosen.length)].map(nameOf);
  const { readings, repeats } = await passes(chosen.map(({ probe }) => probe), { ...asked, end });
  return {
    table: fitCosts(readings, asked.names),
    readings,
    seconds: (performance.now() - started) / 1000,
    repeats,
    probes: chosen.length,
    skipped,
  };
}

function nameOf({ probe }: { readonly probe: Probe }): string {
  return probe.name;
}

/** The longest context that a prompt is stored for in time, by what a short one takes. */
async function longContextOf(parts: ProbeParts, { seconds }: CostsAsked): Promise<number> {
  // The second one is compiled.
  let perToken = 0;
  for (const batch of [1, 2].filter((batch) => batch <= parts.core.capacity.batch)) {
    const started = performance.now();
    await parts.lanes.at(batch, SHORT_CONTEXT, 0);
    perToken = (performance.now() - started) / SHORT_CONTEXT;
  }
  return LONG_CONTEXTS.find((context) =>
    holds(parts, context) && context * perToken < 1000 * seconds * LONG_SHARE
  ) ?? SHORT_CONTEXT;
}

interface TimedProbe {
  readonly probe: Probe;
  /** Of a run that compiles nothing. */
  readonly ms: number;
}

/** Runs each twice, the most important first, for as long as there is time: the first one compiles. */
async function firstRuns(
  probes: readonly Probe[],
  { until, signal }: Pick<CostsAsked, "signal"> & { readonly until: number },
): Promise<{ timed: TimedProbe[]; skipped: { readonly probe: Probe }[] }> {
  const timed: TimedProbe[] = [];
  const skipped: { readonly probe: Probe }[] = [];
  for (const probe of probes) {
    const late = timed.length >= FEWEST_PROBES && performance.now() > until;
    if (late || signal?.aborted || await probe.run() === undefined) {
      skipped.push({ probe });
      continue;
    }
    const started = performance.now();
    await probe.run();
    timed.push({ probe, ms: performance.now() - started });
  }
  return { timed, skipped };
}

/** The most important ones that can be run FEWEST_REPEATS times within `left` milliseconds. */
function affordable(timed: readonly TimedProbe[], left: number): readonly TimedProbe[] {
  let sum = 0;
  const most = timed.findIndex(({ ms }, i) => {
    sum += ms;
    return i >= FEWEST_PROBES && sum * FEWEST_REPEATS > left;
  });
  return most < 0 ? timed : timed.slice(0, most);
}

async function passes(
  probes: readonly Probe[],
  { end, signal, onProgress = () => {} }: CostsAsked & { readonly end: number },
): Promise<{ readings: Reading[]; repeats: number }> {
  const began = performance.now();
  // Those of one context one after the other: another one opens the lanes anew.
  const order = probes.toSorted((a, b) => b.context - a.context);
  while (order[0] && performance.now() - began < WARM_MS) await order[0].run();
  const readings: Reading[] = [];
  let repeats = 0;
  for (; repeats < MOST_REPEATS && !signal?.aborted; repeats++) {
    const pass = performance.now();
    for (const probe of order) readings.push(...await probe.run() ?? []);
    const now = performance.now();
    onProgress(Math.min(1, (now - began) / (end - began)));
    if (now + (now - pass) > end && repeats + 1 >= 2) return { readings, repeats: repeats + 1 };
  }
  return { readings, repeats };
}

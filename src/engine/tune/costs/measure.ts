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

/** Share of the time that storing the long context may take. */
const LONG_SHARE = 0.08;
/** Readings that a median is to have, that it has however slow they are, and that are enough. */
const [USUAL_REPEATS, FEWEST_REPEATS, MOST_REPEATS] = [7, 3, 15];
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
  const { chosen, skipped } = await firstRuns(probes, { ...asked, end });
  const { readings, repeats } = await passes(chosen, { ...asked, end });
  return {
    table: fitCosts(readings, asked.names),
    readings,
    seconds: (performance.now() - started) / 1000,
    repeats,
    probes: chosen.length,
    skipped: skipped.map(({ name }) => name),
  };
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

/**
 * Runs each twice, the most important first, for as long as there is time to run all of them
 * USUAL_REPEATS times more: the first run compiles, the second says what one takes.
 */
async function firstRuns(
  probes: readonly Probe[],
  { end, signal }: Pick<CostsAsked, "signal"> & { readonly end: number },
): Promise<{ readonly chosen: readonly Probe[]; readonly skipped: readonly Probe[] }> {
  const chosen: Probe[] = [];
  const skipped: Probe[] = [];
  let passMs = 0;
  for (const probe of probes) {
    const late = probe.rank > 0 && performance.now() + USUAL_REPEATS * passMs > end;
    if (late || signal?.aborted || await probe.run() === undefined) {
      skipped.push(probe);
      continue;
    }
    const started = performance.now();
    await probe.run();
    passMs += performance.now() - started;
    chosen.push(probe);
  }
  return { chosen, skipped };
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
    onProgress(now < end ? (now - began) / (end - began) : 1);
    if (now + (now - pass) > end && repeats + 1 >= FEWEST_REPEATS) {
      return { readings, repeats: repeats + 1 };
    }
  }
  return { readings, repeats };
}

import { blockOrder } from "../plan.ts";
import { cellSeed, type LoadCase, type LoadCellSpec, type LoadPlan } from "./plan.ts";
import { requestsOf } from "./request.ts";
import { type LoadRow, type RowContext, rowOf } from "./row.ts";
import type { LoadCellResult, LoadSession } from "./session.ts";

/** Progress of a run. */
export type LoadEvent =
  | { readonly kind: "warm-up"; readonly one: LoadCase; readonly label: string }
  /** `done` of `total` requests of the run are answered. */
  | {
    readonly kind: "requests";
    readonly done: number;
    readonly total: number;
    readonly one: LoadCase;
    readonly label: string;
  }
  | {
    readonly kind: "row";
    readonly row: LoadRow;
    readonly spec: LoadCellSpec;
    readonly result: LoadCellResult;
  }
  /** Two policies gave different greedy outputs, which ends the run. */
  | { readonly kind: "different"; readonly message: string };

/** How a run is measured. */
export interface LoadOptions extends Pick<RowContext, "slo"> {
  /** The most requests that run at a time in this process. */
  readonly maxBatch: number;
  readonly signal: AbortSignal;
  readonly now: () => Date;
  readonly onEvent: (event: LoadEvent) => void;
}

/** Measures all cases of the plan. When the signal aborts, the measurement in flight is discarded and the run ends. */
export async function measureLoad(
  plan: LoadPlan,
  session: LoadSession,
  options: LoadOptions,
): Promise<void> {
  const { signal, onEvent } = options;
  const blocks = plan.cases.flatMap((one, caseIndex) =>
    Array.from({ length: plan.blocks }, (_, block) => ({ one, caseIndex, block }))
  );
  for (const one of plan.cases) {
    const seed = cellSeed(plan.seed, 0);
    session.check(requestsOf(one.arrivals(seed), plan.work, seed));
  }
  const sizes = blocks.map(({ one, block }) => one.arrivals(cellSeed(plan.seed, block)).length);
  const total = sizes.reduce((sum, size) => sum + size * plan.arms.length, 0);
  let before = 0;
  for (const [i, { one, caseIndex, block }] of blocks.entries()) {
    if (block === 0 && !await warmUp(one, { plan, session, options })) return;
    let first: { readonly label: string; readonly result: LoadCellResult } | undefined;
    for (const arm of blockOrder(plan.arms, { seed: plan.seed, caseIndex, block })) {
      const { label } = arm;
      const spec = { one, arm, block, seed: cellSeed(plan.seed, block) };
      const result = await run(session, spec, options, (ended) => {
        onEvent({ kind: "requests", done: before + ended, total, one, label });
      });
      if (result === undefined) return;
      before += sizes[i] ?? 0;
      const row = rowOf(spec, result, contextOf({ plan, session, options }));
      onEvent({ kind: "row", row, spec, result });
      first ??= { label, result };
      const at = session.subject.simulated ? -1 : firstDifference(first.result, result);
      if (at < 0) continue;
      const message = `"${label}" and "${first.label}" gave different greedy outputs ` +
        `(${one.name}, block ${block + 1}, request ${at + 1})`;
      return onEvent({ kind: "different", message });
    }
    if (signal.aborted) return;
  }
}

interface Going {
  readonly plan: LoadPlan;
  readonly session: LoadSession;
  readonly options: LoadOptions;
}

/** Compiles the programs of the rounds of each policy before the first measurement. */
async function warmUp(one: LoadCase, { plan, session, options }: Going): Promise<boolean> {
  for (const arm of plan.arms.filter(({ again }) => !again)) {
    options.onEvent({ kind: "warm-up", one, label: arm.label });
    const spec = { one, arm, block: -1, seed: cellSeed(plan.seed, 0) };
    if (await run(session, spec, options, () => {}) === undefined) return false;
  }
  return true;
}

function contextOf({ plan, session, options: { maxBatch, slo, now } }: Going): RowContext {
  const { subject, served = { backend: "eyrie", maxBatch } } = session;
  const { backend } = served;
  return {
    subject,
    backend,
    maxBatch: served.maxBatch,
    slo,
    date: now(),
    workload: plan.work.workload.name,
  };
}

/** The result of a measurement; undefined if the signal aborted before its end. */
async function run(
  session: LoadSession,
  spec: LoadCellSpec,
  { signal }: LoadOptions,
  onEnded: (ended: number) => void,
): Promise<LoadCellResult | undefined> {
  if (signal.aborted) return undefined;
  try {
    const result = await session.runCell(spec, { signal, onEnded });
    return signal.aborted ? undefined : result;
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/** Index of the first request whose outputs differ; -1 if there is none. */
function firstDifference(a: LoadCellResult, b: LoadCellResult): number {
  return a.requests.findIndex(({ outputHash }, at) => outputHash !== b.requests[at]?.outputHash);
}

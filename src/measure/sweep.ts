import type { Arm, Plan } from "./plan.ts";
import { blockOrder, caseText, cellSpec, PLAIN, warmUpSpec } from "./plan.ts";
import { type BenchRow, rowKey, rowOf, withGaps } from "./row.ts";
import type { BenchSession, Case, CellResult } from "./runner.ts";
import { sum } from "./statistics.ts";
import { isWarm } from "./warm_up.ts";

/** Progress of a sweep. */
export type SweepEvent =
  | { readonly kind: "warm-up"; readonly one: Case }
  /** The warm-up of a case has ended: the number of passes over all settings, and the seconds that they took. */
  | { readonly kind: "warm"; readonly one: Case; readonly passes: number; readonly seconds: number }
  | {
    readonly kind: "cell";
    readonly one: Case;
    readonly label: string;
    readonly block: number;
    /** `done` of `total` cells are measured, with this one. */
    readonly done: number;
    readonly total: number;
    readonly tokensPerSecond: number;
  }
  /** The rows of a case; `complete` is false if the sweep was stopped within it. */
  | { readonly kind: "rows"; readonly rows: readonly BenchRow[]; readonly complete: boolean }
  /** Two settings gave different greedy outputs, which ends the sweep. */
  | { readonly kind: "different"; readonly message: string };

/** How a sweep is measured. */
export interface SweepOptions {
  /** Rows of an earlier run by `rowKey`, which are not measured again. */
  readonly present: ReadonlyMap<string, BenchRow>;
  readonly signal: AbortSignal;
  /** Resolves when a block may begin, for two processes that measure their blocks in turns. */
  readonly turn?: () => Promise<void>;
}

/** Cells by arm, one for each block. */
type Measured = ReadonlyMap<string, CellResult[]>;

/** Measures all cases of the plan. When the signal aborts, the cell in flight is the last one. */
export async function* sweep(
  plan: Plan,
  session: BenchSession,
  options: SweepOptions,
): AsyncGenerator<SweepEvent> {
  const todo = plan.cases.map((one, caseIndex) => ({
    one,
    caseIndex,
    arms: missingArms(one, { plan, session, options }),
  })).filter(({ arms }) => arms.length > 0);
  const total = sum(todo.map(({ arms }) => arms.length * plan.blocks));
  let done = 0;
  for (const { one, caseIndex, arms } of todo) {
    const measured = new Map(arms.map(({ label }) => [label, [] as CellResult[]]));
    for await (const event of measureCase(one, { plan, session, options, arms, caseIndex })) {
      if (event.kind !== "cell") {
        yield event;
        if (event.kind === "different") return;
        continue;
      }
      measured.get(event.label)?.push(event.result);
      const { label, block, result } = event;
      const tokensPerSecond = result.tokens / result.seconds;
      yield { kind: "cell", one, label, block, done: ++done, total, tokensPerSecond };
    }
    yield* rowsOf(one, { plan, session, options, measured });
    if (options.signal.aborted) return;
  }
}

interface Going {
  readonly plan: Plan;
  readonly session: BenchSession;
  readonly options: SweepOptions;
}

/** The arms without a row, with plain decoding added; empty if all arms have a row. */
function missingArms(one: Case, { plan, session, options }: Going): Arm[] {
  const missing = plan.arms.filter((arm) =>
    presentRow(arm, one, { plan, session, options }) === undefined
  );
  return missing.length === 0
    ? []
    : plan.arms.filter((arm) => arm.label === PLAIN || missing.includes(arm));
}

/** The row of an earlier run, if it has enough blocks. */
function presentRow(
  { label }: Arm,
  one: Case,
  { plan, session, options }: Going,
): BenchRow | undefined {
  const row = options.present.get(rowKey(session.subject, one, { label, seed: plan.seed }));
  return row !== undefined && row.blocks >= plan.blocks ? row : undefined;
}

type CaseEvent =
  | Extract<SweepEvent, { kind: "warm-up" | "warm" | "different" }>
  | {
    readonly kind: "cell";
    readonly label: string;
    readonly block: number;
    readonly result: CellResult;
  };

async function* measureCase(
  one: Case,
  { plan, session, options, arms, caseIndex }: Going & { arms: readonly Arm[]; caseIndex: number },
): AsyncGenerator<CaseEvent> {
  const { seed, blocks } = plan;
  const { signal, turn = () => Promise.resolve() } = options;
  await turn();
  yield { kind: "warm-up", one };
  const passes: number[] = [];
  const began = performance.now();
  while (!isWarm(passes, (performance.now() - began) / 1000)) {
    let seconds = 0;
    for (const { setting } of arms) {
      const result = await run(session, warmUpSpec(one, setting, seed), signal);
      if (result === undefined) return;
      seconds += result.seconds;
    }
    passes.push(seconds);
  }
  yield { kind: "warm", one, passes: passes.length, seconds: sum(passes) };
  for (let block = 0; block < blocks; block++) {
    let first: { label: string; result: CellResult } | undefined;
    if (block > 0) await turn();
    for (const { label, setting } of blockOrder(arms, { seed, caseIndex, block })) {
      const result = await run(session, cellSpec(one, { setting, block, seed }), signal);
      if (result === undefined) return;
      yield { kind: "cell", label, block, result };
      first ??= { label, result };
      const at = one.temperature === 0 ? firstDifference(first.result, result) : undefined;
      if (at !== undefined && !session.subject.simulated) {
        const message = `"${label}" and "${first.label}" gave different greedy outputs ` +
          `(${one.workload}, ${caseText(one)}, block ${block + 1}, request ${at + 1})`;
        return yield { kind: "different", message };
      }
    }
  }
}

/** The result of a cell; undefined if the signal aborted before its end. */
async function run(
  session: BenchSession,
  spec: Parameters<BenchSession["runCell"]>[0],
  signal: AbortSignal,
): Promise<CellResult | undefined> {
  if (signal.aborted) return undefined;
  try {
    const result = await session.runCell(spec, signal);
    return signal.aborted ? undefined : result;
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/** Index of the first request whose outputs differ. */
function firstDifference(a: CellResult, b: CellResult): number | undefined {
  const most = Math.max(a.requests.length, b.requests.length);
  for (let at = 0; at < most; at++) {
    if (a.requests[at]?.outputHash !== b.requests[at]?.outputHash) return at;
  }
  return undefined;
}

/** Yields the rows of the blocks that all arms finished, if there is such a block. */
function* rowsOf(
  one: Case,
  { plan, session, options, measured }: Going & { measured: Measured },
): Generator<SweepEvent> {
  const blocks = Math.min(...[...measured.values()].map((results) => results.length));
  if (blocks === 0) return;
  const { seed } = plan;
  const { subject } = session;
  const known: BenchRow[] = [];
  const rows: BenchRow[] = [];
  for (const arm of plan.arms) {
    const present = presentRow(arm, one, { plan, session, options });
    if (present !== undefined) known.push(present);
    else rows.push(rowOf(arm, pairsOf(arm.label, measured, blocks), { subject, one, seed }));
  }
  yield { kind: "rows", rows: withGaps(rows, known), complete: blocks === plan.blocks };
}

function pairsOf(label: string, measured: Measured, blocks: number) {
  const [own = [], plain = []] = [measured.get(label), measured.get(PLAIN)];
  return own.slice(0, blocks).map((result, block) => ({
    own: result,
    plain: plain[block] as CellResult,
  }));
}

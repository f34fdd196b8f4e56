/** What each rewrite of lowering saves: the plan of a forward with all of them, against the plan without one. */
import { asError, UsageError } from "../../errors.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import { compiler, type Program, runsWithin, within } from "../../gpu/program.ts";
import { openTimer, type Timer } from "../../gpu/timer.ts";
import { REWRITES } from "../../model/lower/rewrites.ts";
import { chain } from "../../speculate/round_shape.ts";
import { throwDeviceErrors, yieldToEventLoop } from "../device/event_loop.ts";
import type { Runner } from "../device/runner.ts";
import { maxCells } from "../device/sequence.ts";
import {
  distinctIds,
  type GrowthPoint,
  openSequences,
  pointCells,
  randomChain,
  setBack,
} from "./growth/growth.ts";
import { warmMs } from "./warm.ts";

/** A forward that is measured. */
export type RewriteShape =
  /** A round's verification until the target's choice. */
  | { readonly kind: "round"; readonly point: GrowthPoint }
  /** A chunk of the prompt of one sequence that has nothing stored, without the head. */
  | { readonly kind: "prompt"; readonly rows: number };

/** A plan without one of the rewrites, or without all of them. */
export interface OtherPlan {
  /** Of the rewrite; "all". */
  readonly rewrite: string;
  /** Whether sums are in another order than with all rewrites. */
  readonly changesBits: boolean;
  readonly plan: readonly Dispatch[];
}

/** Times of one plan against that with all rewrites, in milliseconds. */
export interface RewriteSamples extends Pick<OtherPlan, "rewrite" | "changesBits"> {
  readonly clock: Timer["clock"];
  /** With all rewrites; a number for each pair. */
  readonly withMs: readonly number[];
  /** The other of each pair, measured right after it. */
  readonly withoutMs: readonly number[];
}

/** A rewrite without which the forward cannot be measured. */
export interface FailedRewrite {
  readonly rewrite: string;
  readonly why: string;
}

/** A rewrite that is measured next. */
export interface StartedRewrite {
  readonly rewrite: string;
  /** How many of the `total` rewrites come before this one; turning off all of them together counts as one. */
  readonly done: number;
  readonly total: number;
}

/** A sample is a submission of this length at least: its ends do not count then. */
const SAMPLE_MS = 2;
/** Programs in one submission. */
const MAX_RUNS = 50;

/** How many rewrites are tried at a shape: each, and all of them together. */
export const MAX_TRIED: number = REWRITES.length + 1;

const NONE: ReadonlySet<string> = new Set();

/**
 * The plans that change if a rewrite is turned off, in the order of `REWRITES`, and last the plan without all of them.
 * A rewrite that changes no dispatch is left out; where values are stored does not count.
 *
 * @param planOf the plan without these rewrites.
 * @param cells that the longest sequence has: dispatches for other lengths do not count.
 */
export function* otherPlans(
  planOf: (without: ReadonlySet<string>) => readonly Dispatch[],
  cells: number,
): Generator<OtherPlan | FailedRewrite> {
  const known = dispatchedBy(planOf(NONE), cells);
  const all = { name: "all", changesBits: REWRITES.some(({ changesBits }) => changesBits) };
  for (const { name: rewrite, changesBits = false } of [...REWRITES, all]) {
    try {
      const plan = planOf(new Set([rewrite]));
      if (dispatchedBy(plan, cells) !== known) yield { rewrite, changesBits, plan };
    } catch (error) {
      yield { rewrite, why: firstLine(error) };
    }
  }
}

/** What runs, as text: labels, kernels with their constants, workgroups. */
function dispatchedBy(plan: readonly Dispatch[], cells: number): string {
  return plan.filter((dispatch) => runsWithin(dispatch, cells)).map((dispatch) => {
    const { label, kernel, constants, workgroups } = dispatch;
    return JSON.stringify([label, kernel.name, constants, workgroups]);
  }).join("\n");
}

/** A forward whose inputs are on the device. */
interface Prepared {
  readonly planOf: (without: ReadonlySet<string>) => Dispatch[];
  readonly cells: number;
}

/**
 * Measures a forward with all rewrites against the forward without each rewrite that changes its plan, and without all
 * of them. The two plans take turns; both were run before. Each rewrite is announced before it is measured.
 *
 * @param of.pairs measured for each rewrite.
 * @throws UsageError where slots or pages are short.
 */
export async function* measureRewrites(
  runner: Runner,
  shape: RewriteShape,
  { pairs, signal }: { readonly pairs: number; readonly signal?: AbortSignal },
): AsyncGenerator<StartedRewrite | RewriteSamples | FailedRewrite> {
  using stack = new DisposableStack();
  const { gpu } = runner;
  const { planOf, cells } = shape.kind === "prompt"
    ? await preparePrompt(runner, stack, shape.rows)
    : await prepareRound(runner, stack, shape.point);
  const timer = stack.use(await openTimer(gpu));
  const { compile } = compiler(gpu);
  /** Compiled, and run once: adapters compile at the first run. */
  const made = async (plan: readonly Dispatch[]): Promise<Program> => {
    const program = within(await compile([...plan]), cells);
    await timer.ms(program);
    await throwDeviceErrors(gpu);
    return program;
  };
  const whole = await made(planOf(NONE));
  const started = performance.now();
  let once = await timer.ms(whole);
  while (performance.now() - started < warmMs(gpu.info)) once = await timer.ms(whole);
  const runs = Math.max(1, Math.min(MAX_RUNS, Math.ceil(SAMPLE_MS / once)));
  const sample = async ({ steps }: Program) =>
    await timer.ms({ steps: Array.from({ length: runs }, () => steps).flat() }) / runs;

  const turn = yieldToEventLoop();

  async function samplesOf({ rewrite, changesBits, plan }: OtherPlan): Promise<RewriteSamples> {
    const [withMs, withoutMs]: [number[], number[]] = [[], []];
    const program = await made(plan);
    while (withMs.length < pairs) {
      await turn(); // in which Ctrl+C arrives
      if (signal?.aborted) break;
      withMs.push(await sample(whole));
      withoutMs.push(await sample(program));
    }
    await throwDeviceErrors(gpu);
    return { rewrite, changesBits, clock: timer.clock, withMs, withoutMs };
  }

  for (const other of otherPlans(planOf, cells)) {
    if (signal?.aborted) return;
    if ("why" in other) yield other;
    else {
      const { rewrite } = other;
      const at = REWRITES.findIndex(({ name }) => name === rewrite);
      yield { rewrite, done: at < 0 ? REWRITES.length : at, total: MAX_TRIED };
      yield await samplesOf(other).catch((error) => ({ rewrite, why: firstLine(error) }));
    }
  }
}

async function preparePrompt(
  runner: Runner,
  stack: DisposableStack,
  rows: number,
): Promise<Prepared> {
  const sequences = openSequences(runner, stack, { batch: 1, cells: rows + 1 });
  const [sequence] = sequences ?? [];
  if (sequence === undefined) throw tooSmall({ batch: 1, cells: rows + 1 });
  sequence.ids.push(...distinctIds(runner, rows));
  await runner.prefill([{ sequence, to: rows }]);
  const planOf: Prepared["planOf"] = (without) => runner.programs.promptPlan(rows, without);
  return { planOf, cells: maxCells([sequence]) };
}

/** Runs a round with random drafts: its batch and its drafts stay on the device. */
async function prepareRound(
  runner: Runner,
  stack: DisposableStack,
  point: GrowthPoint,
): Promise<Prepared> {
  const { batch, rows } = point;
  const wanted = { batch, cells: pointCells(point) };
  const sequences = openSequences(runner, stack, wanted);
  if (sequences === undefined) throw tooSmall(wanted);
  await setBack(runner, sequences, Math.max(1, point.context));
  const shape = chain(rows - 1);
  const proposals = sequences.map((_, i) => randomChain(runner, rows - 1, i));
  await runner.rounds(sequences, { shape, count: 1, ...rows > 1 ? { proposals } : {} });
  const spec = { ...shape, batch, proposed: rows > 1 };
  const planOf: Prepared["planOf"] = (without) => runner.programs.verifyPlan(spec, without);
  return { planOf, cells: maxCells(sequences) };
}

function tooSmall({ batch, cells }: { readonly batch: number; readonly cells: number }) {
  return new UsageError(
    `Cannot measure ${batch} sequences of ${cells} tokens: the KV cache has no room for them`,
  );
}

function firstLine(error: unknown): string {
  return asError(error).message.split("\n")[0] ?? "";
}

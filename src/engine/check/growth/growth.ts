/** What rounds and prefills take at a context, a batch and a number of rows: the points of `bench --table growth`. */
import type { Program } from "../../../gpu/program.ts";
import { type Context, workAt } from "../../../gpu/kernel.ts";
import { chain } from "../../../speculate/round_shape.ts";
import { GREEDY } from "../../../speculate/sampling.ts";
import type { Proposal } from "../../../speculate/trees.ts";
import type { Runner } from "../../device/runner.ts";
import { type OpenSequence, openSequence, prefillPrompt } from "../../device/single_sequence.ts";
import { maxCells, rewind, type Sequence } from "../../device/sequence.ts";
import { warmMs } from "../warm.ts";

/** Where a round is measured. */
export interface GrowthPoint {
  /** Tokens that each sequence has stored; of 0 it has one. */
  readonly context: number;
  /** Sequences. */
  readonly batch: number;
  /** Verify rows of each: the drafts of a chain and the pending token. */
  readonly rows: number;
}

/** Times in milliseconds. */
export interface RoundTimes {
  /** Time of a round that is submitted alone, by the host's clock. */
  readonly ms: number;
  /** Device times; 0 where the adapter has no timestamp queries. */
  readonly draftMs: number;
  readonly verifyMs: number;
  readonly extendMs: number;
}

/** What the device has to do at least. */
export interface LeastWork {
  /** Read and written, everything once. */
  readonly bytes: number;
  readonly flops: number;
}

export interface PointSamples {
  readonly rounds: readonly RoundTimes[];
  readonly work: LeastWork;
}

export interface PrefillSamples {
  /** Tokens. */
  readonly count: number;
  /** By the host's clock, a number a run. */
  readonly ms: readonly number[];
  readonly work: LeastWork;
}

/** Cells that a sequence adds before it is set back to its context. */
const DRIFT = 64;

/** Cells that a sequence has to have for a point. */
export function pointCells({ context, rows }: Pick<GrowthPoint, "context" | "rows">): number {
  return Math.max(1, context) + DRIFT + 2 * rows;
}

/**
 * Rounds of a point, one submission each. Drafts are the device's where it has a drafter, else random tokens.
 * Cells before a sequence's last one are as `fillCells` left them. Undefined where slots or pages are short.
 */
export async function measureRounds(
  runner: Runner,
  point: GrowthPoint,
  { times, signal }: { readonly times: number; readonly signal?: AbortSignal },
): Promise<PointSamples | undefined> {
  using stack = new DisposableStack();
  const { batch, rows } = point;
  const context = Math.max(1, point.context);
  const sequences = openSequences(runner, stack, { batch, cells: pointCells(point) });
  if (sequences === undefined) return undefined;
  const shape = chain(rows - 1);
  const proposals = runner.draft === "none" && rows > 1
    ? sequences.map((_, i) => randomChain(runner, rows - 1, i))
    : undefined;
  const asked = { shape, count: 1, ...proposals ? { proposals } : {} };

  async function round(): Promise<RoundTimes> {
    const longest = Math.max(...sequences?.map(({ stored }) => stored) ?? []);
    if (longest + rows > context + DRIFT) await setBack(runner, sequences ?? [], context);
    const began = performance.now();
    const [result] = await runner.rounds(sequences ?? [], asked);
    const ms = performance.now() - began;
    const { draftMs = 0, verifyMs = 0, extendMs = 0 } = result ?? {};
    return { ms, draftMs, verifyMs, extendMs };
  }

  await setBack(runner, sequences, context);
  // The first one compiles, the second finds its commands recorded.
  for (let i = 0; i < 2; i++) await round();
  const started = performance.now();
  while (performance.now() - started < warmMs(runner.gpu.info)) await round();
  const rounds: RoundTimes[] = [];
  while (rounds.length < times && !signal?.aborted) rounds.push(await round());
  const { draft, verify, extend } = await runner.programs.round({
    ...shape,
    batch,
    cells: maxCells(sequences),
    proposed: proposals !== undefined,
  });
  const seen = context + DRIFT / 2;
  return { rounds, work: leastWork([draft, verify, extend], { cells: batch * seen, seen }) };
}

/**
 * The prefill of the last `count` tokens of a context of one sequence, as requests have it: in chunks of
 * `chunkRows`, each read before the next. Undefined where pages are short.
 */
export async function measurePrefill(
  runner: Runner,
  { context, count, chunkRows, times, signal }: {
    readonly context: number;
    readonly count: number;
    readonly chunkRows: number;
    readonly times: number;
    readonly signal?: AbortSignal;
  },
): Promise<PrefillSamples | undefined> {
  using stack = new DisposableStack();
  const [sequence] = openSequences(runner, stack, { batch: 1, cells: context + 1 }) ?? [];
  if (sequence === undefined) return undefined;
  const from = context - count;
  const ms: number[] = [];
  // The first run compiles.
  for (let run = -1; run < times && !signal?.aborted; run++) {
    pretend(sequence, distinctIds(runner, context), from);
    const began = performance.now();
    while (sequence.stored < context) {
      const to = Math.min(context, sequence.stored + chunkRows);
      await runner.prefill([{ sequence, to }]);
    }
    if (run >= 0) ms.push(performance.now() - began);
  }
  return { count, ms, work: await prefillWork(runner, sequence, { from, to: context, chunkRows }) };
}

async function prefillWork(
  runner: Runner,
  sequence: Sequence,
  { from, to, chunkRows }: {
    readonly from: number;
    readonly to: number;
    readonly chunkRows: number;
  },
): Promise<LeastWork> {
  const works: LeastWork[] = [];
  for (let first = from; first < to; first += chunkRows) {
    const end = Math.min(to, first + chunkRows);
    const chunk = await runner.programs.prompt({ rows: end - first, cells: maxCells([sequence]) });
    const last = end === to ? [chunk.head, chunk.draftHead] : [];
    // Row i of a chunk sees first + i + 1 cells.
    const seen = first + (end - first + 1) / 2;
    works.push(leastWork([chunk.body, chunk.draft, ...last], { cells: end, seen }));
  }
  return works.reduce((sum, { bytes, flops }) => ({
    bytes: sum.bytes + bytes,
    flops: sum.flops + flops,
  }), { bytes: 0, flops: 0 });
}

function leastWork(programs: readonly Program[], context: Context): LeastWork {
  const works = programs.flatMap(({ steps }) => steps)
    .flatMap(({ work }) => work ? [workAt(work, context)] : []);
  return {
    bytes: works.reduce((sum, { bytes }) => sum + bytes, 0),
    flops: works.reduce((sum, { flops }) => sum + flops, 0),
  };
}

/** Opens sequences with pages for this many cells each; undefined if there are not enough. */
export function openSequences(
  runner: Runner,
  stack: DisposableStack,
  { batch, cells }: { readonly batch: number; readonly cells: number },
): OpenSequence[] | undefined {
  if (batch > runner.capacity.batch) return undefined;
  const sequences = Array.from({ length: batch }, () => stack.use(openSequence(runner)));
  for (const sequence of sequences) {
    if (!runner.reserve(sequence, cells)) return undefined;
    runner.setSampling(sequence, GREEDY);
  }
  return sequences;
}

/** All with their contexts stored and a pending token. */
export async function setBack(
  runner: Runner,
  sequences: readonly Sequence[],
  context: number,
): Promise<void> {
  for (const [i, sequence] of sequences.entries()) {
    const ids = distinctIds(runner, context, i);
    pretend(sequence, ids, context - 1);
    await prefillPrompt(runner, sequence, ids, context - 1);
  }
}

/** As if `stored` of these tokens were stored. */
function pretend(sequence: Sequence, ids: readonly number[], stored: number): void {
  sequence.ids.splice(0, Infinity, ...ids);
  sequence.stored = sequence.draftStored = stored;
  rewind(sequence, stored);
}

/** A proposal of `count` drafts in a chain. */
export function randomChain(runner: Runner, count: number, seed: number): Proposal {
  return {
    tokens: distinctIds(runner, count, seed + 1),
    parents: Array.from({ length: count }, (_, i) => i),
  };
}

/** Distinct tokens, as far as the target has enough. */
export function distinctIds({ models }: Pick<Runner, "models">, count: number, seed = 0): number[] {
  const { vocabSize } = models.target.config;
  return Array.from({ length: count }, (_, i) => (7 + 31 * i + 101 * seed) % vocabSize);
}

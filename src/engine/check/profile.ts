import { readWords } from "../../../kernels/measure/read_words.ts";
import { type Gpu, largestBinding } from "../../gpu/device.ts";
import { type Context, workAt } from "../../gpu/kernel.ts";
import { apart, medianTime, openProfiler, type Profiler } from "../../gpu/profile.ts";
import { compiler, type Program, type Step } from "../../gpu/program.ts";
import { DEFAULT_CONTEXT } from "../../model/device_layout.ts";
import { chain } from "../../speculate/round_shape.ts";
import { GREEDY } from "../../speculate/sampling.ts";
import { storageBuffer } from "../device/buffers.ts";
import { yieldToEventLoop } from "../device/event_loop.ts";
import type { Runner } from "../device/runner.ts";
import { prefillPrompt } from "../device/single_sequence.ts";
import { maxCells, rewind, type Sequence } from "../device/sequence.ts";
import { warmMs } from "./warm.ts";

/** A dispatch as the profile names it. */
export interface Launch {
  readonly label: string;
  readonly kernel: string;
  /** Bytes that it has to read and write at least; undefined if the launch does not say. */
  readonly bytes: number | undefined;
  readonly flops: number | undefined;
}

/** One part of a round, or a prefill, run several times. Device times in milliseconds. */
export interface PartSamples {
  readonly part: "draft" | "verify" | "extend" | "prefill";
  readonly launches: readonly Launch[];
  /** Times of each launch in a pass of its own: one list per run, in the order of `launches`. */
  readonly launchMs: readonly (readonly number[])[];
  /** Times of the whole part in one pass: one per run. */
  readonly passMs: readonly number[];
}

export interface RoundSamples {
  /** The parts that have dispatches. */
  readonly parts: readonly PartSamples[];
  /** Times from the begin of the first part to the end of the last, with one pass per part. */
  readonly roundMs: readonly number[];
}

/** Rounds between two rewinds to the prompt, of each kind: dispatch by dispatch, and whole. */
export const ROUNDS_A_CYCLE = 4;

/** Cells that a sequence needs beyond its prompt: a cycle, and the round before it. */
export function profileRoom(numSteps: number): number {
  return (2 * ROUNDS_A_CYCLE + 2) * (numSteps + 1);
}

/** The context length to ask for where the default does not hold `cells`. */
export function longContext(cells: number): { readonly contextLength?: number } {
  return cells > DEFAULT_CONTEXT ? { contextLength: cells } : {};
}

/** What is profiled: sequences that have stored `ids` (`fillSequences`). */
export interface ProfileRequest {
  readonly sequences: readonly Sequence[];
  readonly ids: readonly number[];
  readonly numSteps: number;
  /** Rewinds to the prompt; each is followed by ROUNDS_A_CYCLE measured rounds. */
  readonly cycles: number;
  /** When it aborts, the measurement is rejected with its reason. */
  readonly signal?: AbortSignal;
}

export interface PrefillRequest {
  /** Has pages for `ids`, which are its prompt then. */
  readonly sequence: Sequence;
  readonly ids: readonly number[];
  readonly times: number;
  /** As of a `ProfileRequest`. */
  readonly signal?: AbortSignal;
}

/** Measures what an engine runs, on the device's clock. */
export interface CoreProfiler extends Disposable {
  /**
   * Times rounds that the device runs one after the other by itself. After a few, the prompt's last token is run again,
   * so that the context does not grow. Clocks are warmed before.
   */
  rounds(asked: ProfileRequest): Promise<RoundSamples>;
  prefill(asked: PrefillRequest): Promise<PartSamples>;
  /**
   * 10^9 bytes a second that a plain read of a large buffer reaches on warm clocks; the median.
   * Undefined on a software adapter, where loads cost instructions before they cost memory.
   */
  readBandwidth(): Promise<number | undefined>;
}

/** @throws UsageError where the adapter has no timestamp queries. */
export async function openCoreProfiler(runner: Runner): Promise<CoreProfiler> {
  const profiler = await openProfiler(runner.gpu);
  return {
    rounds: (asked) => profileRounds(runner, profiler, asked),
    prefill: (asked) => profilePrefill(runner, profiler, asked),
    readBandwidth: async () =>
      runner.gpu.info.software ? undefined : await readBandwidth(runner.gpu, profiler),
    [Symbol.dispose]: () => profiler[Symbol.dispose](),
  };
}

/**
 * Makes `ids` the prompt of new sequences, and stores it unless cells hold something already (`fillCells`): then
 * `ids` count as stored. False when the pages do not suffice.
 */
export async function fillSequences(
  runner: Runner,
  sequences: readonly Sequence[],
  ids: readonly number[],
  { numSteps, filled = false }: { readonly numSteps: number; readonly filled?: boolean },
): Promise<boolean> {
  for (const sequence of sequences) {
    if (!runner.reserve(sequence, ids.length + profileRoom(numSteps))) return false;
    runner.setSampling(sequence, GREEDY);
    if (filled) {
      sequence.ids.splice(0, Infinity, ...ids);
      sequence.stored = sequence.draftStored = ids.length;
    } else await prefillPrompt(runner, sequence, ids);
  }
  return true;
}

async function profileRounds(
  runner: Runner,
  profiler: Profiler,
  { sequences, ids, numSteps, cycles, signal }: ProfileRequest,
): Promise<RoundSamples> {
  const shape = chain(numSteps);
  const tier = { ...shape, batch: sequences.length, cells: maxCells(sequences) };
  const { draft, verify, extend } = await runner.programs.round(tier);
  const parts = Object.entries({ draft, verify, extend } as const)
    .filter(([, { steps }]) => steps.length > 0)
    .map(([part, program]) => ({ part: part as PartSamples["part"], program }));
  const programs = parts.map(({ program }) => program);
  const runs: { launches: number[][]; passes: number[]; round: number }[] = [];
  let warmFrom: number | undefined;
  for (let cycle = 0; cycle < cycles;) {
    signal?.throwIfAborted();
    for (const each of sequences) await prefillPrompt(runner, each, ids, ids.length - 1);
    await runner.rounds(sequences, { shape, count: 1 }); // sets the batch
    const warm = warmFrom !== undefined && performance.now() - warmFrom >= warmMs(runner.gpu.info);
    for (let i = 0; i < ROUNDS_A_CYCLE; i++) {
      const launches = await timeApart(profiler, programs);
      const spans = await profiler.time(programs);
      const round = (spans.at(-1)?.end ?? 0) - (spans[0]?.begin ?? 0);
      if (warm) runs.push({ launches, passes: spans.map(length), round });
    }
    warmFrom ??= performance.now(); // not the first cycle: adapters compile in it
    if (warm) cycle++;
  }
  const context = { cells: sequences.length * ids.length, seen: ids.length };
  return {
    parts: parts.map(({ part, program }, i) => ({
      part,
      launches: program.steps.map((step) => launchOf(step, context)),
      launchMs: runs.map(({ launches }) => launches[i] ?? []),
      passMs: runs.map(({ passes }) => passes[i] ?? 0),
    })),
    roundMs: runs.map(({ round }) => round),
  };
}

async function profilePrefill(
  runner: Runner,
  profiler: Profiler,
  { sequence, ids, times, signal }: PrefillRequest,
): Promise<PartSamples> {
  sequence.ids.splice(0, Infinity, ...ids);
  rewind(sequence, 0);
  const launches: Launch[] = [];
  const launchMs: number[][] = Array.from({ length: times }, () => []);
  const passMs: number[] = Array(times).fill(0);
  const turn = yieldToEventLoop();
  for (const { from, to } of chunks(runner, ids)) {
    await runner.prefill([{ sequence, to }]); // writes the chunk's rows; it may run again then
    const chunk = await runner.programs.prompt({ rows: to - from, cells: maxCells([sequence]) });
    const { body, head, draft, draftHead } = chunk;
    const programs = to === ids.length ? [body, head, draft, draftHead] : [body, draft];
    const whole = { steps: programs.flatMap(({ steps }) => steps) };
    // Row i of the chunk sees from + i + 1 cells.
    const context = { cells: to, seen: from + (to - from + 1) / 2 };
    launches.push(...whole.steps.map((step) => launchOf(step, context)));
    for (let i = 0; i < times; i++) {
      await turn();
      signal?.throwIfAborted();
      launchMs[i]?.push(...(await timeApart(profiler, [whole])).flat());
      const [span] = await profiler.time([whole]);
      passMs[i] = (passMs[i] ?? 0) + (span ? length(span) : 0);
    }
  }
  return { part: "prefill", launches, launchMs, passMs };
}

/** Bytes read for the bandwidth: far more than caches hold. */
const READ_BYTES = 1 << 30;
const READ_GROUPS = 4096;
const READ_TIMES = 16;

async function readBandwidth(gpu: Gpu, profiler: Profiler): Promise<number> {
  const groups = READ_GROUPS;
  const size = Math.floor(Math.min(READ_BYTES, largestBinding(gpu.limits)) / 16) * 16;
  const words = storageBuffer(gpu, "bandwidth", size / 4);
  const out = storageBuffer(gpu, "bandwidth.sums", groups);
  try {
    const program = await compiler(gpu).compile([readWords({ words, out }, { groups })]);
    const read = async () => (await profiler.time(Array(READ_TIMES).fill(program))).map(length);
    await read();
    const start = performance.now();
    while (performance.now() - start < warmMs(gpu.info)) await read();
    return size / 1e6 / medianTime(await read());
  } finally {
    words.buffer.destroy();
    out.buffer.destroy();
  }
}

function chunks({ capacity }: Runner, ids: readonly number[]) {
  const { prefillRows } = capacity;
  return Array.from({ length: Math.ceil(ids.length / prefillRows) }, (_, i) => ({
    from: i * prefillRows,
    to: Math.min(ids.length, (i + 1) * prefillRows),
  }));
}

/** Milliseconds of each dispatch, a list a program. */
async function timeApart(profiler: Profiler, programs: readonly Program[]): Promise<number[][]> {
  const ms = (await profiler.time(programs.flatMap(apart))).map(length);
  return programs.map(({ steps }) => ms.splice(0, steps.length));
}

function length({ begin, end }: { readonly begin: number; readonly end: number }): number {
  return end - begin;
}

function launchOf({ label, kernel, work }: Step, context: Context): Launch {
  const said = work === undefined ? { bytes: undefined, flops: undefined } : workAt(work, context);
  return { label, kernel, ...said };
}

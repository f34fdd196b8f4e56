import { openSequence } from "../../engine/device/single_sequence.ts";
import type { LocalEngine } from "../../engine/open.ts";
import type { EngineOptions } from "../../engine/options.ts";
import { fillCells } from "../../engine/check/growth/random_cells.ts";
import {
  type CoreProfiler,
  fillSequences,
  longContext,
  openCoreProfiler,
  profileRoom,
  ROUNDS_A_CYCLE,
} from "../../engine/check/profile.ts";
import { UsageError } from "../../errors.ts";
import { randomIds } from "../workload/draw.ts";
import { median } from "../statistics.ts";
import { type ProfilePart, profilePart } from "./profile.ts";
import type { Subject } from "../runner.ts";
import { openMeasured, subjectOf } from "../bench_engine.ts";
import { chains, distinctTiers } from "../../speculate/round_shape.ts";

/** What a profile measures: rounds in all combinations, and a prefill for each depth. */
export interface ProfileRequest extends EngineOptions {
  readonly batchSizes: readonly number[];
  readonly numSteps: readonly number[];
  /** Tokens in the cache; 0 stands for 512, or for what fits. */
  readonly depths: readonly number[];
  /** The number of groups of rounds, and of runs of a prefill. */
  readonly repeat: number;
  readonly seed: number;
  /** 10^9 bytes per second; measured if absent. */
  readonly bandwidth?: number;
}

/** The profile of the rounds of one setting, or of a prefill. */
export interface ProfileTable {
  readonly kind: "round" | "prefill";
  readonly batch: number;
  /** Undefined for a prefill. */
  readonly numSteps: number | undefined;
  /** Tokens in the cache, or of the prompt. */
  readonly context: number;
  /** The number of rounds or prefills that were measured. */
  readonly runs: number;
  /** Median device time in milliseconds, with one pass for each part. */
  readonly wholeMs: number;
  readonly parts: readonly ProfilePart[];
}

/** An engine opened for profiling. */
export interface ProfileSession extends Disposable {
  readonly subject: Subject;
  /** 10^9 bytes per second; undefined if it was not given and cannot be measured. */
  readonly bandwidth: number | undefined;
  /** Measures one table after the other. @throws the reason of the signal when it aborts, within a table. */
  tables(signal: AbortSignal): AsyncGenerator<ProfileTable>;
}

/** Opens a profile session. */
export type OpenProfile = (request: ProfileRequest) => Promise<ProfileSession>;

const DEFAULT_DEPTH = 512;
/**
 * The longest prefill that is measured `repeat` times. Longer ones, which have many equal chunks, are measured fewer
 * times.
 */
const REPEATED_TOKENS = 2048;

/** Opens model, device and profiler. @throws UsageError if the adapter has no timestamp queries. */
export async function openProfile(request: ProfileRequest): Promise<ProfileSession> {
  using stack = new DisposableStack();
  const { batchSizes, numSteps, depths } = request;
  const maxBatch = Math.max(...batchSizes);
  const room = profileRoom(Math.max(...numSteps));
  const cells = Math.max(...depths.map((depth) => depth || DEFAULT_DEPTH)) + room;
  const engine = stack.use(
    await openMeasured(request, {
      tiers: distinctTiers(chains(numSteps)),
      limits: {
        maxBatch,
        maxKvTokens: maxBatch * Math.ceil(cells / 16) * 16,
        ...longContext(cells),
      },
    }),
  );
  if (depths.some((depth) => depth + room > engine.info.contextLength)) {
    throw new UsageError(
      `Cannot profile --depth ${
        Math.max(...depths)
      }: the context holds ${engine.info.contextLength} tokens, ` +
        `and ${room} of them are needed for the rounds`,
    );
  }
  const profiler = stack.use(await openCoreProfiler(engine.runner));
  if (request.model?.random) await fillCells(engine.runner);
  const bandwidth = request.bandwidth ?? await profiler.readBandwidth();
  const owned = stack.move();
  return {
    subject: subjectOf(engine, request),
    bandwidth,
    tables: (signal) =>
      tables({ engine, profiler, request: { ...request, bandwidth }, signal }, room),
    [Symbol.dispose]: () => owned.dispose(),
  };
}

async function* tables(
  from: Measured & { readonly request: Omit<ProfileRequest, "bandwidth"> },
  room: number,
): AsyncGenerator<ProfileTable> {
  const { engine, request: { batchSizes, numSteps, depths, seed } } = from;
  const { vocabSize: vocabulary } = engine.outputs;
  for (const depth of new Set(depths)) {
    const context = depth || Math.max(1, Math.min(DEFAULT_DEPTH, engine.info.contextLength - room));
    const ids = randomIds(context, { vocabulary, seed });
    for (const batch of new Set(batchSizes)) {
      for (const steps of new Set(numSteps)) yield await roundTable(from, { batch, steps, ids });
    }
    yield await prefillTable(from, ids);
  }
}

interface Measured {
  readonly engine: LocalEngine;
  readonly profiler: CoreProfiler;
  readonly request: Pick<EngineOptions, "model"> & {
    readonly repeat: number;
    readonly bandwidth: number | undefined;
  };
  readonly signal: AbortSignal;
}

/**
 * Takes the KV cells as they are instead of prefilling them if the weights are random: a prompt's keys and values would
 * then be no more realistic.
 */
function filledOf({ model }: Measured["request"]): boolean {
  return model?.random !== undefined;
}

async function roundTable(
  { engine, profiler, request, signal }: Measured,
  { batch, steps: numSteps, ids }: {
    readonly batch: number;
    readonly steps: number;
    readonly ids: readonly number[];
  },
): Promise<ProfileTable> {
  using stack = new DisposableStack();
  const { runner } = engine;
  const { bandwidth, repeat: cycles } = request;
  const sequences = Array.from({ length: batch }, () => stack.use(openSequence(runner)));
  if (!await fillSequences(runner, sequences, ids, { numSteps, filled: filledOf(request) })) {
    throw new UsageError(`Cannot fill --depth ${ids.length}: the KV cache has no room for them`);
  }
  const { parts, roundMs } = await profiler.rounds({ sequences, ids, numSteps, cycles, signal });
  return {
    kind: "round",
    batch,
    numSteps,
    context: ids.length,
    runs: cycles * ROUNDS_A_CYCLE,
    wholeMs: median(roundMs),
    parts: parts.map((part) => profilePart(part, bandwidth)),
  };
}

/** The profile of a prefill. It is measured after the rounds, when the clocks of the GPU are up. */
async function prefillTable(
  { engine, profiler, request, signal }: Measured,
  ids: readonly number[],
): Promise<ProfileTable> {
  const { bandwidth, repeat } = request;
  const times = Math.max(1, Math.min(repeat, Math.floor(repeat * REPEATED_TOKENS / ids.length)));
  using sequence = openSequence(engine.runner);
  await fillSequences(engine.runner, [sequence], ids, { numSteps: 0, filled: filledOf(request) });
  const samples = await profiler.prefill({ sequence, ids, times, signal });
  const part = profilePart(samples, bandwidth);
  return {
    kind: "prefill",
    batch: 1,
    numSteps: undefined,
    context: ids.length,
    runs: times,
    wholeMs: part.passMs,
    parts: [part],
  };
}

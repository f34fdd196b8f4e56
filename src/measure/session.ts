import { createHash } from "node:crypto";
import { type GenerateRequest, type GenerateResult, resultOf } from "../engine/schedule/events.ts";
import type { EngineLoop } from "../engine/schedule/loop.ts";
import type { LocalEngine } from "../engine/open.ts";
import type { PrefillSample } from "../engine/schedule/prefill.ts";
import { UsageError } from "../errors.ts";
import type { SpeculationPlan } from "../engine/schedule/speculation.ts";
import { namedPlan, staticPlan } from "../engine/schedule/speculation_choice.ts";
import { chain, distinctTiers, type DraftShape } from "../speculate/round_shape.ts";
import { GREEDY } from "../speculate/sampling.ts";
import { caseText } from "./plan.ts";
import { randomIds } from "./workload/draw.ts";
import { prefillsOf } from "./prefills.ts";
import { costsTokens, sweepTokens } from "./sizes.ts";
import { sum } from "./statistics.ts";
import { requestTimes } from "./request_times.ts";
import { openCellScheduler } from "./cell_scheduler.ts";
import { idsOf, openMeasured, type Prepared, subjectOf } from "./bench_engine.ts";
import type {
  BenchRequest,
  BenchSession,
  Case,
  CellResult,
  CellSpec,
  RequestSample,
  RoundSample,
  Setting,
} from "./runner.ts";
import type { Prompt } from "./workload/prompt.ts";
import { workloadOf } from "./workload/workload.ts";

/** Tokens of the longest context that is opened by default, with the tokens that rounds write after it. */
const MAX_TOKENS = 8192 + 512;

/** Opens model and device for a whole sweep, with every tier compiled at every batch size. */
export async function openBench(request: BenchRequest): Promise<BenchSession> {
  const { cases, settings, workload } = request;
  const maxBatch = Math.max(...cases.map(({ batch }) => batch));
  const plans = settings.map((setting) => planOf(setting, { maxBatch, seed: 0 }));
  const tiers = distinctTiers([chain(0), ...plans.flatMap(({ tiers }) => tiers)]);
  const asked = Math.min(sweepTokens(request, tiers), maxBatch * MAX_TOKENS);
  // The cost measurement that some policies need before they run may need a larger cache than the cells.
  const maxKvTokens = Math.max(asked, plans.some(({ costs }) => costs) ? costsTokens(maxBatch) : 0);
  const engine = await openMeasured(request, {
    tiers,
    plans,
    limits: { maxBatch, maxKvTokens },
    profile: true,
  });
  const { onWarning = () => {} } = request.hooks ?? {};
  try {
    refuseTooLong(cases, engine.info.contextLength);
  } catch (error) {
    engine[Symbol.dispose]();
    throw error;
  }
  return {
    subject: subjectOf(engine, request),
    size: engine.info.weights.target,
    costs: engine.costs.table,
    runCell: (spec, signal) => {
      const own = workloadOf(spec, workload);
      return runCell(engine, { spec, workload: own, signal, onWarning });
    },
    [Symbol.dispose]: () => engine[Symbol.dispose](),
  };
}

/** @throws UsageError for a case that the context does not hold, before the others are measured. */
function refuseTooLong(cases: readonly Case[], contextLength: number): void {
  const tooLong = cases.find(({ depth, promptTokens, outputTokens }) =>
    // How long a text is that is no random prompt is known when it is measured.
    depth + (promptTokens === undefined ? 1 : promptTokens + outputTokens) > contextLength
  );
  if (tooLong === undefined) return;
  throw new UsageError(
    `Cannot measure ${caseText(tooLong)}: the context holds ${contextLength} tokens`,
  );
}

/** The speculation plan of a setting. */
function planOf(
  setting: Setting,
  { maxBatch, seed, onWarning = () => {} }: {
    readonly maxBatch: number;
    readonly seed: number;
    readonly onWarning?: (line: string) => void;
  },
): Prepared & Pick<SpeculationPlan, "tiers" | "speculation"> {
  switch (setting.kind) {
    case "policy":
      return namedPlan({ seed, ...setting.policy }, { maxBatch, onWarning });
    default:
      return staticPlan(fixedTier(setting));
  }
}

function fixedTier(setting: Extract<Setting, { kind: "plain" | "static" | "tree" }>): DraftShape {
  if (setting.kind === "tree") return setting.tier;
  return chain(setting.kind === "static" ? setting.numSteps : 0);
}

interface Cell {
  readonly spec: CellSpec;
  readonly workload: BenchRequest["workload"];
  readonly signal: AbortSignal;
  readonly onWarning: (line: string) => void;
}

/** Runs the requests of a cell, `spec.batch` at a time. */
async function runCell(
  engine: LocalEngine,
  { spec, workload, signal, onWarning }: Cell,
): Promise<CellResult> {
  const rounds: RoundSample[] = [];
  const chunks: PrefillSample[] = [];
  const { seed, setting } = spec;
  const maxBatch = engine.runner.capacity.batch;
  const { speculation } = planOf(setting, { maxBatch, seed, onWarning });
  let start = 0;
  using scheduler = openCellScheduler(engine, {
    speculation,
    roundsPerSync: spec.roundsPerSync,
    onPrefill: (chunk) => void chunks.push(chunk),
    onRound: ({ at, ...round }) => {
      const { draftMs, verifyMs, extendMs, ms } = round;
      const hostMs = Math.max(0, ms - draftMs - verifyMs - extendMs);
      const tMs = at - ms - start;
      rounds.push({ ...round, hostMs, tMs });
    },
  });
  const { loop } = scheduler;
  const contexts = contextsOf(engine, spec);
  for (const ids of contexts) await cacheContext(loop, ids);
  chunks.length = 0;
  start = performance.now();
  const samples = await runRequests({ engine, loop, spec, workload, contexts, signal });
  const seconds = (performance.now() - start) / 1000;
  const { switches, switch_count: switchCount, tier_ms } = speculation.report;
  const total = sum(Object.values(tier_ms));
  return {
    tokens: sum(samples.map(({ tokens }) => tokens)),
    seconds,
    rounds,
    prefills: prefillsOf(chunks),
    requests: samples.map(({ sample }) => sample),
    switches: switches.map(({ round, from, to, reason }) => ({ round, from, to, reason })),
    switchCount,
    tierShare: Object.fromEntries(
      Object.entries(tier_ms).map(([steps, ms]) => [steps, total > 0 ? ms / total : 0]),
    ),
  };
}

/**
 * The contexts before the prompts (`--depth`). Each slot of the batch has another one, so that concurrent requests
 * share no pages.
 */
function contextsOf(engine: LocalEngine, { batch, depth, seed }: CellSpec): readonly number[][] {
  const { vocabSize: vocabulary } = engine.outputs;
  return Array.from(
    { length: depth === 0 ? 0 : batch },
    (_, place) => randomIds(depth, { vocabulary, seed: (seed + place) >>> 0 }),
  );
}

/** Prefills the context, so that it is in the prefix cache when the measured time begins. */
async function cacheContext({ submit }: EngineLoop, promptIds: readonly number[]): Promise<void> {
  const request = { promptIds, sampling: GREEDY, stop: [], ignoreEos: true, numSteps: 0 };
  await resultOf(submit({ ...request, maxTokens: 1 }));
}

interface Work {
  readonly at: number;
  readonly context: readonly number[];
  readonly promptIds: readonly number[];
  /** The prompt, with the chat so far if further turns follow. */
  readonly prompt: Prompt;
}

interface Done {
  readonly at: number;
  readonly tokens: number;
  readonly sample: RequestSample;
}

/** Each slot of the batch takes the next prompt when its request has ended. */
async function runRequests(
  { engine, loop, spec, workload, contexts, signal }: {
    readonly engine: LocalEngine;
    readonly loop: EngineLoop;
    readonly spec: CellSpec;
    readonly workload: BenchRequest["workload"];
    readonly contexts: readonly (readonly number[])[];
    readonly signal: AbortSignal;
  },
): Promise<Done[]> {
  const waiting = workload.prompts({ batch: spec.batch, seed: spec.seed })
    .map((prompt, at): Work => {
      const context = contexts[at % contexts.length] ?? [];
      return {
        at,
        context,
        prompt,
        promptIds: [...context, ...idsOf(engine, prompt, spec.promptTokens ?? 1)],
      };
    });
  const failed = new AbortController();
  const ends = AbortSignal.any([signal, failed.signal]);
  const done: Done[] = [];

  /**
   * Runs one request after the other. The next is submitted while the step in which one ends hands out
   * its events: it takes part in the next round.
   */
  function place(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const run = (work: Work | undefined) => {
      if (work === undefined || ends.aborted) return resolve();
      const request = { ...requestOf(work, spec, workload), signal: ends };
      runRequest(loop, request, (sample, result) => {
        done.push({ at: work.at, tokens: result.outputIds.length, sample });
        run(followUp(engine, work, result.text) ?? waiting.shift());
      }, reject);
    };
    run(waiting.shift());
    return promise;
  }

  const places = Array.from({ length: spec.batch }, place);
  try {
    await Promise.all(places);
  } finally {
    failed.abort();
    await Promise.allSettled(places);
  }
  // In the order of the prompts, which is not the order in which they ended.
  return done.toSorted((a, b) => a.at - b.at);
}

function requestOf(
  { at, promptIds }: Work,
  { temperature, seed, outputTokens }: CellSpec,
  { ignoreEos }: BenchRequest["workload"],
): GenerateRequest {
  return {
    promptIds,
    sampling: { ...GREEDY, temperature, seed: (seed + at) >>> 0 },
    maxTokens: outputTokens,
    stop: [],
    ignoreEos,
  };
}

/** Calls `onEnd` as the request ends, `onError` where it fails or where `onEnd` throws. */
function runRequest(
  { submit }: EngineLoop,
  request: GenerateRequest,
  onEnd: (sample: RequestSample, result: GenerateResult) => void,
  onError: (error: unknown) => void,
): void {
  const began = performance.now();
  const times: { readonly at: number; readonly count: number }[] = [];
  submit(request).listen((event) => {
    if (event.kind === "round") times.push({ at: performance.now(), count: event.ids.length });
    if (event.kind === "error") onError(event.error);
    if (event.kind !== "finish") return;
    const { timing, promptIds, outputIds, cachedTokens } = event.result;
    const sample = {
      ...requestSample(began, times, outputIds),
      prompt: { tokens: promptIds.length - cachedTokens, ms: timing.prefillMs },
      answer: { tokens: outputIds.length, ms: timing.decodeMs },
    };
    try {
      onEnd(sample, event.result);
    } catch (error) {
      onError(error);
    }
  });
}

/** The next turn of a chat, after the answer to the one before. */
function followUp(
  engine: LocalEngine,
  { at, context, prompt }: Work,
  answer: string,
): Work | undefined {
  if (prompt.kind !== "chat") return undefined;
  const [content, ...followUps] = prompt.followUps;
  if (content === undefined) return undefined;
  const messages = [
    ...prompt.messages,
    { role: "assistant" as const, content: answer },
    { role: "user" as const, content },
  ];
  const turn = { ...prompt, messages, followUps };
  const promptIds = [...context, ...engine.text.encodePrompt({ messages })];
  return { at, context, prompt: turn, promptIds };
}

function requestSample(
  began: number,
  times: readonly { readonly at: number; readonly count: number }[],
  outputIds: readonly number[],
): Omit<RequestSample, "prompt" | "answer"> {
  const { ttft, tpot, itl } = requestTimes({
    dueMs: began,
    received: times.map(({ at, count }) => ({ atMs: at, tokens: count })),
    endMs: times.at(-1)?.at ?? began,
    outputTokens: outputIds.length,
  });
  return {
    ttftMs: ttft,
    tpotMs: tpot,
    itlMs: itl,
    outputHash: createHash("sha256").update(outputIds.join()).digest("hex").slice(0, 16),
  };
}

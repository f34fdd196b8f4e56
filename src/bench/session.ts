import { createHash } from "node:crypto";
import { batchBuckets } from "../engine/programs.ts";
import type { Slot } from "../engine/slot.ts";
import type { Engine } from "../engine/open.ts";
import { presetConfig } from "../engine/presets.ts";
import { openScheduler, type Scheduler } from "../engine/scheduler.ts";
import { adaptively, asAsked, type Speculation } from "../engine/speculation.ts";
import { UsageError } from "../errors.ts";
import { unionSteps } from "../speculate/adaptive_config.ts";
import { adaptive } from "../speculate/policies/adaptive.ts";
import { GREEDY } from "../speculate/sampling.ts";
import { randomIds } from "./draw.ts";
import { openMeasured, subjectOf } from "./subject.ts";
import type {
  BenchRequest,
  BenchSession,
  CellResult,
  CellSpec,
  RequestSample,
  RoundSample,
  Setting,
} from "./runner.ts";
import type { Prompt } from "./workload.ts";

/** Opens model and device once for a whole sweep, with every tier at every batch size built. */
export async function openBench(request: BenchRequest): Promise<BenchSession> {
  const { cases, settings, workload } = request;
  const steps = [...new Set([0, ...settings.flatMap(stepsOf)])].toSorted((a, b) => a - b);
  const maxBatch = Math.max(...cases.map(({ batch }) => batch));
  const engine = await openMeasured(request, { steps, maxBatch, profile: true });
  await engine.core.warmUp(steps);
  return {
    subject: subjectOf(engine, request),
    runCell: (spec, signal) => runCell(engine, { spec, workload, signal }),
    [Symbol.dispose]: () => engine[Symbol.dispose](),
  };
}

function stepsOf(setting: Setting): readonly number[] {
  if (setting.kind === "plain") return [0];
  if (setting.kind === "static") return [setting.numSteps];
  return unionSteps(presetConfig(setting.name));
}

function speculationOf(setting: Setting, maxBatch: number): Speculation {
  if (setting.kind !== "preset") return asAsked(setting.kind === "static" ? setting.numSteps : 0);
  const config = presetConfig(setting.name);
  const union = unionSteps(config);
  const initialSteps = union[Math.floor(union.length / 2)] ?? 0;
  return adaptively(adaptive(config, { initialSteps, buckets: batchBuckets(maxBatch) }));
}

interface Cell {
  readonly spec: CellSpec;
  readonly workload: BenchRequest["workload"];
  readonly signal: AbortSignal;
}

/** Runs the requests of a cell, `spec.batch` at a time, each place with a slot of its own. */
async function runCell(engine: Engine, { spec, workload, signal }: Cell): Promise<CellResult> {
  using stack = new DisposableStack();
  const slots = Array.from({ length: spec.batch }, () => stack.use(engine.newSlot()));
  const filling = randomIds(spec.depth, { vocabulary: vocabularyOf(engine), seed: spec.seed });
  for (const slot of slots) await fill(engine, slot, filling);

  const rounds: RoundSample[] = [];
  const speculation = speculationOf(spec.setting, engine.core.capacity.batch);
  const start = performance.now();
  const scheduler = openScheduler({
    core: engine.core,
    outputs: engine.outputs,
    speculation,
    roundsPerSync: spec.roundsPerSync ?? "auto",
    onRound: ({ at, ...round }) => {
      const { draftMs, verifyMs, extendMs, ms } = round;
      const hostMs = Math.max(0, ms - draftMs - verifyMs - extendMs);
      const tMs = at - ms - start;
      rounds.push({ ...round, hostMs, tMs });
    },
  });
  const places = openPlaces(engine, scheduler, { spec, workload, slots, filling });
  while (!signal.aborted && places.next()) await scheduler.step();
  const seconds = (performance.now() - start) / 1000;
  if (signal.aborted) await places.cancel();
  const { switches, tier_ms } = speculation.report;
  const total = Object.values(tier_ms).reduce((sum, ms) => sum + ms, 0);
  return {
    tokens: places.tokens(),
    seconds,
    rounds,
    requests: places.samples(),
    switches: switches.map(({ round, from, to, reason }) => ({ round, from, to, reason })),
    tierShare: Object.fromEntries(
      Object.entries(tier_ms).map(([steps, ms]) => [steps, total > 0 ? ms / total : 0]),
    ),
  };
}

function vocabularyOf(engine: Engine): number {
  return engine.core.models.target.config.vocabSize;
}

/** Puts `ids` into the slot's cache. */
async function fill({ core }: Engine, slot: Slot, ids: readonly number[]): Promise<void> {
  if (!core.reserve(slot, ids.length)) {
    throw new UsageError(`Cannot fill --depth ${ids.length}: too few keys and values are kept`);
  }
  for (let from = 0; from < ids.length; from += core.capacity.prefillRows) {
    await core.prefill(slot, ids, from, Math.min(ids.length, from + core.capacity.prefillRows));
  }
}

interface Work {
  readonly at: number;
  readonly promptIds: readonly number[];
  /** The chat so far, where turns follow. */
  readonly prompt: Prompt;
}

/** The places of a batch: each takes the next prompt when its request has ended. */
function openPlaces(
  engine: Engine,
  scheduler: Scheduler,
  { spec, workload, slots, filling }: {
    readonly spec: CellSpec;
    readonly workload: BenchRequest["workload"];
    readonly slots: readonly Slot[];
    readonly filling: readonly number[];
  },
) {
  const prompts = workload.prompts({ batch: spec.batch, seed: spec.seed });
  const waiting: Work[] = prompts.map((prompt, at) => ({
    at,
    prompt,
    promptIds: [...filling, ...idsOf(engine, prompt, spec)],
  }));
  const samples: { readonly at: number; readonly sample: RequestSample }[] = [];
  const jobs: (ReturnType<Scheduler["submit"]> | undefined)[] = slots.map(() => undefined);
  const next: (Work | undefined)[] = slots.map(() => undefined);
  let tokens = 0;
  let failure: Error | undefined;

  function submit(place: number, work: Work): void {
    const began = performance.now();
    const times: { readonly at: number; readonly count: number }[] = [];
    jobs[place] = scheduler.submit({
      promptIds: work.promptIds,
      sampling: { ...GREEDY, temperature: spec.temperature, seed: (spec.seed + work.at) >>> 0 },
      maxTokens: spec.outputTokens,
      stop: [],
      ignoreEos: workload.ignoreEos,
    }, {
      slot: slots[place] as Slot,
      onEvent: (event) => {
        if (event.kind === "error") failure = event.error;
        if (event.kind === "round") times.push({ at: performance.now(), count: event.ids.length });
        if (event.kind !== "finish") return;
        const { outputIds, text } = event.result;
        tokens += outputIds.length;
        samples.push({ at: work.at, sample: requestSample(began, times, outputIds) });
        next[place] = followUp(engine, work, text, filling);
      },
    });
  }

  return {
    tokens: () => tokens,
    /** In the order of the prompts, which is not the order in which they ended. */
    samples: () => samples.toSorted((a, b) => a.at - b.at).map(({ sample }) => sample),
    /** Gives every idle place work; false when all is done. */
    next(): boolean {
      if (failure) throw failure;
      for (const [place] of slots.entries()) {
        if (jobs[place] && !jobs[place]?.done) continue;
        const work = next[place] ?? waiting.shift();
        next[place] = undefined;
        if (work) submit(place, work);
      }
      return jobs.some((job) => job && !job.done);
    },
    async cancel(): Promise<void> {
      for (const job of jobs) job?.cancel();
      await scheduler.step();
    },
  };
}

function idsOf(engine: Engine, prompt: Prompt, spec: CellSpec): readonly number[] {
  if (prompt.kind === "chat") return engine.encodePrompt({ messages: prompt.messages });
  if (prompt.kind === "text") return engine.encodePrompt({ raw: prompt.text });
  const vocabulary = vocabularyOf(engine);
  return randomIds(spec.promptTokens ?? 1, { vocabulary, seed: prompt.seed });
}

/** The next turn of a chat, after the answer to the one before. */
function followUp(
  engine: Engine,
  { at, prompt }: Work,
  answer: string,
  filling: readonly number[],
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
  return { at, prompt: turn, promptIds: [...filling, ...engine.encodePrompt({ messages })] };
}

function requestSample(
  began: number,
  times: readonly { readonly at: number; readonly count: number }[],
  outputIds: readonly number[],
): RequestSample {
  const first = times[0]?.at ?? began;
  const last = times.at(-1)?.at ?? first;
  // A round brings its tokens at once: the first waited for it, the others did not.
  const itlMs = times.slice(1).flatMap(({ at, count }, i) =>
    Array.from({ length: count }, (_, j) => j === 0 ? at - (times[i]?.at ?? at) : 0)
  );
  return {
    ttftMs: first - began,
    tpotMs: outputIds.length > 1 ? (last - first) / (outputIds.length - 1) : 0,
    itlMs,
    outputHash: createHash("sha256").update(outputIds.join()).digest("hex").slice(0, 16),
  };
}

import type { Clock } from "../../../src/measure/load/drive.ts";
import { loadArms, type LoadCellSpec, type LoadPlan } from "../../../src/measure/load/plan.ts";
import type { Answer, RequestSender } from "../../../src/measure/load/request.ts";
import type { LoadRow } from "../../../src/measure/load/row.ts";
import type { LoadCellResult, LoadRound, LoadSession } from "../../../src/measure/load/session.ts";
import { inPlanOrder } from "../../../src/measure/load/summary.ts";
import { measureLoad } from "../../../src/measure/load/sweep.ts";
import type { Subject } from "../../../src/measure/runner.ts";
import { openWorkload } from "../../../src/measure/workload/workload.ts";
import { policyOf } from "../../../src/cli/options/policy_option.ts";
import { hash32 } from "../../../src/speculate/noise.ts";
import { SUBJECT } from "../fake.ts";

/** A clock that stands still until `run` moves it on, from one sleeper's wake-up to the next. */
export interface FakeClock extends Clock {
  /** Moves time on until the promise is settled. */
  run<T>(promise: Promise<T>): Promise<T>;
}

export function fakeClock(): FakeClock {
  let now = 1000;
  let sleepers: { readonly at: number; readonly wake: () => void }[] = [];
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((wake) => {
        sleepers.push({ at: now + ms, wake });
        signal.addEventListener("abort", () => wake());
      }),
    async run(promise) {
      let settled = false;
      const done = () => void (settled = true);
      promise.then(done, done);
      for (let turns = 0; !settled; turns++) {
        if (turns > 100_000) throw new Error("nothing ends");
        await new Promise((resolve) => setTimeout(resolve, 0));
        const next = Math.min(...sleepers.map(({ at }) => at));
        if (settled || next === Infinity) continue;
        now = Math.max(now, next);
        const due = sleepers.filter(({ at }) => at <= now);
        sleepers = sleepers.filter(({ at }) => at > now);
        for (const { wake } of due) wake();
      }
      return await promise;
    },
  };
}

const NEVER = new AbortController().signal;

/** A sender with `places`. A request waits for a place, gets 1 token after `first` ms, then 2 every `pace` ms. */
export function fakeSender(
  clock: Clock,
  { places = Infinity, first = 10, pace = 5 }: {
    places?: number;
    first?: number;
    pace?: number;
  } = {},
): RequestSender & { readonly log: readonly string[] } {
  const log: string[] = [];
  const waiting: (() => void)[] = [];
  let busy = 0;
  let count = 0;
  return {
    log,
    prepare({ maxTokens, seed }) {
      const name = `${count++}`;
      return {
        async send(heard, signal): Promise<Answer> {
          log.push(`sent ${name}`);
          if (busy >= places) await new Promise<void>((resolve) => waiting.push(resolve));
          busy++;
          heard(0);
          let tokens = 0;
          while (tokens < maxTokens && !signal.aborted) {
            await clock.sleep(tokens === 0 ? first : pace, NEVER);
            const come = tokens === 0 ? 1 : Math.min(2, maxTokens - tokens);
            tokens += come;
            heard(come);
          }
          busy--;
          waiting.shift()?.();
          log.push(`ended ${name}`);
          const complete = !signal.aborted;
          return { promptTokens: 3, outputTokens: tokens, outputHash: `${seed}`, complete };
        },
      };
    },
  };
}

const TOKENS = 24;
const CHANCE = 0.7;

/** Milliseconds of a round. Verifying more rows costs more the larger the batch. */
function roundMs(batch: number, numSteps: number): number {
  return 4 + 0.5 * numSteps + 0.25 * batch * (numSteps + 1);
}

/**
 * A machine in numbers. Requests wait for one of its places, and all that have a place take part in every
 * round. Whether a draft is good depends only on the request and the position.
 */
export function fakeLoadCell(
  { one, arm, seed, block }: LoadCellSpec,
  { maxBatch = 4 }: { maxBatch?: number } = {},
): LoadCellResult {
  const arrivals = block < 0 ? [] : one.arrivals(seed);
  // No two measurements take the same time.
  const slow = 1 + hash32(seed, block, arm.label.length) / 2 ** 32 * 0.05;
  const states = arrivals.map(({ atMs, seed, outputTokens = TOKENS }) => ({
    dueMs: atMs,
    seed,
    outputTokens,
    runsMs: 0,
    tokens: 0,
    received: [] as { atMs: number; tokens: number }[],
  }));
  const waiting = [...states];
  let running: typeof states = [];
  const rounds: LoadRound[] = [];
  let now = 0;
  while (waiting.length + running.length > 0) {
    const places = Math.min(maxBatch, one.concurrency ?? Infinity);
    while (running.length < places && (waiting[0]?.dueMs ?? Infinity) <= now) {
      const state = waiting.shift() as typeof states[0];
      if (one.concurrency !== null) state.dueMs = now;
      state.runsMs = now;
      running.push(state);
    }
    if (running.length === 0) {
      now = waiting[0]?.dueMs ?? now;
      continue;
    }
    const numSteps = stepsOf(arm, running.length, rounds.length);
    const ms = roundMs(running.length, numSteps) * slow;
    now += ms;
    const accepted = running.map((state) => {
      let count = 0;
      while (
        count < Math.min(numSteps, state.outputTokens - state.tokens - 1) &&
        hash32(state.seed, state.tokens + count, 5) / 2 ** 32 < CHANCE
      ) count++;
      state.tokens += count + 1;
      state.received.push({ atMs: now, tokens: count + 1 });
      return count;
    });
    const batch = running.length;
    const requests = running.map((state) => states.indexOf(state));
    const drafts = running.map(() => numSteps);
    rounds.push({
      beganMs: now - ms,
      ms,
      numSteps,
      together: 1,
      batch,
      requests,
      drafts,
      accepted,
    });
    running = running.filter(({ tokens, outputTokens }) => tokens < outputTokens);
  }
  const switched = rounds.filter(({ numSteps }, i) =>
    i > 0 && rounds[i - 1]?.numSteps !== numSteps
  );
  return {
    requests: states.map(({ seed, dueMs, runsMs, received, tokens }) => ({
      dueMs,
      runsMs,
      received,
      endMs: received.at(-1)?.atMs ?? dueMs,
      promptTokens: 10,
      outputTokens: tokens,
      outputHash: `${seed}`,
      complete: true,
    })),
    failed: [],
    rounds,
    prefills: states.map(() => ({
      chunks: [{ from: 0, to: 10 }],
      rows: 10,
      ms: now / 4 / states.length,
    })),
    seconds: now / 1000,
    preemptions: 0,
    machine: { maxBatch, kvTokens: 4096, prefillRows: 64, roundsPerSync: 1, costs: null },
    switches: switched.length,
  };
}

function stepsOf({ policy }: LoadCellSpec["arm"], batch: number, round: number): number {
  const { num_steps } = policy.options as { num_steps?: number };
  if (policy.policy === "static") return num_steps ?? 3;
  return batch <= 2 ? 3 : round % 20 === 0 ? 1 : 0;
}

/** A session of the made-up machine. `cells` has the cells that it was asked to measure. */
export function fakeLoadSession(
  runCell: (spec: LoadCellSpec, signal: AbortSignal) => Promise<LoadCellResult | undefined> = (
    spec,
  ) => Promise.resolve(fakeLoadCell(spec)),
  subject: Subject = SUBJECT,
): LoadSession & { readonly cells: LoadCellSpec[]; readonly disposed: () => boolean } {
  const cells: LoadCellSpec[] = [];
  let disposed = false;
  return {
    subject,
    cells,
    check: () => {},
    disposed: () => disposed,
    async runCell(spec, { signal, onEnded }) {
      cells.push(spec);
      const result = await runCell(spec, signal);
      result?.requests.forEach((_, n) => onEnded(n + 1));
      return result;
    },
    [Symbol.dispose]() {
      disposed = true;
    },
  };
}

export function planOf(
  plan: Pick<LoadPlan, "cases"> & Partial<LoadPlan>,
  policies: readonly string[] = [
    "static:num_steps=0",
    "static:num_steps=3",
    "ema:candidate_steps=1/3",
  ],
): LoadPlan {
  const workload = openWorkload("fledgling:all", () => "");
  return {
    arms: loadArms(policies.map((label) => ({ label, policy: policyOf(label) }))),
    work: { workload, promptTokens: 8, maxTokens: TOKENS },
    blocks: 3,
    warmup: 1,
    seed: 1,
    ...plan,
  };
}

/** Rows of a run on the made-up machine, in the order of the plan. */
export async function sampleLoadRows(plan: LoadPlan): Promise<LoadRow[]> {
  const rows: LoadRow[] = [];
  await measureLoad(plan, fakeLoadSession(), {
    maxBatch: 4,
    slo: { ttftMs: 100 },
    now: () => new Date(0),
    signal: NEVER,
    onEvent: (event) => void (event.kind === "row" && rows.push(event.row)),
  });
  return inPlanOrder(rows, plan.arms);
}

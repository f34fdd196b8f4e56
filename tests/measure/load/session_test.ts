import { deepEqual, equal, ok, rejects, throws } from "node:assert/strict";
// A timer of 0 ms would wait for 1 ms.
import { setImmediate } from "node:timers/promises";
import { closedCase, type LoadPlan, rateCase } from "../../../src/measure/load/plan.ts";
import { requestsOf } from "../../../src/measure/load/request.ts";
import {
  type LoadCellResult,
  type LoadSession,
  loadSession,
  openLoad,
} from "../../../src/measure/load/session.ts";
import { UsageError } from "../../../src/errors.ts";
import { chain, chains } from "../../../src/speculate/round_shape.ts";
import { FAKE_EOS, type FakeRunner, fakeRunner, VOCAB } from "../../engine/fake_runner.ts";
import { planOf } from "./fake.ts";

const NEVER = new AbortController().signal;
const POLICIES = ["static:num_steps=0", "static:num_steps=3", "ema:candidate_steps=1/3"];

/** Measurements on a runner without a device. */
function fakeEngineSession(
  plan: LoadPlan,
  { pages = 60 } = {},
): { readonly runner: FakeRunner; readonly session: ReturnType<typeof loadSession> } {
  const runner = fakeRunner({
    batch: 3,
    shapes: chains([0, 1, 3]),
    prefillRows: 16,
    contextLength: 128,
    pages,
  });
  const outputs = {
    tokenizer: {
      vocabSize: VOCAB,
      bosToken: undefined,
      eosToken: undefined,
      idOf: () => undefined,
      encode: () => [],
      decode: (ids: readonly number[]) => ids.join(" "),
      isSkipped: () => false,
    },
    name: "fake",
    eosTokenIds: [FAKE_EOS],
    vocabSize: VOCAB,
    algorithm: "EAGLE3",
    contextLength: 128,
    tier: chain(3),
  } as const;
  // Ids that the fake runner does not treat as poison.
  const encodePrompt = ({ messages = [] }: { messages?: readonly { content: string }[] }) =>
    [...messages[0]?.content ?? "x"].slice(0, 40).map((letter) => 2 + letter.charCodeAt(0) % 90);
  const costs = { table: undefined, refine: () => {} };
  const engine = {
    runner,
    outputs,
    costs,
    text: { encodePrompt },
    chunkRows: 16,
  } as const;
  const session = loadSession(engine as unknown as Parameters<typeof loadSession>[0], {
    plan,
    maxBatch: 3,
    roundsPerSync: 1,
  });
  return { runner, session };
}

async function runAll(
  session: Pick<LoadSession, "runCell">,
  plan: LoadPlan,
): Promise<LoadCellResult[]> {
  const results: LoadCellResult[] = [];
  for (const one of plan.cases) {
    for (const arm of plan.arms) {
      const spec = { one, arm, block: 0, seed: 11 };
      const ended: number[] = [];
      const onEnded = (count: number) => void ended.push(count);
      const result = await session.runCell(spec, { signal: NEVER, onEnded });
      ok(result);
      deepEqual(ended, result.requests.map((_, n) => n + 1));
      results.push(result);
    }
  }
  return results;
}

function checkResult({ requests, rounds, seconds }: LoadCellResult): void {
  for (const { dueMs, runsMs, endMs, received, outputTokens, complete } of requests) {
    ok(complete && dueMs <= runsMs && runsMs <= endMs && endMs <= seconds * 1000 + 1);
    equal(received.reduce((sum, { tokens }) => sum + tokens, 0), outputTokens);
    ok(received.every(({ atMs }, n) => n === 0 || atMs >= (received[n - 1]?.atMs ?? 0)));
  }
  // The first token of each answer comes from the prefill, not from a round.
  const brought = rounds.flatMap(({ accepted }) => accepted).reduce((sum, n) => sum + n + 1, 0);
  const tokens = requests.reduce((sum, { outputTokens }) => sum + outputTokens - 1, 0);
  // The last round of an answer may bring more tokens than the answer may have.
  ok(brought >= tokens && brought <= tokens + 3 * requests.length, `${brought} of ${tokens}`);
}

Deno.test("many loads on a runner without a device: every request once, the same texts for all", async () => {
  const cases = [
    rateCase(300, 0.3, { requests: 40 }),
    rateCase(100_000, 1, { requests: 25 }),
    closedCase(1, 9),
    closedCase(7, 30),
  ];
  const plan = planOf({ cases, warmup: 4 }, POLICIES);
  const { runner, session } = fakeEngineSession(plan);
  runner.onWork = () => setImmediate();
  const results = await runAll(session, plan);
  for (const of of Map.groupBy(results, (_, i) => Math.floor(i / plan.arms.length)).values()) {
    const hashes = of.map(({ requests }) => requests.map(({ outputHash }) => outputHash));
    for (const each of hashes) deepEqual(each, hashes[0]);
    for (const result of of) checkResult(result);
  }
  const sizes = results.map(({ requests }) => requests.length);
  deepEqual(new Set(sizes), new Set([40, 25, 9, 30]));
  equal(runner.pool.free, runner.pool.total, "all pages are back");
  const most = (result?: LoadCellResult) =>
    Math.max(...result?.rounds.map(({ batch }) => batch) ?? []);
  deepEqual([most(results[4]), most(results[8]), most(results[12])], [3, 1, 3]);
});

Deno.test("short pages: requests are preempted, resumed and counted; texts stay the same", async () => {
  const cases = [rateCase(100_000, 1, { requests: 12 })];
  const plan = planOf({ cases, warmup: 0, work: { ...planOf({ cases }).work, outputTokens: 60 } });
  const { session } = fakeEngineSession(plan, { pages: 10 });
  const results = await runAll(session, plan);
  ok(results.some(({ preemptions }) => preemptions > 0));
  const whole = await runAll(fakeEngineSession(plan).session, plan);
  const hashes = (of: LoadCellResult[]) =>
    of.map(({ requests }) => requests.map(({ outputHash }) => outputHash));
  deepEqual(hashes(results), hashes(whole));
  deepEqual(
    results.map(({ requests }) => requests.map(({ outputTokens }) => outputTokens)).flat()
      .filter((count) => count !== 60),
    [],
  );
});

Deno.test("the signal ends a measurement, and the next one finds the engine free", async () => {
  const cases = [rateCase(1000, 1, { requests: 20 })];
  const plan = planOf({ cases, warmup: 0 });
  const { runner, session } = fakeEngineSession(plan);
  const stop = new AbortController();
  const [arm] = plan.arms;
  const spec = { one: cases[0], arm, block: 0, seed: 1 } as Parameters<typeof session.runCell>[0];
  const onEnded = () => stop.abort();
  equal(await session.runCell(spec, { signal: stop.signal, onEnded }), undefined);
  equal(runner.pool.free, runner.pool.total);
  const result = await session.runCell(spec, { signal: NEVER, onEnded });
  equal(result?.requests.length, 20);
});

Deno.test("a request that the context cannot hold is refused before anything is sent", () => {
  const cases = [closedCase(1, 3)];
  const base = planOf({ cases });
  const work = { ...base.work, outputTokens: 120 };
  const { session } = fakeEngineSession({ ...base, work });
  const requests = requestsOf(closedCase(1, 3).arrivals(1), work, 1);
  throws(
    () => session.check(requests),
    (error) =>
      error instanceof UsageError &&
      /^Cannot measure a request of \d+ prompt and 120 output tokens: the context of "fake" holds 128; /
        .test(error.message),
  );
  session.check(requestsOf(closedCase(1, 3).arrivals(1), base.work, 1));
});

Deno.test("the embedded model under a load: policies have one text and what they saw adds up", async () => {
  const cases = [rateCase(40, 1, { requests: 5 })];
  const plan = planOf({ cases, warmup: 1, work: { ...planOf({ cases }).work, maxTokens: 12 } }, [
    ...["static:num_steps=0", "ema:candidate_steps=1/2"],
  ]);
  using session = await openLoad({ plan, limits: { maxBatch: 2 } });
  equal(session.subject.simulated, false);
  const results = await runAll(session, plan);
  for (const result of results) checkResult(result);
  const hashes = results.map(({ requests }) => requests.map(({ outputHash }) => outputHash));
  deepEqual(hashes, hashes.map(() => hashes[0]));
  ok(results[2]?.rounds.some(({ accepted }) => accepted.some((count) => count > 0)));
});

Deno.test("drafting without a draft cannot be measured", async () => {
  const plan = planOf({ cases: [closedCase(1, 1)] });
  await rejects(openLoad({ plan, model: { draft: "none" }, limits: { maxBatch: 1 } }), UsageError);
});

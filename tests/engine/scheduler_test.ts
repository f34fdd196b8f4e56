import assert from "node:assert/strict";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import type { RoundSample } from "../../src/engine/schedule/rounds/round_sample.ts";
import type { Speculation } from "../../src/engine/schedule/speculation.ts";
import { staticPlan } from "../../src/engine/schedule/speculation_choice.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import { assertNothingHeld } from "./held.ts";
import { exhaustive } from "../exhaustive.ts";

/** Request n of a mixed load: lengths, sampling, stops and limits all differ. */
function mixed(engine: LocalEngine, n: number): GenerateRequest {
  const content = generatedPrompt(n);
  const sampled = { ...GREEDY, temperature: 0.5 + n % 3 * 0.4, seed: n, topK: n % 2 ? 0 : 40 };
  return {
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    sampling: n % 3 === 1 ? sampled : GREEDY,
    maxTokens: [3, 40, 17, 64, 9][n % 5] ?? 1,
    stop: n % 7 === 3 ? [", 1", " the "] : [],
    ignoreEos: n % 11 === 5,
    numSteps: 3,
  };
}

/** Runs the requests together; each begins once the one before has had `every` rounds. */
async function together(
  engine: LocalEngine,
  requests: readonly GenerateRequest[],
  every: number,
): Promise<GenerateResult[]> {
  const gates = requests.map(() => Promise.withResolvers<void>());
  gates[0]?.resolve();
  const results = await Promise.all(requests.map(async (request, n) => {
    await gates[n]?.promise;
    if (every === 0) gates[n + 1]?.resolve();
    let rounds = 0;
    const result = await resultOf(engine.submit(request), ({ kind }) => {
      if (kind === "round" && ++rounds >= every) gates[n + 1]?.resolve();
    });
    gates[n + 1]?.resolve();
    return result;
  }));
  assertNothingHeld(engine);
  return results;
}

async function open(options: LocalOptions): Promise<LocalEngine> {
  return await openEngine({
    ...options,
    hooks: { plan: statically(3), ...options.hooks },
    limits: { roundsPerSync: 1, ...options.limits },
  });
}

/** Outputs of the requests, each run by itself. */
async function alone(requests: number): Promise<{ ids: string; reason: string }[]> {
  using engine = await open({});
  const results = [];
  for (let n = 0; n < requests; n++) {
    const [result] = await together(engine, [mixed(engine, n)], 0);
    results.push(outcome(result as GenerateResult));
  }
  return results;
}

function outcome({ outputIds, text, finishReason }: GenerateResult) {
  return { ids: outputIds.join(), text, reason: finishReason };
}

/** Changes the tier every round, through all of them, so that the draft must catch up. */
function restless(steps: readonly number[]): Speculation & { readonly picked: Set<string> } {
  const picked = new Set<string>();
  let round = 0;
  return {
    picked,
    pick: ({ batchSize }) => {
      const numSteps = steps[round++ % steps.length] as number;
      picked.add(`${numSteps}`);
      return { tier: chain(batchSize > 0 ? numSteps : 0) };
    },
    holds: () => Infinity,
    learn: () => {},
    report: staticPlan(chain(0)).speculation.report,
  };
}

exhaustive.test("a request's output is what it gets alone", async (t) => {
  const expected = await alone(34);
  const steps = [3, 0, 0, 7, 1, 0, 5];
  const cases = {
    EAGLE3: [[2, 8], [3, 3], [17, "auto"]],
    EAGLE: [[1, 1], [3, "auto"], [8, 2]],
  } as const;
  for (const algorithm of ["EAGLE3", "EAGLE"] as const) {
    for (const [batch, roundsPerSync] of cases[algorithm]) {
      await t.step(
        `${algorithm}, ${batch} in flight, ${roundsPerSync} rounds per sync, restless tiers`,
        async () => {
          const speculation = restless(steps);
          const rounds: RoundSample[] = [];
          using engine = await open({
            model: { algorithm },
            limits: { roundsPerSync, maxBatch: batch },
            hooks: {
              plan: () => ({ tier: chain(3), tiers: chains([...new Set(steps)]), speculation }),
              onRound: (round) => rounds.push(round),
            },
          });
          const length = Math.max(8, 2 * batch);
          const requests = Array.from({ length }, (_, n) => mixed(engine, n));
          // A group of eight rounds may be a request's last, and the next group begins before it is reported.
          const every = batch >= 8 || roundsPerSync === 8 ? 0 : 2;
          const results = await together(engine, requests, every);
          assert.deepEqual(results.map(outcome), expected.slice(0, length));
          assert.equal(speculation.picked.size, new Set(steps).size);
          assert.ok(rounds.some((round) => round.batch > batch / 2));
          const most = Math.max(...rounds.map((round) => round.together));
          if (roundsPerSync === 1) assert.equal(most, 1);
          else if (roundsPerSync !== "auto") assert.ok(most > 1 && most <= roundsPerSync);
          // A request may well end within a group of eight, before its tier changes.
          if (roundsPerSync !== 8) assert.ok(engine.counts.catchUps > 0);
        },
      );
    }
  }

  await t.step("preemption: pages for three, twelve requests", async () => {
    using engine = await open({ limits: { maxBatch: 8, maxKvTokens: 256, roundsPerSync: 3 } });
    const requests = Array.from({ length: 24 }, (_, n) => mixed(engine, n));
    const results = await together(engine, requests, 0);
    assert.deepEqual(results.map(outcome), expected.slice(0, 24));
    const { preemptions, waits } = engine.counts;
    assert.ok(preemptions > 0 && waits > 0, `${preemptions} preemptions, ${waits} waits`);
  });
});

Deno.test("acceptance does not suffer from rounds without the draft", async () => {
  const content = "Count from 10 to 60.";
  const accepted = async (speculation: Speculation) => {
    const lanes: number[] = [];
    using engine = await open({
      hooks: {
        plan: () => ({ tier: chain(3), tiers: chains([0, 3]), speculation }),
        onRound: ({ numSteps, accepted }) => numSteps > 0 && lanes.push(...accepted),
      },
    });
    const promptIds = engine.text.encodePrompt({ messages: [{ role: "user", content }] });
    const request = { ...mixed(engine, 0), promptIds, maxTokens: 120 };
    await together(engine, [request], 0);
    return lanes;
  };
  let round = 0;
  const sometimes = await accepted({
    ...staticPlan(chain(0)).speculation,
    pick: () => ({ tier: chain(round++ % 4 < 2 ? 0 : 3) }),
  });
  assert.ok(sometimes.length > 10);
  // This count is easy: with its keys and values caught up the draft errs no more than usual.
  const mean = sometimes.reduce((sum, n) => sum + n, 0) / sometimes.length;
  assert.ok(mean > 2.5, `${mean} of 3 accepted`);
});

Deno.test("requests with and without drafting share a batch where no tier is made for it", async () => {
  const expected = await alone(3);
  using engine = await open({ limits: { maxBatch: 2 }, hooks: { plan: statically(3) } });
  // The first drafts nothing and outlives the second; the third joins it.
  const requests = [1, 0, 2].map((n, i) => ({ ...mixed(engine, n), numSteps: i === 0 ? 0 : 3 }));
  const results = await together(engine, requests, 4);
  const found = results.map(outcome);
  assert.deepEqual(found, [1, 0, 2].map((n) => expected[n]));
});

Deno.test("no pipeline, bind group or buffer is made after warm-up, in any tier", async () => {
  const steps = [0, 1, 3, 7];
  using engine = await open({
    limits: { maxBatch: 3, roundsPerSync: 3, preparePrompts: true },
    hooks: { plan: () => ({ tier: chain(3), tiers: chains(steps), speculation: restless(steps) }) },
  });
  await engine.runner.warmUp(chains(steps));
  const { device } = engine.runner.gpu;
  // A first load makes the prefill programs it needs.
  const requests = Array.from({ length: 9 }, (_, n) => mixed(engine, n));
  await together(engine, requests, 1);
  const before = { ...engine.runner.created };
  const made: string[] = [];
  const createBuffer = device.createBuffer.bind(device);
  device.createBuffer = (descriptor) => {
    made.push(descriptor.label ?? "");
    return createBuffer(descriptor);
  };
  await together(engine, requests, 1);
  device.createBuffer = createBuffer; // the device is not this engine's alone
  assert.deepEqual({ ...engine.runner.created }, before);
  assert.deepEqual(made, []);
});

// 1,000 run in schedule/scheduler_fake_test.ts.
exhaustive.test("40 requests with few pages finish as with many", async () => {
  const outputs: string[][] = [];
  for (const maxKvTokens of [8 * 1056, 144]) {
    using engine = await open({ limits: { maxBatch: 8, maxKvTokens, roundsPerSync: 8 } });
    const requests = Array.from({ length: 40 }, (_, n) => {
      const { promptIds, sampling } = mixed(engine, n);
      return { ...mixed(engine, n), promptIds, sampling, maxTokens: 1 + n % 9 + (n % 3 ? 0 : 40) };
    });
    const results = await together(engine, requests, 0);
    outputs.push(results.map(({ outputIds }) => outputIds.join()));
    const { waits, preemptions } = engine.counts;
    if (maxKvTokens < 1000) assert.ok(waits > 0 && preemptions > 0, `${waits}, ${preemptions}`);
  }
  assert.deepEqual(outputs[0], outputs[1]);
});

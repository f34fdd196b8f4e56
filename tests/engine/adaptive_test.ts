import assert from "node:assert/strict";
import { drawFrom } from "../../src/measure/workload/draw.ts";
import { taskPrompt } from "../../src/measure/workload/tasks.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import type { RoundsPerSync } from "../../src/engine/schedule/sync_interval.ts";
import { presetJson } from "../../src/engine/schedule/presets.ts";
import type { RoundSample } from "../../src/engine/schedule/rounds/round_sample.ts";
import type { NamedPolicy } from "../../src/engine/schedule/speculation_choice.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { slotsOf } from "./slots.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

function adaptive(options: unknown, numSteps: number): NamedPolicy {
  return { policy: "ema", options, numSteps };
}

/** Decides every `update_interval` rounds, and tries drafts again wherever there were none. */
function restless(update_interval: number) {
  const slot = { candidate_steps: [0, 1, 3], warmup_batches: 0, down_hysteresis: 0 };
  return { "1": { ...slot, update_interval } };
}

const GROUPED: readonly RoundsPerSync[] = [4, "auto"];
const EASY = "Count from 1 to 50.";
const HARD = taskPrompt("random_numbers", drawFrom(7, 1));

function requestOf(engine: LocalEngine, content: string, rest: Partial<GenerateRequest> = {}) {
  const promptIds = engine.text.encodePrompt({ messages: [{ role: "user", content }] });
  return { promptIds, sampling: GREEDY, maxTokens: 256, stop: [], ignoreEos: false, ...rest };
}

/** Runs the requests side by side; their results in the order in which they came. */
async function runAll(engine: LocalEngine, requests: readonly GenerateRequest[]) {
  return await Promise.all(requests.map((request) => resultOf(engine.submit(request))));
}

/** What became of the prompts, one after the other or side by side. */
async function played(options: LocalOptions, prompts: readonly string[], more: {
  readonly together?: boolean;
  readonly request?: (n: number) => Partial<GenerateRequest>;
} = {}) {
  const { together = false, request = () => ({}) } = more;
  const rounds: RoundSample[] = [];
  using engine = await openEngine({
    ...options,
    limits: { maxBatch: together ? prompts.length : 1, ...options.limits },
    hooks: { ...options.hooks, onRound: (round) => rounds.push(round) },
  });
  const requests = prompts.map((content, n) => requestOf(engine, content, request(n)));
  const results: GenerateResult[] = [];
  if (together) results.push(...await runAll(engine, requests));
  else for (const one of requests) results.push(...await runAll(engine, [one]));
  const { report } = engine.speculation;
  return {
    texts: results.map(({ text }) => text),
    steps: rounds.map(({ numSteps }) => numSteps),
    switches: report.switches,
    slots: slotsOf(report),
    most: Math.max(...rounds.map(({ together }) => together)),
  };
}

/** Five easy prompts, five hard ones, five easy ones. */
const PHASES = Array.from({ length: 3 }, (_, phase) =>
  Array.from({ length: 5 }, (_, n) => {
    const task = phase % 2 === 0 ? "count" : "random_numbers";
    return taskPrompt(task, drawFrom(7, 8 * phase + n));
  })).flat();

exhaustive.test("the tier falls in hard phases and rises in easy ones, and the text stays", async () => {
  const speculate = adaptive(presetJson("aggressive"), 3);
  const request = () => ({ maxTokens: 64 });
  const { texts, steps, switches, slots } = await played({ speculation: { speculate } }, PHASES, {
    request,
  });
  assert.ok(switches.some(({ from, to }) => to < from), JSON.stringify(switches));
  assert.ok(switches.some(({ from, to }) => to > from), JSON.stringify(switches));
  assert.ok(new Set(steps).size > 1);
  assert.equal(slots.length, 4);
  assert.match(switches[0]?.reason ?? "", /^Adaptive spec params updated: steps \d -> \d/);
  const plain = await played({ hooks: { plan: statically(0) } }, PHASES, { request });
  assert.deepEqual(texts, plain.texts);
});

drawn.test("tiers change at the same rounds however many are submitted at once", async (t) => {
  await t.step("one request after the other", async () => {
    const open: LocalOptions = { speculation: { speculate: adaptive(restless(2), 0) } };
    const prompts = [EASY, EASY];
    const more = { request: () => ({ maxTokens: 96 }) };
    const { most, ...expected } = await played(
      { ...open, limits: { ...open.limits, roundsPerSync: 1 } },
      prompts,
      more,
    );
    assert.equal(most, 1);
    const count = (steps: number) => expected.steps.filter((each) => each === steps).length;
    assert.deepEqual([count(0), count(1), count(3), expected.switches.length], [4, 4, 45, 4]);
    for (const roundsPerSync of GROUPED) {
      const { most, ...found } = await played(
        { ...open, limits: { ...open.limits, roundsPerSync } },
        prompts,
        more,
      );
      assert.deepEqual(found, expected, `${roundsPerSync} rounds per sync`);
      if (roundsPerSync !== "auto") assert.equal(most, 2, "up to the next decision");
    }
  });
  await t.step("requests of several lengths side by side, one without drafts", async () => {
    const open: LocalOptions = { speculation: { speculate: adaptive(restless(3), 0) } };
    const prompts = [HARD, "Count from 10 to 25.", "Spell the word amber.", HARD, EASY];
    const more = {
      together: true,
      request: (n: number) => ({ maxTokens: 96, ...n === 3 ? { numSteps: 0 } : {} }),
    };
    const { most: _, ...expected } = await played(
      { ...open, limits: { ...open.limits, roundsPerSync: 1 } },
      prompts,
      more,
    );
    assert.ok(expected.switches.length > 2, JSON.stringify(expected));
    for (const roundsPerSync of GROUPED) {
      const { most, ...found } = await played(
        { ...open, limits: { ...open.limits, roundsPerSync } },
        prompts,
        more,
      );
      assert.deepEqual(found, expected, `${roundsPerSync} rounds per sync`);
      if (roundsPerSync !== "auto") assert.equal(most, 3);
    }
  });
});

Deno.test("requests that ask for no drafts get none, and teach nothing", async () => {
  using engine = await openEngine({
    speculation: { speculate: adaptive(presetJson("aggressive"), 7) },
    limits: { roundsPerSync: 3 },
  });
  const easy = requestOf(engine, EASY, { maxTokens: 80 });
  await runAll(engine, [easy, easy]);
  const { rounds, ...before } = engine.speculation.report;
  assert.equal(slotsOf(engine.speculation.report)[0]?.num_steps, 7);
  const [plain] = await runAll(engine, [{ ...easy, numSteps: 0 }]);
  assert.equal(plain?.speculative.draft_tokens, 0);
  const after = engine.speculation.report;
  assert.deepEqual(after.own, before.own);
  assert.ok(after.rounds > rounds && (after.tier_ms[0] ?? 0) > 0, "its rounds are counted");
  const [again] = await runAll(engine, [easy]);
  assert.equal(again?.speculative.num_steps, 7);
});

exhaustive.test("beside one that asks for no drafts, a request's tiers are those it has alone", async () => {
  const options: LocalOptions = {
    speculation: { speculate: adaptive(restless(2), 3) },
    limits: { roundsPerSync: 3 },
  };
  const alone = await played({ ...options, limits: { ...options.limits, maxBatch: 2 } }, [EASY]);
  const silent = { numSteps: 0, maxTokens: 150, ignoreEos: true };
  const request = (n: number) => n === 1 ? silent : {};
  const beside = await played(options, [EASY, HARD], { together: true, request });
  assert.deepEqual(beside.slots, alone.slots);
  assert.deepEqual(beside.switches, alone.switches);
  assert.deepEqual(beside.steps.slice(0, alone.steps.length), alone.steps);
  // The group in which the first ended may have gone on; then nobody is drafted for.
  const rest = beside.steps.slice(alone.steps.length + 1);
  assert.ok(rest.length > 20);
  assert.deepEqual(rest.filter((steps) => steps > 0), []);
});

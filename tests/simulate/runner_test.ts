// The scheduler on a runner in simulated time, and on one that keeps the tokens of every page: the same schedule.
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { cacheOf } from "../../src/engine/schedule/prefix_cache.ts";
import { openScheduler } from "../../src/engine/schedule/scheduler.ts";
import { staticPlan } from "../../src/engine/schedule/speculation_choice.ts";
import { closedSource } from "../../src/simulate/run/source.ts";
import { simulate } from "../../src/simulate/run/simulation.ts";
import type { SimulatedSample } from "../../src/simulate/run/tally.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { fakeRunner, POISON, VOCAB } from "../engine/fake_runner.ts";
import { MACHINE, simulationOf, statically } from "./worlds.ts";

interface Asked {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

interface Machine {
  readonly maxBatch: number;
  readonly pages: number;
  readonly chunkRows: number;
  readonly roundsPerSync: number;
}

/** The batch sizes of the rounds, and how often requests were preempted or waited. */
interface Schedule {
  readonly batches: readonly number[];
  readonly preemptions: number;
  readonly waits: number;
}

async function scheduled(
  asked: readonly Asked[],
  { maxBatch, pages, chunkRows, roundsPerSync }: Machine,
): Promise<Schedule> {
  const runner = fakeRunner({
    batch: maxBatch,
    shapes: [chain(0)],
    prefillRows: chunkRows,
    contextLength: 400,
    pages,
  }, "none");
  const batches: number[] = [];
  const scheduler = openScheduler({
    runner,
    cache: cacheOf(runner),
    roundsPerSync,
    chunkRows,
    speculation: staticPlan(chain(0)).speculation,
    onRound: ({ batch }) => void batches.push(batch),
    outputs: {
      tokenizer: {
        vocabSize: VOCAB,
        bosToken: undefined,
        eosToken: undefined,
        idOf: () => undefined,
        encode: () => [],
        decode: () => "",
        isSkipped: () => false,
      },
      name: "fake",
      eosTokenIds: [],
      vocabSize: VOCAB,
      algorithm: "NONE",
      contextLength: 400,
      tier: chain(0),
    },
  });
  for (const [n, { promptTokens, outputTokens }] of asked.entries()) {
    // No two prompts begin alike.
    const promptIds = Array.from(
      { length: promptTokens },
      (_, i) => i === 0 ? 2 + n : 2 + hash32(n, i, 5) % (POISON - 2),
    );
    scheduler.submit({
      promptIds,
      maxTokens: outputTokens,
      sampling: GREEDY,
      stop: [],
      ignoreEos: true,
    }, () => {});
  }
  while (await scheduler.step());
  const { preemptions, waits } = scheduler.counts;
  return { batches, preemptions, waits };
}

function simulated(
  asked: readonly Asked[],
  { maxBatch, pages, chunkRows, roundsPerSync }: Machine,
): Schedule {
  const batches: number[] = [];
  const arrivals = asked.map((each, seed) => ({ ...each, seed, atMs: 0 }));
  const { preemptions, waits } = simulate(simulationOf([], {
    source: closedSource(arrivals, asked.length, { promptTokens: 1, outputTokens: 1 }),
    policy: statically(0),
    machine: { ...MACHINE, maxBatch, kvTokens: pages * 16, chunkRows, roundsPerSync },
    onRound: ({ batch }) => void batches.push(batch),
  }));
  return { batches, preemptions, waits };
}

Deno.test("in simulated time requests are admitted, preempted and grouped as with real pages", async () => {
  const asked = fc.array(
    fc.record({
      promptTokens: fc.integer({ min: 1, max: 70 }),
      outputTokens: fc.integer({ min: 1, max: 70 }),
    }),
    { minLength: 1, maxLength: 14 },
  );
  const machine = fc.record({
    maxBatch: fc.integer({ min: 1, max: 6 }),
    pages: fc.integer({ min: 10, max: 40 }),
    chunkRows: fc.constantFrom(16, 64),
    roundsPerSync: fc.constantFrom(1, 2, 8),
  });
  const seen = { preemptions: 0, waits: 0 };
  await fc.assert(
    fc.asyncProperty(asked, machine, async (requests, on) => {
      const expected = await scheduled(requests, on);
      assert.deepEqual(simulated(requests, on), expected);
      seen.preemptions += expected.preemptions;
      seen.waits += expected.waits;
    }),
    { seed: 20261122, numRuns: 80 },
  );
  assert.ok(seen.preemptions > 20 && seen.waits > 20, JSON.stringify(seen));
});

Deno.test("tokens of a prompt that others have stored take no time, in whole pages", () => {
  const ttft = (cachedTokens: number, kvTokens: number) => {
    const { finished: [first] } = simulate(simulationOf([{ promptTokens: 64, cachedTokens }], {
      machine: { ...MACHINE, kvTokens },
    }));
    return first?.ttftMs;
  };
  // Half a millisecond a token.
  for (const kvTokens of [Infinity, 256]) {
    assert.deepEqual([0, 32, 40].map((cached) => ttft(cached, kvTokens)), [32, 16, 16]);
  }
});

Deno.test("what a group brings beyond a request's end is counted nowhere", () => {
  const rounds: SimulatedSample[] = [];
  const { tokens, finished, wasted } = simulate(simulationOf(
    [{ outputTokens: 3 }, { outputTokens: 7, atMs: 1 }],
    {
      machine: { ...MACHINE, roundsPerSync: 8 },
      onRound: (sample) => void rounds.push(sample),
    },
  ));
  assert.equal(tokens, 10);
  assert.equal(finished.length, 2);
  assert.equal(wasted, 0);
  assert.deepEqual(rounds.map(({ batch }) => batch), rounds.map(({ tokens }) => tokens));
});

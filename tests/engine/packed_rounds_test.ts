// Rounds that verify a part of the drafts, packed: what is decoded does not depend on which.
import assert from "node:assert/strict";
import type { RoundRequest, Runner } from "../../src/engine/device/runner.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { openGpu } from "../gpu/shared.ts";
import type { VerifyBudget } from "../../src/speculate/policy.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY, type Sampling } from "../../src/speculate/sampling.ts";
import { allocated, type Drafted, survivals } from "../reference/allocation.ts";
import { decode, EOS, goldenCases, openFledgling, openWhole } from "./fledgling.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

const MAX_BATCH = 8;
const PROMPTS = goldenCases().map(({ prompt_ids }) => prompt_ids).slice(0, MAX_BATCH);
const SAMPLED: readonly Sampling[] = [
  GREEDY,
  { ...GREEDY, temperature: 0.8, seed: 5, topK: 20 },
  { ...GREEDY, temperature: 1.1, seed: 6, topP: 0.9 },
];

/** Uniform in 0 to most, drawnNumber for `purpose` at `round`. */
const drawnNumber = (round: number, purpose: number, most: number) =>
  hash32(round, purpose, 3) % (most + 1);

function drawnBudget(round: number, batch: number, depth: number): VerifyBudget {
  return {
    drafts: drawnNumber(round, 1, batch * depth),
    slope: 0.25 + drawnNumber(round, 2, 4) / 4,
    intercepts: Array.from({ length: depth }, (_, k) => drawnNumber(round, 10 + k, 4) / 4 - 0.5),
    minConfidence: drawnNumber(round, 3, 2) / 5,
  };
}

/** By depths, by a budget, by a budget of which some have none, or everything: in turn. */
function verifying(seed: number, batch: number, depth: number): () => Partial<RoundRequest> {
  let round = seed << 10;
  const depths = () => Array.from({ length: batch }, (_, i) => drawnNumber(round, 100 + i, depth));
  return () => {
    round++;
    const verify = drawnBudget(round, batch, depth);
    return [{ depths: depths() }, { verify }, { verify, depths: depths() }, {}][round % 4] ?? {};
  };
}

/** Each number of sequences with one of the heads. */
const BATCHES = {
  eagle3: { software: [1, 3, 8], hardware: [1, 3] },
  eagle1: { software: [2, 5], hardware: [2] },
} as const;

async function open(kind: "eagle3" | "eagle1", software: boolean, batch: number): Promise<Runner> {
  const gpu = await openGpu();
  const info = { ...gpu.info, software };
  const of = { confident: true, shapes: chains([0, 2, 5]) };
  return await openFledgling(kind, batch, { ...gpu, info }, of);
}

for (const kind of ["eagle3", "eagle1"] as const) {
  for (const software of [true, false]) {
    const batches = BATCHES[kind][software ? "software" : "hardware"];
    const most = software ? 16 : 12;
    exhaustive.test(`${kind}, ${software ? "software" : "hardware"} kernels: any depths and budgets decode what plain rounds do, batch ${batches}`, async () => {
      const runner = await open(kind, software, Math.max(...batches));
      assert.ok(runner.ranks);
      for (const batch of batches) {
        using stack = new DisposableStack();
        const sequences = PROMPTS.slice(0, batch).map(() => stack.use(openWhole(runner)));
        const prompts = PROMPTS.slice(0, batch);
        const ids = async (numSteps: number, seed: number) => {
          const perSync = [1, 3][seed % 2] ?? 1;
          const how = { numSteps, most, sampling: SAMPLED, perSync };
          const asked = numSteps > 0 ? { verifying: verifying(seed, batch, numSteps) } : {};
          const found = await decode(runner, sequences, prompts, { ...how, ...asked });
          return found.map(({ ids }) => ids);
        };
        const plain = await ids(0, 0);
        for (const [seed, numSteps] of [5, 5, 2].entries()) {
          assert.deepEqual(await ids(numSteps, seed), plain, `batch ${batch}, seed ${seed}`);
        }
      }
      runner.gpu[Symbol.dispose]();
    });
  }
}

/** Whether rounding may decide which are verified: by the last that is and the first that is not. */
function near(sequences: readonly Drafted[], budget: VerifyBudget): boolean {
  const all = sequences.flatMap((each) => survivals(each, budget)).toSorted((a, b) => b - a);
  const [last = 1, next = 0] = all.slice(Math.max(0, budget.drafts - 1));
  return budget.drafts > 0 && next > 0 && last / next < 1 + 1e-3;
}

for (const kind of ["eagle3", "eagle1"] as const) {
  const { test } = kind === "eagle3" ? Deno : exhaustive;
  test(`${kind}: the device verifies the drafts that the budget's rule chooses, in every round of a group`, async () => {
    const runner = await open(kind, true, 4);
    using stack = new DisposableStack();
    const sequences = PROMPTS.slice(0, 4).map(() => stack.use(openWhole(runner)));
    for (const [i, sequence] of sequences.entries()) {
      runner.setSampling(sequence, GREEDY);
      await prefillPrompt(runner, sequence, PROMPTS[i] ?? []);
    }
    let compared = 0;
    const verifiedAs = new Set<string>();
    for (let group = 0; group < 10; group++) {
      const verify = drawnBudget(group, 4, 5);
      const depths = group % 3 === 2 ? [5, 0, 3, 5] : undefined;
      const asked = { shape: chain(5), count: 3, verify, ...depths && { depths } };
      for (const { sequences: results } of await runner.rounds(sequences, asked)) {
        const confidences = results.map(({ confidences = [] }) => confidences);
        assert.ok(confidences.flat().every((c) => c > 0 && c <= 1));
        assert.deepEqual(confidences.map(({ length }) => length), [5, 5, 5, 5]);
        const verified = results.map(({ drafts: { length } }) => length);
        for (const [i, { accepted, ids, drafts }] of results.entries()) {
          assert.ok(accepted <= (verified[i] ?? 0));
          assert.deepEqual(ids.slice(0, -1), drafts.slice(0, accepted));
        }
        assert.ok(verified.reduce((a, b) => a + b) <= verify.drafts);
        const each = confidences.map((own, i) => ({ confidences: own, most: depths?.[i] ?? 5 }));
        if (near(each, verify)) continue;
        compared++;
        assert.deepEqual(verified, allocated(each, verify));
        verifiedAs.add(verified.join());
      }
    }
    assert.ok(compared > 15 && verifiedAs.size > 5, `${compared} compared, ${[...verifiedAs]}`);
    runner.gpu[Symbol.dispose]();
  });

  exhaustive.test(`${kind}: drafts are the same whether their confidence is told or not`, async () => {
    for (const software of [true, false]) {
      const found = [];
      for (const confident of [false, true]) {
        const gpu = await openGpu();
        const of = { confident, shapes: chains([3]) };
        const runner = await openFledgling(
          kind,
          2,
          { ...gpu, info: { ...gpu.info, software } },
          of,
        );
        assert.equal(runner.ranks, confident);
        using stack = new DisposableStack();
        const sequences = [0, 1].map(() => stack.use(openWhole(runner)));
        const how = { numSteps: 3, most: 12, sampling: SAMPLED };
        found.push(await decode(runner, sequences, PROMPTS, how));
        gpu[Symbol.dispose]();
      }
      assert.deepEqual(found[1], found[0]);
    }
  });
}

drawn.test("what was prepared at start serves every number of rows", async () => {
  const runner = await open("eagle3", true, 4);
  const shapes = chains([0, 2, 5]);
  await runner.warmUp(shapes);
  await runner.warmUpPacked(shapes);
  await runner.warmUpPrompts();
  const created = { ...runner.created };
  using stack = new DisposableStack();
  const sequences = PROMPTS.slice(0, 4).map(() => stack.use(openWhole(runner)));
  for (const [i, sequence] of sequences.entries()) {
    runner.setSampling(sequence, GREEDY, { stopIds: [EOS] });
    await prefillPrompt(runner, sequence, PROMPTS[i] ?? []);
  }
  for (let batch = 1; batch <= 4; batch++) {
    for (const depth of [2, 5]) {
      for (let drafts = 0; drafts <= batch * depth; drafts++) {
        const verify = { ...drawnBudget(drafts, batch, depth), drafts };
        const depths = Array.from(
          { length: batch },
          (_, i) => Math.min(depth, Math.max(0, drafts - i * depth)),
        );
        const some = sequences.slice(0, batch);
        for (const how of [{ verify }, { depths }]) {
          const asked = { shape: chain(depth), count: 1, ...how };
          await runner.rounds(some, asked);
        }
      }
    }
  }
  assert.deepEqual(runner.created, created);
  runner.gpu[Symbol.dispose]();
});

Deno.test("budgets are not used without confidences, and no rounds are packed by them", async () => {
  const runner = await openFledgling("eagle3", 1, undefined, { shapes: chains([3]) });
  assert.equal(runner.ranks, false);
  using sequence = openSequence(runner);
  assert.ok(runner.reserve(sequence, 400));
  runner.setSampling(sequence, GREEDY);
  await prefillPrompt(runner, sequence, PROMPTS[0] ?? []);
  const asked = { shape: chain(3), count: 1, verify: { ...drawnBudget(1, 1, 3), drafts: 0 } };
  const [round] = await runner.rounds([sequence], asked);
  assert.equal(round?.sequences[0]?.drafts.length, 3);
  assert.equal(round?.sequences[0]?.confidences, undefined);
  runner.gpu[Symbol.dispose]();
});

// The draft leaves the GPU to make room for KV pages and comes back: no text changes, and its drafts are as good.
import assert from "node:assert/strict";
import type { PageMove } from "../../src/engine/device/elastic/paged_buffers.ts";
import { type GenerateRequest, resultOf } from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, openEngine } from "./open.ts";
import type { RoundSample } from "../../src/engine/schedule/rounds/round_sample.ts";
import { OutOfMemory } from "../../src/gpu/device.ts";
import type { Policy } from "../../src/speculate/policy.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { generatedPrompt } from "../prompts.ts";
import { exhaustive } from "../exhaustive.ts";

/** Drafts 3 tokens in the rounds that are not within `off`. */
function offBetween(from: number, to: number): Policy<number> {
  return {
    tiers: chains([0, 3]),
    start: 0,
    pick: (round) => ({ tier: chain(round >= from && round < to ? 0 : 3) }),
    holds: () => 1,
    learn: (round) => ({ state: round + 1 }),
    report: () => ({ json: {}, rows: [] }),
  };
}

/** Pages are short at once, and there is room at once: 14 requests for the pages of 3 or 4. */
const ELASTIC: LocalOptions = {
  hooks: {
    plan: { policy: offBetween(12, 50) },
    residency: { shortShare: 0.5, shortSteps: 3, wantedSteps: 2, roomShare: 0 },
  },
  limits: { elasticDraft: true },
};

async function run(options: LocalOptions, prepare: (engine: LocalEngine) => void = () => {}) {
  const rounds: RoundSample[] = [];
  using engine = await openEngine({
    ...options,
    limits: { maxBatch: 8, maxKvTokens: 480, contextLength: 240, ...options.limits },
    hooks: { onRound: (one) => rounds.push(one), ...options.hooks },
  });
  prepare(engine);
  const requests = Array.from({ length: 14 }, (_, n): GenerateRequest => {
    const messages = [{ role: "user", content: generatedPrompt(n % 9) }] as const;
    return {
      promptIds: engine.text.encodePrompt({ messages }),
      sampling: { ...GREEDY, temperature: n % 3 === 2 ? 0.8 : 0, seed: n },
      maxTokens: 60,
      stop: [],
      ignoreEos: true,
    };
  });
  const results = await Promise.all(requests.map((each) => resultOf(engine.submit(each))));
  const { runner: { pool, elastic }, counts, cache } = engine;
  assert.equal(pool.free + cache.evictable, pool.total, "no page is lost");
  cache.clear();
  assert.equal(pool.free, pool.total, "what is cached is where the pages are");
  return { ids: results.map(({ outputIds }) => outputIds), rounds, counts, elastic };
}

const plain = await run({ hooks: { plan: statically(0) } });

/** The share of the drafts of these rounds that was accepted. */
function acceptedShare(rounds: readonly RoundSample[]): number {
  const drafted = rounds.filter(({ numSteps }) => numSteps > 0);
  const sum = (of: (one: RoundSample) => number) => drafted.reduce((all, one) => all + of(one), 0);
  return sum(({ accepted }) => accepted.reduce((a, b) => a + b, 0)) /
    sum(({ numSteps, batch }) => numSteps * batch);
}

Deno.test("the draft leaves for KV pages and comes back: every text is that of plain decoding", async (t) => {
  const moves: PageMove[] = [];
  const log: string[] = [];
  const logging = <T extends object>(of: T, names: readonly (keyof T & string)[]) => {
    for (const name of names) {
      const call = (of[name] as (...all: unknown[]) => unknown).bind(of);
      Object.assign(of, { [name]: (...all: unknown[]) => (log.push(name), call(...all)) });
    }
  };
  const found = await run(ELASTIC, ({ runner }) => {
    const { paged, draft } = runner.elastic ?? assert.fail("the draft may leave");
    const { move } = paged;
    Object.assign(paged, { move: (some: PageMove[]) => (moves.push(...some), move(some)) });
    logging(runner, ["prefill", "begin"]);
    logging(paged, ["resize", "move"]);
    logging(draft, ["copyOut", "allocate", "copyIn"]);
  });
  assert.deepEqual(found.ids, plain.ids);
  const { elastic, counts, rounds } = found;
  assert.deepEqual(counts.elastic, {
    draft: "resident",
    evictions: 1,
    reloads: 1,
    pages: [30, elastic?.most],
  });
  const { draft, paged, fewest, most } = elastic ?? assert.fail();
  assert.ok(most > fewest && (most - fewest) * paged.pageBytes <= draft.bytes);
  assert.ok(moves.length > 0 && moves.every(({ from, to }) => from >= fewest && to < fewest));
  // The restored draft drafts as well as it did before it left.
  const back = rounds.findLastIndex(({ numSteps }) => numSteps === 0);
  const [before, after] = [rounds.slice(0, 12), rounds.slice(back + 1)];
  assert.ok(after.length > 10 && rounds.slice(12, back).every(({ numSteps }) => numSteps === 0));
  assert.ok(acceptedShare(after) > acceptedShare(before) / 2, `${acceptedShare(after)}`);

  await t.step("no more than one chunk is moved between two pieces of work", () => {
    const isWork = (name: string | undefined) => name === "prefill" || name === "begin";
    const chunks = log.filter((name) => !isWork(name));
    assert.deepEqual(new Set(chunks), new Set(["copyOut", "resize", "move", "allocate", "copyIn"]));
    const together = log.findIndex((name, i) => !isWork(name) && !isWork(log[i + 1]));
    assert.equal(together, -1, log.slice(together, together + 3).join());
  });
});

exhaustive.test("a standalone draft leaves and comes back, all its layers", async () => {
  const target = new URL("../../models/fledgling/target", import.meta.url).pathname;
  const found = await run({
    ...ELASTIC,
    model: { ...ELASTIC.model, draft: target, algorithm: "STANDALONE" },
  });
  assert.deepEqual(found.ids, plain.ids);
  const { draft, evictions, reloads } = found.counts.elastic ?? assert.fail();
  assert.deepEqual([draft, evictions, reloads], ["resident", 1, 1]);
  // The target drafts for itself.
  const back = found.rounds.findLastIndex(({ numSteps }) => numSteps === 0);
  assert.ok(acceptedShare(found.rounds.slice(back + 1)) > 0.9);
});

exhaustive.test("pages that cannot be vacated stay, and the draft comes back another time", async () => {
  const sizes: number[] = [];
  const residency = { ...ELASTIC.hooks?.residency, wantedSteps: 1, roomShare: -1 };
  const plan = { policy: offBetween(12, 30) };
  const found = await run({ ...ELASTIC, hooks: { plan, residency } }, ({ runner: { pool } }) => {
    const resize = pool.resize.bind(pool);
    Object.assign(pool, { resize: (total: number) => (sizes.push(total), resize(total)) });
  });
  assert.deepEqual(found.ids, plain.ids);
  const { pages: [fewest, most], draft, reloads } = found.counts.elastic ?? assert.fail();
  assert.deepEqual(sizes.slice(0, 3), [most, fewest, most], "blocked");
  assert.deepEqual([sizes.at(-1), draft, reloads], [fewest, "resident", 1]);
});

exhaustive.test("with more pages fewer requests wait and fewer are preempted", async () => {
  const residency = { ...ELASTIC.hooks?.residency, shortShare: 1 };
  const off = { policy: offBetween(1, Infinity) };
  const short = await run({
    ...ELASTIC,
    limits: { ...ELASTIC.limits, elasticDraft: false },
    hooks: { ...ELASTIC.hooks, plan: off },
  });
  const wide = await run({
    ...ELASTIC,
    hooks: { plan: off, residency },
  });
  assert.deepEqual([short.ids, wide.ids], [plain.ids, plain.ids]);
  assert.deepEqual([wide.counts.elastic?.draft, short.counts.elastic], ["host", undefined]);
  assert.ok(wide.counts.waits < short.counts.waits, `${wide.counts.waits} ${short.counts.waits}`);
  assert.ok(wide.rounds.length < short.rounds.length);
});

exhaustive.test("a draft that there is no room for any more is told of once; plain decoding goes on", async () => {
  const warnings: string[] = [];
  const onWarning = (line: string) => void warnings.push(line);
  const found = await run({ ...ELASTIC, hooks: { ...ELASTIC.hooks, onWarning } }, ({ runner }) => {
    const allocate = () => Promise.reject(new OutOfMemory("no room"));
    Object.assign(runner.elastic?.draft ?? assert.fail(), { allocate });
  });
  assert.deepEqual(found.ids, plain.ids);
  assert.equal(found.counts.elastic?.draft, "lost");
  assert.deepEqual(warnings, [
    "the draft cannot be brought back, nothing is drafted any more: no room",
  ]);
  assert.ok(found.rounds.slice(12).every(({ numSteps }) => numSteps === 0));
});

exhaustive.test("pages that there is no memory for: the draft comes back all the same", async () => {
  const warnings: string[] = [];
  const onWarning = (line: string) => void warnings.push(line);
  const found = await run({ ...ELASTIC, hooks: { ...ELASTIC.hooks, onWarning } }, ({ runner }) => {
    const { paged, most } = runner.elastic ?? assert.fail();
    const { resize } = paged;
    let calls = 0;
    const failing = (pages: number) =>
      pages === most && ++calls === 3 ? Promise.reject(new OutOfMemory("full")) : resize(pages);
    Object.assign(paged, { resize: failing });
  });
  assert.deepEqual(found.ids, plain.ids);
  assert.deepEqual(warnings, ["the memory of the draft cannot be given to KV pages: full"]);
  const { draft, reloads } = found.counts.elastic ?? assert.fail();
  assert.ok(draft === "resident" && reloads === 1);
});

exhaustive.test("a grammar's forced tokens are verified while the draft is away", async () => {
  const texts = async (more: LocalOptions) => {
    const away: RoundSample[] = [];
    using engine = await openEngine({
      ...more,
      limits: {
        constrained: true,
        maxBatch: 4,
        maxKvTokens: 320,
        contextLength: 200,
        ...more.limits,
      },
      hooks: {
        onRound: (round) => {
          if (engine.runner.elastic?.away) away.push(round);
        },
        ...more.hooks,
      },
    });
    const promptIds = engine.text.encodePrompt({ raw: "The list:" });
    const schema = {
      type: "array",
      items: { enum: ["first item", "second item"] },
      minItems: 3,
      maxItems: 6,
    };
    // Requests without a grammar start at once and make pages short. When the others start depends on
    // how long their grammar takes to compile; the draft does not come back before they have ended.
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, seed) =>
        resultOf(engine.submit({
          promptIds,
          maxTokens: 60,
          stop: [],
          ignoreEos: seed % 3 !== 0,
          sampling: { ...GREEDY, temperature: 1, seed },
          ...seed % 3 === 0 ? { grammar: { kind: "json schema", schema } as const } : {},
        }))),
    );
    return { texts: results.map(({ text }) => text), counts: engine.counts, away };
  };
  const found = await texts({
    ...ELASTIC,
    hooks: { ...ELASTIC.hooks, plan: { policy: offBetween(4, Infinity) } },
  });
  assert.equal(found.counts.elastic?.draft, "host");
  assert.ok(found.away.some(({ accepted }) => accepted.some((count) => count > 0)));
  assert.deepEqual(found.texts, (await texts({ hooks: { plan: statically(0) } })).texts);
});

Deno.test("where the draft may not leave, a line says why", async () => {
  const said = async (options: LocalOptions) => {
    const warnings: string[] = [];
    const onWarning = (line: string) => void warnings.push(line);
    using engine = await openEngine({
      ...options,
      limits: { elasticDraft: true, ...options.limits },
      hooks: { onWarning, ...options.hooks },
    });
    assert.equal(engine.runner.elastic, undefined);
    return warnings;
  };
  const why = (text: string) => [`--elastic-draft is not used: ${text}`];
  const tree = { depth: 3, width: 2, rows: 6 };
  assert.deepEqual(await said({ model: { draft: "none" } }), why("there is no draft"));
  assert.deepEqual(
    await said({ hooks: { plan: statically(tree, [0]) } }),
    why("features of trees are not kept"),
  );
  assert.deepEqual(
    await said({ hooks: { plan: statically(2) } }),
    why("every round drafts; a policy with 0 among its steps may draft nothing"),
  );
  assert.deepEqual(
    await said({ hooks: { plan: statically(0) } }),
    why("no round drafts; --draft none takes no memory at all"),
  );
});

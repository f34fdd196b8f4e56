// Drafts proposed by the host, trees among them: through the public interface, text as without.
import assert from "node:assert/strict";
import { pureDrafter } from "../../src/draft/host_drafter.ts";
import {
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../src/engine/schedule/events.ts";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalEngine, type LocalOptions, type Machine, openEngine } from "./open.ts";
import type { RoundSample } from "../../src/engine/schedule/rounds/round_sample.ts";
import { UsageError } from "../../src/errors.ts";
import { openGpu } from "../gpu/shared.ts";
import { gpuMemory } from "../../src/gpu/memory.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { NO_PROPOSAL, type Proposal } from "../../src/speculate/trees.ts";
import { chainOf } from "../reference/trees.ts";
import { generatedPrompt } from "../prompts.ts";
import { assertNothingHeld, resultsOf } from "./held.ts";
import { drawn, EXHAUSTIVE, exhaustive } from "../exhaustive.ts";

type PureDrafter = Parameters<typeof pureDrafter>[0];

const SHAPE = { depth: 4, width: 2, rows: 12 };
const WRONG = 5;

function request(engine: LocalEngine, n: number): GenerateRequest {
  const content = generatedPrompt(n);
  const sampled = { ...GREEDY, temperature: 0.7, seed: n, topK: 30 };
  return {
    promptIds: engine.text.encodePrompt({ messages: [{ role: "user", content }] }),
    sampling: n % 2 === 1 ? sampled : GREEDY,
    maxTokens: 28,
    stop: [],
    ignoreEos: true,
  };
}

const REQUESTS = [0, 1, 2, 3];

function together(engine: LocalEngine, which: readonly number[]): Promise<GenerateResult[]> {
  return resultsOf(engine, which.map((n) => request(engine, n)));
}

/** What plain decoding makes of each request: prompt and output, and output. */
const plain = await (async () => {
  using engine = await openEngine({ model: { draft: "none" } });
  const found: { readonly all: number[]; readonly output: string }[] = [];
  for (const n of REQUESTS) {
    const { outputIds } = await resultOf(engine.submit(request(engine, n)));
    found.push({
      all: [...request(engine, n).promptIds, ...outputIds],
      output: outputIds.join(),
    });
  }
  return found;
})();

/** The next tokens of the known text that begins with these, and which text it is. */
function whatFollows(ids: readonly number[], count: number): [next: number[], text: number] {
  const text = plain.findIndex(({ all }) => ids.every((id, i) => all[i] === id));
  return [plain[text]?.all.slice(ids.length, ids.length + count) ?? [], text];
}

function goldenConfig(name: string): string {
  return new URL(`../golden/${name}/config.json`, import.meta.url).pathname;
}

/** Right tokens scattered in a tree: each has wrong siblings before or behind it, with children. */
function scattered(right: readonly number[], count: number, vocab = 2048): Proposal {
  const tokens: number[] = [];
  const parents: number[] = [];
  const add = (token: number, parent: number) => parents.push(parent) && tokens.push(token);
  let at = 0;
  for (const [level, token] of right.entries()) {
    if (tokens.length + 3 > count) break;
    const wrong = hash32(token, level, 1) % 2 === 0;
    if (wrong) add((token + 1) % vocab, at);
    const own = add(token, at);
    if (wrong && level + 1 < right.length) add(WRONG, own - 1);
    if (!wrong) add((token + 7) % vocab, at);
    at = own;
  }
  return { tokens, parents };
}

/** Knows the texts, and takes every fifth token for another one. */
const TREES: PureDrafter = {
  name: "trees",
  shapes: [SHAPE],
  propose(ids, { count, depth }) {
    const [right] = whatFollows(ids, depth);
    return scattered(right.map((id, i) => hash32(ids.length, i, 2) % 5 ? id : id ^ 1), count);
  },
};

async function open(
  drafter: PureDrafter,
  options: LocalOptions,
): Promise<{ engine: LocalEngine; rounds: RoundSample[] }> {
  const rounds: RoundSample[] = [];
  const onRound = (round: RoundSample) => void rounds.push(round);
  return {
    engine: await openEngine({
      ...options,
      hooks: { drafter: pureDrafter(drafter), onRound, ...options.hooks },
    }),
    rounds,
  };
}

const acceptedOf = (rounds: readonly RoundSample[]) =>
  rounds.reduce((sum, { accepted }) => sum + accepted.reduce((a, b) => a + b, 0), 0);

function assertSame(results: readonly GenerateResult[], which: readonly number[]): void {
  assert.deepEqual(
    results.map(({ outputIds }) => outputIds.join()),
    which.map((n) => plain[n]?.output),
  );
}

Deno.test(`trees from the host: the text of plain decoding, batch 1 to 4`, async () => {
  const { engine, rounds } = await open(TREES, {
    model: { draft: "none" },
    limits: { maxBatch: 4 },
  });
  using _ = engine;
  for (const batch of REQUESTS) {
    const which = REQUESTS.slice(0, batch + 1);
    rounds.length = 0;
    assertSame(await together(engine, which), which);
    // Far more than one token a round, and not everything was right.
    const lanes = rounds.reduce((sum, round) => sum + round.batch, 0);
    assert.ok(acceptedOf(rounds) > lanes, `${acceptedOf(rounds)} in ${lanes}`);
    assert.ok(rounds.some(({ accepted }) => accepted.some((count) => count < SHAPE.depth)));
    assert.ok(rounds.every(({ together }) => together === 1));
  }
});

/** The adapter at hand, with the kernels of hardware. */
const HARDWARE: Machine = {
  async openGpu(adapter) {
    const gpu = await openGpu(adapter);
    return { ...gpu, info: { ...gpu.info, software: false } };
  },
  gpuMemory,
};

const TARGETS: readonly [name: string, options: LocalOptions, machine?: Machine][] = [
  ["bf16 keys and values", { model: { draft: "none" }, limits: { kvDtype: "bf16" } }],
  ["latents", { model: { random: { target: goldenConfig("deepseek_v3_plain") } } }],
  ["sliding windows", { model: { random: { target: goldenConfig("gemma3") } } }],
  ["hardware's kernels", { model: { draft: "none" } }, HARDWARE],
];

for (const [name, options, machine] of TARGETS) {
  const { test } = "random" in options ? Deno : exhaustive;
  test(`trees from the host: ${name}`, async () => {
    const ids = Array.from({ length: 40 }, (_, i) => (i * i * 7 + 3) % 50);
    const asked = { promptIds: ids, maxTokens: 24, stop: [], ignoreEos: true, sampling: GREEDY };
    const outputOf = async (drafter?: PureDrafter) => {
      const rounds: RoundSample[] = [];
      using engine = await openEngine({
        ...options,
        limits: { ...options.limits, contextLength: 256 },
        hooks: {
          ...options.hooks,
          ...drafter ? { drafter: pureDrafter(drafter) } : {},
          onRound: (round) => rounds.push(round),
        },
      }, machine);
      const { outputIds } = await resultOf(engine.submit(asked));
      return { outputIds, accepted: acceptedOf(rounds) };
    };
    const { outputIds } = await outputOf();
    const knows: PureDrafter = {
      ...TREES,
      propose(ids, { count, depth }) {
        const next = outputIds.slice(ids.length - 40).slice(0, depth);
        const fits = next.map((id, i) => hash32(ids.length, i, 2) % 5 ? id : id ^ 1);
        return scattered(fits, count, 50);
      },
    };
    const found = await outputOf(knows);
    assert.deepEqual(found.outputIds, outputIds);
    assert.ok(found.accepted > 8, `${found.accepted} accepted`);
  });
}

Deno.test("one row, a chain and a tree in the same rounds", async () => {
  const kinds = new Set<string>();
  const drafter: PureDrafter = {
    ...TREES,
    propose(ids, room) {
      const [right, text] = whatFollows(ids, room.depth);
      const tree = scattered(right, room.count);
      const proposal = [NO_PROPOSAL, chainOf(right), tree, tree][text] ?? NO_PROPOSAL;
      kinds.add(`${text} ${proposal.tokens.length > 0}`);
      return proposal;
    },
  };
  const { engine, rounds } = await open(drafter, {
    model: { draft: "none" },
    limits: { maxBatch: 4 },
  });
  using _ = engine;
  assertSame(await together(engine, REQUESTS), REQUESTS);
  assert.deepEqual([...kinds].filter((kind) => kind.endsWith("true")).toSorted(), [
    "1 true",
    "2 true",
    "3 true",
  ]);
  assert.ok(rounds.some(({ batch, accepted }) => batch === 4 && new Set(accepted).size > 2));
});

exhaustive.test("chains from the host: as deep as one likes", async () => {
  const drafter: PureDrafter = {
    name: "chains",
    shapes: [chain(20)],
    propose: (ids, { depth }) => chainOf(whatFollows(ids, depth)[0]),
  };
  const { engine, rounds } = await open(drafter, {
    model: { draft: "none" },
    limits: { maxBatch: 2 },
  });
  using _ = engine;
  assertSame(await together(engine, [0, 1]), [0, 1]);
  // Of 28 tokens one comes with the prompt, 21 with a round, 6 with another.
  const counts = rounds.flatMap(({ accepted }) => accepted);
  assert.deepEqual(counts.toSorted((a, b) => a - b), [5, 5, 20, 20]);
});

exhaustive.test("a drafter that proposes nothing: plain decoding", async () => {
  const drafter = { ...TREES, propose: () => NO_PROPOSAL };
  const { engine, rounds } = await open(drafter, {
    model: { draft: "none" },
    limits: { maxBatch: 2 },
  });
  using _ = engine;
  assertSame(await together(engine, [0, 1]), [0, 1]);
  assert.ok(rounds.length > 20 && rounds.every(({ numSteps }) => numSteps === 0));
});

/** What the device drafted in its own rounds of two requests, by request and place in its output. */
async function deviceDrafts(
  algorithm: "EAGLE" | "EAGLE3",
  every: number,
): Promise<{ drafts: Map<string, string>; rounds: readonly RoundSample[] }> {
  let asked = 0;
  const drafter: PureDrafter = {
    ...TREES,
    propose: (ids, room) => ++asked % every === 0 ? TREES.propose(ids, room) : NO_PROPOSAL,
  };
  const options: LocalOptions = {
    model: { algorithm },
    limits: { maxBatch: 2 },
    hooks: { plan: statically(2, [0, 2]) },
  };
  const { engine, rounds } = await open(drafter, options);
  using _ = engine;
  const drafts = new Map<string, string>();
  const results = await Promise.all([0, 1].map((n) => {
    let place = 0;
    return resultOf(engine.submit(request(engine, n)), (event) => {
      if (event.kind !== "round") return;
      if (event.tier?.depth === 2) drafts.set(`${n} ${place}`, event.drafts.join());
      place += event.ids.length;
    });
  }));
  assertSame(results, [0, 1]);
  return { drafts, rounds };
}

for (const algorithm of ["EAGLE", "EAGLE3"] as const) {
  const { test } = algorithm === "EAGLE3" ? drawn : exhaustive;
  test(`trees from the host beside ${algorithm}: the draft model drafts what it drafts alone`, async () => {
    const alone = await deviceDrafts(algorithm, Infinity);
    assert.ok(alone.rounds.every(({ numSteps }) => numSteps === 2));
    let compared = 0;
    for (const every of EXHAUSTIVE ? [3, 4, 5] : [4, 5]) {
      const { drafts, rounds } = await deviceDrafts(algorithm, every);
      assert.ok(rounds.some(({ numSteps }) => numSteps === SHAPE.depth));
      for (const [place, tokens] of drafts) {
        const own = alone.drafts.get(place);
        if (own === undefined) continue;
        assert.equal(tokens, own, `place ${place}`);
        if (place.split(" ")[1] !== "1") compared++;
      }
    }
    assert.ok(compared > 3, `${compared} compared`);
  });
}

const FAULTS: readonly [why: string, proposal: Proposal][] = [
  ["it has 2 tokens and 1 parents", { tokens: [1, 2], parents: [0] }],
  ["it has 12 tokens, there is room for 11", chainOf(Array(12).fill(1))],
  ["token id 2048 is none of 0 to 2047", chainOf([1, 2048])],
  ["the parent of token 1 is row 2", { tokens: [1, 2], parents: [0, 2] }],
  ["it has 5 levels, there is room for 4", chainOf([1, 2, 3, 4, 5])],
];

Deno.test("what cannot be verified ends its request, and the others go on", async () => {
  let fault: Proposal = NO_PROPOSAL;
  const drafter: PureDrafter = {
    ...TREES,
    propose: (ids, room) => whatFollows(ids, 1)[1] === 1 ? fault : TREES.propose(ids, room),
  };
  const { engine } = await open(drafter, { model: { draft: "none" }, limits: { maxBatch: 2 } });
  using _ = engine;
  for (const [why, proposal] of FAULTS) {
    fault = proposal;
    const [first, second] = await Promise.allSettled(
      [0, 1].map((n) => resultOf(engine.submit(request(engine, n)))),
    );
    assert.ok(first?.status === "fulfilled" && second?.status === "rejected");
    assertSame([first.value], [0]);
    assert.ok(second.reason instanceof UsageError);
    const message = `Cannot verify what the drafter "trees" proposed: ${why}`;
    assert.equal(second.reason.message, message);
  }
  assertNothingHeld(engine);
});

Deno.test("a shape that cannot be built is refused", async () => {
  for (const shape of [{ ...SHAPE, rows: 65 }, { ...SHAPE, rows: 4 }, { ...SHAPE, depth: 0 }]) {
    const drafter = pureDrafter({ ...TREES, shapes: [shape] });
    await assert.rejects(openEngine({ model: { draft: "none" }, hooks: { drafter } }), UsageError);
  }
  const drafter = pureDrafter(TREES);
  const simulated: LocalOptions = {
    model: { draft: "none" },
    speculation: { simulateAcceptance: [0.5] },
    hooks: { drafter },
  };
  await assert.rejects(openEngine(simulated), /simulated for chains alone/);
});

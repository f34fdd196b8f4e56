// Which groups of rounds begin before the tokens of the last are taken, on a runner without a device.
import assert from "node:assert/strict";
import { cacheOf } from "../../../src/engine/schedule/prefix_cache.ts";
import type { GenerateRequest } from "../../../src/engine/schedule/events.ts";
import { openScheduler } from "../../../src/engine/schedule/scheduler.ts";
import { openSpeculation } from "../../../src/engine/schedule/speculation.ts";
import { staticPlan } from "../../../src/engine/schedule/speculation_choice.ts";
import type { Policy } from "../../../src/speculate/policy.ts";
import { chain, chains } from "../../../src/speculate/round_shape.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";
import { FAKE_EOS, type FakeRunner, fakeRunner, NO_STATES, VOCAB } from "../fake_runner.ts";

const REQUEST: GenerateRequest = {
  promptIds: [9, 8, 7],
  sampling: GREEDY,
  maxTokens: 25,
  stop: [],
  ignoreEos: true,
  numSteps: 0,
};

/** Returns in order what happens: groups that begin, rounds that are reported, requests that end. */
async function log(
  requests: readonly Partial<GenerateRequest>[],
  { messageWaits = () => false, onBegin = () => {}, roundsPerSync = 4, prepare, policy }: {
    readonly messageWaits?: () => boolean;
    readonly onBegin?: (submit: (more: Partial<GenerateRequest>) => void) => void;
    readonly roundsPerSync?: number | "auto";
    readonly prepare?: (runner: FakeRunner) => void;
    /** Where there is a draft. */
    readonly policy?: Policy<number> | undefined;
  } = {},
): Promise<string[]> {
  const runner = fakeRunner({
    batch: 2,
    shapes: chains([0, 1, 3]),
    prefillRows: 16,
    contextLength: 96,
    pages: 30,
  }, policy ? "catches up" : "none");
  const tokenizer = {
    vocabSize: VOCAB,
    bosToken: undefined,
    eosToken: undefined,
    idOf: () => undefined,
    encode: () => [],
    isSkipped: (id: number) => id === FAKE_EOS,
    decode: (ids: readonly number[]) => ids.map((id) => `<${id}>`).join(""),
  };
  const seen: string[] = [];
  prepare?.(runner);
  const cache = cacheOf(runner);
  const scheduler = openScheduler({
    runner,
    cache,
    roundsPerSync,
    messageWaits,
    outputs: {
      tokenizer,
      name: "fake",
      eosTokenIds: [FAKE_EOS],
      vocabSize: VOCAB,
      contextLength: 96,
      algorithm: policy ? "EAGLE" : "NONE",
      tier: chain(0),
    },
    speculation: policy ? openSpeculation("own", policy) : staticPlan(chain(0)).speculation,
  });
  const submit = (more: Partial<GenerateRequest>) =>
    void scheduler.submit({ ...REQUEST, ...more }, ({ kind }) => {
      if (kind === "round" || kind === "finish") seen.push(kind);
    });
  const { begin } = runner;
  runner.begin = (sequences, asked) => {
    seen.push(`begin ${asked.count}`);
    onBegin(submit);
    return begin(sequences, asked);
  };
  requests.forEach(submit);
  while (await scheduler.step());
  assert.equal(runner.pool.free + cache.evictable, runner.pool.total, "no page is lost");
  return seen;
}

/** The log as lengths of runs: "begin 4", "4 rounds". */
function runs(seen: readonly string[]): string[] {
  const out: string[] = [];
  let rounds = 0;
  for (const what of [...seen, ""]) {
    if (what === "round") {
      rounds++;
      continue;
    }
    if (rounds > 0) out.push(`${rounds} rounds`);
    rounds = 0;
    if (what) out.push(what);
  }
  return out;
}

Deno.test("a group that surely follows begins before the tokens of the last are told", async () => {
  // The prompt's token is told first; twelve are left.
  assert.deepEqual(runs(await log([{ maxTokens: 13 }])), [
    ...["1 rounds", "begin 4", "begin 4", "4 rounds", "begin 4", "8 rounds", "finish"],
  ]);
});

Deno.test("none begins early where a text may stop it, a message waits or another request does", async () => {
  const inTurn = ["1 rounds", "begin 4", "4 rounds", "begin 4", "4 rounds", "finish"];
  assert.deepEqual(runs(await log([{ maxTokens: 9, stop: ["none"] }])), inTurn);
  assert.deepEqual(runs(await log([{ maxTokens: 9 }], { messageWaits: () => true })), inTurn);
  const waits = await log([{ maxTokens: 9 }, { maxTokens: 9 }, { maxTokens: 9 }]);
  const early = waits.findIndex((what, i) =>
    what.startsWith("begin") && waits[i + 1]?.startsWith("begin")
  );
  assert.ok(early < 0 || early > waits.indexOf("finish"), waits.join());
});

Deno.test("a request that comes while a group runs is taken in after it", async () => {
  let begun = 0;
  const seen = await log([{ maxTokens: 25 }], {
    onBegin: (submit) => void (++begun === 2 && submit({ maxTokens: 2 })),
  });
  assert.equal(seen.filter((what) => what === "finish").length, 2);
  assert.equal(seen.filter((what) => what === "round").length, 27);
});

Deno.test("a request that ends by a token has nothing told after it, and nothing is left begun", async () => {
  const seen = await log([{ ignoreEos: false, maxTokens: 90, promptIds: [5, 4] }]);
  assert.equal(seen.at(-1), "finish");
  assert.equal(seen.filter((what) => what === "finish").length, 1);
});

/** For each group, how many others were still unread when it began; two may be in flight. */
async function unreadAt(
  requests: readonly Partial<GenerateRequest>[],
  { states, policy }: {
    readonly states?: FakeRunner["states"];
    readonly policy?: Policy<number>;
  } = {},
): Promise<number[]> {
  const all: number[] = [];
  let unread = 0;
  const seen = await log(requests, {
    roundsPerSync: 1,
    policy,
    prepare(runner) {
      runner.overlaps = true;
      if (states) runner.states = states;
      const { begin } = runner;
      runner.begin = async (sequences, asked) => {
        all.push(unread++);
        const begun = await begin(sequences, asked);
        return {
          results() {
            unread--;
            return begun.results();
          },
        };
      };
    },
  });
  assert.equal(seen.filter((what) => what === "finish").length, requests.length);
  return all;
}

Deno.test("groups go on to begin before the last is read as texts of a batch come to their ends", async () => {
  // The first request begins a round before the other's prompt is stored; no round begins after the last token.
  const ends = [{ maxTokens: 6 }, { maxTokens: 12 }];
  assert.deepEqual(await unreadAt(ends), [0, 0, ...Array(10).fill(1)]);
  assert.deepEqual(await unreadAt([{ maxTokens: 1 }, { maxTokens: 1 }]), []);
  const tokens = [{ ignoreEos: false, maxTokens: 90, promptIds: [5, 4] }, { maxTokens: 60 }];
  assert.ok((await unreadAt(tokens)).slice(2, 50).every((unread) => unread === 1));
});

Deno.test("they do so where states are kept too, with pages reserved while none is unread", async () => {
  const found = await unreadAt([{ maxTokens: 6 }, { maxTokens: 12 }], { states: NO_STATES });
  assert.deepEqual(found, [0, 0, ...Array(10).fill(1)]);
  // The runner asserts that no group begins without a request.
  const token = await unreadAt([{ ignoreEos: false, maxTokens: 90, promptIds: [5, 4] }], {
    states: NO_STATES,
  });
  assert.ok(token.length > 2 && token.slice(1).every((unread) => unread === 1));
});

Deno.test("a choice that holds for some rounds is learned before the next, unless it may lag", async () => {
  // Four rounds of one draft each, then four of none.
  const policy: Policy<number> = {
    tiers: chains([0, 1]),
    start: 0,
    pick: (round) => ({ tier: chain(round % 8 < 4 ? 1 : 0) }),
    holds: (round) => 4 - round % 4,
    learn: (round) => ({ state: round + 1 }),
    report: () => ({ json: {}, rows: [] }),
  };
  const request = { maxTokens: 30, numSteps: 1 };
  const strict = await unreadAt([request], { policy });
  assert.deepEqual(strict.slice(0, 12), [0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]);
  // A group waits for the one before only where drafts begin again: the draft has to catch up.
  const lagging = await unreadAt([request], { policy: { ...policy, mayLag: () => true } });
  assert.deepEqual(lagging.slice(0, 12), [0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1]);
  const deeper = { ...policy, tiers: chains([1, 3]), mayLag: () => true };
  const pick = (round: number) => ({ tier: chain(round % 8 < 4 ? 1 : 3) });
  const deep = { ...request, numSteps: 3 };
  const drafting = await unreadAt([deep], { policy: { ...deeper, pick } });
  assert.ok(drafting.length > 8 && drafting.slice(1).every((unread) => unread === 1));
});

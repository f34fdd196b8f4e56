// Requests whose grammars are still being opened, or find what may follow: nobody waits for them, and they can be
// cancelled.
import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { type GenerateRequest, resultOf } from "../../../src/engine/schedule/events.ts";
import { engineLoop } from "../../../src/engine/schedule/loop.ts";
import { noPrefixCache } from "../../../src/engine/schedule/prefix_cache.ts";
import { openScheduler } from "../../../src/engine/schedule/scheduler.ts";
import { staticPlan } from "../../../src/engine/schedule/speculation_choice.ts";
import { UsageError } from "../../../src/errors.ts";
import type { Constraint } from "../../../src/grammar/constraint.ts";
import type { Grammars } from "../../../src/grammar/grammars.ts";
import { uniformAt } from "../../../src/simulate/acceptance/chance.ts";
import { chain, chains } from "../../../src/speculate/round_shape.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";
import { NO_PROPOSAL } from "../../../src/speculate/trees.ts";
import { openFake as openCached } from "../fake_engine.ts";
import { FAKE_EOS, fakeRunner, VOCAB } from "../fake_runner.ts";

const ASKED: GenerateRequest = {
  promptIds: [5, 6, 7],
  sampling: GREEDY,
  maxTokens: 20,
  stop: [],
  ignoreEos: true,
  numSteps: 3,
};
const CONSTRAINED: GenerateRequest = { ...ASKED, grammar: { kind: "json object" } };

/** Allows anything. */
function anything(): Constraint & { open: boolean } {
  return {
    open: true,
    mask: new Uint32Array(Math.ceil(VOCAB / 32)).fill(0xffffffff),
    complete: false,
    take() {},
    forced: () => NO_PROPOSAL,
    pruned: (proposal) => proposal,
    fill: (_, into) => void into.fill(0xffffffff),
    close() {
      this.open = false;
    },
  };
}

function openFake(pages = 30, clock: () => number = () => performance.now()) {
  const runner = fakeRunner(
    {
      batch: 3,
      shapes: chains([0, 1, 3]),
      prefillRows: 16,
      contextLength: 128,
      pages,
    } as Parameters<typeof fakeRunner>[0],
  );
  const asked: PromiseWithResolvers<Constraint>[] = [];
  const signals: AbortSignal[] = [];
  const grammars: Grammars = {
    open(_, { signal }) {
      const answer = Promise.withResolvers<Constraint>();
      asked.push(answer);
      if (signal) signals.push(signal);
      signal?.addEventListener("abort", () => answer.reject(signal.reason));
      return answer.promise;
    },
    close() {},
  };
  const scheduler = openScheduler({
    runner,
    cache: noPrefixCache(),
    outputs: {
      tokenizer: {
        vocabSize: VOCAB,
        bosToken: undefined,
        eosToken: undefined,
        idOf: () => undefined,
        encode: () => [],
        decode: (ids: readonly number[]) => ids.map((id) => `<${id}>`).join(""),
        isSkipped: (id: number) => id === FAKE_EOS,
      },
      name: "fake",
      eosTokenIds: [FAKE_EOS],
      vocabSize: VOCAB,
      algorithm: "EAGLE3",
      contextLength: 128,
      tier: chain(3),
    },
    speculation: staticPlan(chain(3)).speculation,
    roundsPerSync: 1,
    grammars,
    clock,
  });
  return { loop: engineLoop(scheduler), counts: scheduler.counts, asked, signals };
}

Deno.test("others are answered while a grammar is opened, before and after them", async () => {
  const { loop, asked } = openFake();
  const plain = await resultOf(loop.submit(ASKED));
  const constrained = resultOf(loop.submit(CONSTRAINED));
  const later = await Promise.all([ASKED, ASKED].map((one) => resultOf(loop.submit(one))));
  assert.deepEqual(later.map(({ outputIds }) => outputIds), [plain.outputIds, plain.outputIds]);
  const constraint = anything();
  asked[0]?.resolve(constraint);
  assert.deepEqual((await constrained).outputIds, plain.outputIds);
  assert.equal(constraint.open, false);
  await loop.idle();
});

Deno.test("the wait for a grammar is no part of the prompt's time", async () => {
  let now = 0;
  const { loop, asked } = openFake(30, () => now);
  const constrained = resultOf(loop.submit(CONSTRAINED));
  await setImmediate();
  now = 2000;
  asked[0]?.resolve(anything());
  const { queuedMs, prefillMs, timeToFirstTokenMs } = (await constrained).timing;
  assert.deepEqual([queuedMs, prefillMs, timeToFirstTokenMs], [2000, 0, 2000]);
  await loop.idle();
});

Deno.test("a request that waits for its grammar alone can be cancelled; the opening is aborted", async () => {
  const { loop, asked, signals } = openFake();
  const kinds: string[] = [];
  const job = loop.submit(CONSTRAINED);
  job.listen(({ kind }) => void kinds.push(kind));
  await setImmediate();
  job.cancel();
  await loop.idle();
  assert.deepEqual([kinds, signals[0]?.aborted], [["finish"], true]);
  // It was opened all the same, too late.
  const stopped = new AbortController();
  const left = resultOf(loop.submit({ ...CONSTRAINED, signal: stopped.signal }));
  await setImmediate();
  const constraint = anything();
  asked[1]?.resolve(constraint);
  stopped.abort();
  assert.equal((await left).finishReason, "interrupt");
  assert.equal(constraint.open, false);
});

Deno.test("whatever opening a grammar throws ends its own request", async () => {
  const { loop, asked } = openFake();
  const plain = resultOf(loop.submit(ASKED));
  const failed = [1, 2].map(() => resultOf(loop.submit(CONSTRAINED)));
  await setImmediate();
  asked[0]?.reject(new UsageError("Cannot constrain the output: no"));
  asked[1]?.reject(new TypeError("a bug"));
  const results = await Promise.allSettled([plain, ...failed]);
  assert.deepEqual(results.map((one) => one.status === "rejected" && one.reason.message), [
    false,
    "Cannot constrain the output: no",
    "Cannot constrain the output: a bug",
  ]);
  assert.ok(results.every((one) => one.status === "fulfilled" || one.reason instanceof UsageError));
});

Deno.test("a closed engine ends what waits for its grammar", async () => {
  const { loop, signals } = openFake();
  const waits = resultOf(loop.submit(CONSTRAINED));
  await setImmediate();
  loop.close();
  await assert.rejects(waits, /the engine is closed/);
  assert.equal(signals[0]?.aborted, true);
  await loop.idle();
});

/** Allows anything, and after 4 tokens finds what may follow only when `found` is called. */
function slowLater(): Constraint & { open: boolean; found: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let [taken, busy] = [0, true];
  return {
    ...anything(),
    found: () => {
      busy = false;
      resolve();
    },
    advance: () => taken >= 4 && busy ? promise : undefined,
    take: () => void taken++,
  };
}

Deno.test("others are answered while a grammar finds what may follow; its text is the same", async () => {
  const { loop, asked } = openFake();
  const plain = await resultOf(loop.submit(ASKED));
  const slow = loop.submit(CONSTRAINED);
  const texts: string[] = [];
  slow.listen((event) => event.kind === "text" && texts.push(event.text));
  const constraint = slowLater();
  asked[0]?.resolve(constraint);
  const others = await Promise.all([ASKED, ASKED].map((one) => resultOf(loop.submit(one))));
  assert.deepEqual(others.map(({ outputIds }) => outputIds), [plain.outputIds, plain.outputIds]);
  assert.ok(texts.length > 0);
  assert.ok(texts.join("").length < plain.text.length);
  constraint.found();
  await loop.idle();
  assert.equal(texts.join(""), plain.text);
});

Deno.test("a request whose grammar finds nothing for long can be cancelled", async () => {
  const { loop, asked } = openFake();
  const slow = loop.submit(CONSTRAINED);
  const constraint = slowLater();
  asked[0]?.resolve(constraint);
  const { promise, resolve } = Promise.withResolvers<string>();
  slow.listen(({ kind }) => kind === "finish" && resolve(kind));
  for (let turn = 0; turn < 100; turn++) await setImmediate();
  slow.cancel();
  assert.equal(await promise, "finish");
  await loop.idle();
  constraint.found();
});

Deno.test("a request that comes during the forward after which all others wait for their grammars is answered", async () => {
  const { loop, asked } = openFake();
  const plain = await resultOf(loop.submit(ASKED));
  const slow = resultOf(loop.submit(CONSTRAINED));
  let found = () => {};
  const advanced = new Promise<void>((resolve) => void (found = resolve));
  let later: ReturnType<typeof resultOf> | undefined;
  asked[0]?.resolve({
    ...anything(),
    advance() {
      // As a message does that is received before the forward's result is handled.
      later ??= resultOf(loop.submit(ASKED));
      return advanced;
    },
  });
  while (later === undefined) await setImmediate();
  assert.deepEqual((await later).outputIds, plain.outputIds);
  found();
  assert.deepEqual((await slow).outputIds, plain.outputIds);
});

Deno.test("requests are admitted beside a long prompt that waits for its grammar", async () => {
  const { loop, asked } = openFake();
  const plain = await resultOf(loop.submit(ASKED));
  const promptIds = Array.from({ length: 40 }, (_, i) => 5 + i % 3);
  const slow = resultOf(loop.submit({ ...CONSTRAINED, promptIds }));
  let busy: Promise<void> | undefined = new Promise(() => {});
  asked[0]?.resolve({
    ...anything(),
    get busy() {
      return busy;
    },
  });
  for (let turn = 0; turn < 100; turn++) await setImmediate();
  const later = await resultOf(loop.submit(ASKED));
  assert.deepEqual(later.outputIds, plain.outputIds);
  busy = undefined;
  await resultOf(loop.submit(ASKED));
  assert.equal((await slow).outputIds.length, plain.outputIds.length);
});

Deno.test("an abort ends requests beside a grammar that finds nothing for long, also those that wait", async () => {
  const { loop, asked } = openFake();
  const aborts = Array.from({ length: 4 }, () => new AbortController());
  // The fourth waits for a slot.
  const ends = aborts.map(({ signal }) => resultOf(loop.submit({ ...CONSTRAINED, signal })));
  const constraints = asked.map((answer) => {
    const constraint = slowLater();
    answer.resolve(constraint);
    return constraint;
  });
  for (let turn = 0; turn < 100; turn++) await setImmediate();
  for (const at of [3, 0]) {
    aborts[at]?.abort();
    assert.equal((await ends[at])?.finishReason, "interrupt");
  }
  for (const { found } of constraints) found();
  assert.deepEqual(
    (await Promise.all(ends.slice(1, 3))).map(({ finishReason }) => finishReason),
    ["length", "length"],
  );
  await loop.idle();
});

Deno.test("a request with the same prefix does not wait for one whose grammar keeps it from storing it", async () => {
  const { promise: busy, resolve } = Promise.withResolvers<void>();
  const constraint = { ...anything(), busy: busy as Promise<void> | undefined };
  const grammars: Grammars = { open: () => Promise.resolve(constraint), close() {} };
  const { loop } = openCached({ grammars });
  const promptIds = Array.from({ length: 50 }, (_, i) => 2 + i);
  const slow = resultOf(loop.submit({ ...CONSTRAINED, promptIds }));
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  const { outputIds } = await resultOf(loop.submit({ ...ASKED, promptIds }));
  constraint.busy = undefined;
  resolve();
  assert.deepEqual((await slow).outputIds, outputIds);
  await loop.idle();
});

Deno.test("the mask of a prompt's last chunk is asked for, and of no other", async () => {
  const { loop, asked } = openFake();
  const answer = resultOf(loop.submit({
    ...CONSTRAINED,
    promptIds: Array.from({ length: 50 }, (_, i) => 2 + i),
    maxTokens: 1,
  }));
  const { mask, ...others } = anything();
  let masks = 0;
  asked[0]?.resolve({
    ...others,
    get mask() {
      masks++;
      return mask;
    },
  });
  await answer;
  assert.equal(masks, 1);
});

Deno.test("nothing is drafted for a request whose grammar is slow", async () => {
  const { loop, asked } = openFake();
  const plain = await resultOf(loop.submit(ASKED));
  const slow = resultOf(loop.submit(CONSTRAINED));
  asked[0]?.resolve({ ...anything(), slow: true });
  const { outputIds, speculative } = await slow;
  assert.deepEqual(outputIds, plain.outputIds);
  assert.ok(plain.speculative.draft_tokens > 0);
  assert.equal(speculative.draft_tokens, 0);
});

/** Allows anything, and finds what may follow some of the tokens late; asked for more before that, it throws. */
function sometimesLate(drawn: (min: number, max: number) => number): Constraint {
  let busy: Promise<void> | undefined;
  const ready = () => assert.equal(busy, undefined, "asked while it is busy");
  const late = async (turns: number) => {
    for (let turn = 0; turn < turns; turn++) await setImmediate();
    busy = undefined;
  };
  const { mask, ...others } = anything();
  return {
    ...others,
    get busy() {
      return busy;
    },
    get mask() {
      ready();
      return mask;
    },
    advance() {
      ready();
      busy = drawn(0, 3) === 0 ? late(drawn(1, 40)) : undefined;
      return busy;
    },
    fill(_, into) {
      ready();
      into.fill(0xffffffff);
    },
  };
}

Deno.test("texts are the same where grammars are late and requests are preempted", async () => {
  let draws = 0;
  const drawn = (min: number, max: number) =>
    min + Math.floor((max - min + 1) * uniformAt(3, draws++, 0));
  const { loop, counts, asked } = openFake(8);
  for (let turn = 0; turn < 10; turn++) {
    const requests = Array.from({ length: 6 }, (_, i): GenerateRequest => ({
      ...ASKED,
      promptIds: Array.from({ length: drawn(3, 42) }, (_, at) => 5 + at * (i + 1) % 7),
      maxTokens: drawn(10, 59),
    }));
    const texts: (readonly number[])[] = [];
    for (const one of requests) texts.push((await resultOf(loop.submit(one))).outputIds);
    const jobs = requests.map((one, i) =>
      resultOf(loop.submit(i % 2 === 0 ? { ...one, grammar: { kind: "json object" } } : one))
    );
    for (const each of asked.splice(0)) each.resolve(sometimesLate(drawn));
    assert.deepEqual((await Promise.all(jobs)).map(({ outputIds }) => outputIds), texts);
  }
  assert.ok(counts.preemptions > 0);
});

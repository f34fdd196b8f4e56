// The scheduler and the loop against a runner without a device: hundreds of random schedules.
import assert from "node:assert/strict";
// A timer of 0 ms waits for one.
import { setImmediate } from "node:timers/promises";
import fc from "npm:fast-check@4.10.2";
import { type HostDrafter, pureDrafter } from "../../../src/draft/host_drafter.ts";
import type { DraftKind } from "../../../src/engine/device/runner.ts";
import {
  type EngineEvent,
  type GenerateRequest,
  type GenerateResult,
  resultOf,
} from "../../../src/engine/schedule/events.ts";
import { UsageError } from "../../../src/errors.ts";
import { PAGE } from "../../../src/model/device_layout.ts";
import { openSpeculation } from "../../../src/engine/schedule/speculation.ts";
import { staticPlan } from "../../../src/engine/schedule/speculation_choice.ts";
import { promptRows, promptRun } from "../../../src/engine/device/prompt_rows.ts";
import { hash32 } from "../../../src/speculate/noise.ts";
import type { Policy } from "../../../src/speculate/policy.ts";
import { chain, chains } from "../../../src/speculate/round_shape.ts";
import { SIMPLE } from "../../speculate/costs/table.ts";
import { NO_STATES, POISON, tokenAfter, VOCAB } from "../fake_runner.ts";
import { alone, assertNothingLeaked, type Fake, openFake, request, TREES } from "../fake_engine.ts";

/** Proposes chains at times; in the same rounds the device drafts for the other sequences. */
const CHAINS: HostDrafter = pureDrafter({
  name: "chains",
  shapes: chains([1, 3, 5]),
  propose(ids, { depth, device }) {
    const tokens: number[] = [];
    const most = ids.length % 3 === 0 ? Math.min(depth, device + 2) : 0;
    while (tokens.length < most) {
      const next = tokenAfter([...ids, ...tokens]);
      if (next > VOCAB) break;
      tokens.push(ids.length % 4 === 0 && tokens.length === 1 ? next ^ 1 : next);
    }
    return { tokens, parents: tokens.map((_, i) => i) };
  },
});

/** How a caller treats its request. */
interface Caller {
  readonly request: GenerateRequest;
  /** Turns of the event loop, or of the microtask queue, before the request is submitted. */
  readonly after: number;
  /** Events of its own after which the caller leaves the loop, or aborts its signal. */
  readonly leaves: number | undefined;
  readonly aborts: number | undefined;
}

function seldom<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  const never = { arbitrary: fc.constant(undefined), weight: 5 };
  return fc.oneof(never, { arbitrary: value, weight: 1 });
}

const CALLER: fc.Arbitrary<Caller> = fc.record({
  request: fc.record({
    // Prompts that begin alike, so that pages are shared.
    promptIds: fc.tuple(
      fc.integer({ min: 0, max: 40 }),
      fc.constantFrom(2, 3),
      fc.array(fc.integer({ min: 2, max: 6 }), { minLength: 2, maxLength: 8 }),
      fc.boolean(),
    ).map(([common, kind, rest, poisoned]) => [
      ...Array.from({ length: common }, (_, i) => 2 + (i * kind) % 40),
      ...rest,
      ...poisoned && rest.length === 8 ? [POISON] : [],
    ]),
    maxTokens: fc.oneof(fc.integer({ min: 1, max: 45 }), fc.constant(45)),
    ignoreEos: fc.boolean(),
    numSteps: fc.constantFrom(0, 1, 3),
  }).map(request),
  after: fc.integer({ min: 0, max: 40 }),
  leaves: seldom(fc.integer({ min: 0, max: 12 })),
  aborts: seldom(fc.integer({ min: 0, max: 12 })),
});

/** Runs one caller to its end and holds what it got against what it gets alone. */
async function call(
  { loop }: Fake,
  { request, leaves, aborts }: Caller,
): Promise<void> {
  const abort = new AbortController();
  if (aborts === 0) abort.abort();
  const expected = alone(request);
  const got: number[] = [];
  let seen = 0;
  try {
    for await (const event of loop.submit({ ...request, signal: abort.signal })) {
      if (seen === leaves) return;
      if (++seen === aborts) abort.abort();
      if (event.kind === "round") got.push(...event.ids);
      if (event.kind !== "finish") continue;
      assert.deepEqual(event.result.outputIds, got);
      const { finishReason } = event.result;
      if (finishReason === "interrupt") assert.ok(abort.signal.aborted);
      else assert.deepEqual(got, expected);
    }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    assert.match(error.message, /are not numbers/);
    assert.equal(expected, undefined);
  }
  const whole = expected ?? got;
  assert.deepEqual(got, whole.slice(0, got.length));
}

/** Chooses another depth every few rounds; at times it must learn those rounds before the next choice. */
const RESTLESS: Policy<number> = {
  tiers: chains([0, 1, 3]),
  start: 0,
  pick: (round) => ({ tier: chain([0, 1, 3, 3][hash32(round >> 2, 5, 1) % 4] ?? 0) }),
  holds: (round) => 4 - round % 4,
  mayLag: (round) => hash32(round >> 2, 5, 2) % 3 > 0,
  learn: (round) => ({ state: round + 1 }),
  report: () => ({ json: {}, rows: [] }),
};

Deno.test("500 random schedules: every text is what it is alone, and no page leaks", async () => {
  const settings = fc.record({
    pages: fc.constantFrom(8, 10, 12, 14, 60),
    batch: fc.constantFrom(1, 3, 4),
    draft: fc.constantFrom<DraftKind>("none", "always", "catches up"),
    cached: fc.boolean(),
    roundsPerSync: fc.constantFrom(1, 3, 8, "auto" as const),
    slow: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
    overlaps: fc.boolean(),
    states: fc.constantFrom(undefined, NO_STATES),
    drafter: fc.constantFrom(undefined, TREES, CHAINS),
    restless: fc.boolean(),
  });
  const seen = { preemptions: 0, waits: 0, cached: 0, behindPrompts: 0 };
  const schedules = fc.asyncProperty(
    settings,
    fc.array(CALLER, { minLength: 2, maxLength: 8 }),
    async ({ pages, batch, slow, overlaps, states, restless, ...options }, callers) => {
      const speculation = restless ? openSpeculation("restless", RESTLESS) : undefined;
      const fake = openFake({
        ...options,
        capacity: { pages, batch },
        ...speculation && { speculation },
      });
      Object.assign(fake.runner, { overlaps, states });
      // If slow, every piece of work takes a turn of the event loop.
      const turn = () => setImmediate();
      if (slow) fake.runner.onWork = turn;
      await Promise.all(callers.map(async (caller) => {
        for (let i = 0; i < caller.after; i++) await (slow ? turn() : Promise.resolve());
        await call(fake, caller);
      }));
      await fake.loop.idle();
      seen.preemptions += fake.scheduler.counts.preemptions;
      seen.waits += fake.scheduler.counts.waits;
      seen.cached += fake.cache.size;
      seen.behindPrompts += fake.runner.behindPrompts;
      assertNothingLeaked(fake);
    },
  );
  await fc.assert(schedules, { numRuns: 500 });
  const { preemptions, waits, cached, behindPrompts } = seen;
  const all = preemptions > 50 && waits > 50 && cached > 500 && behindPrompts > 100;
  assert.ok(all, JSON.stringify(seen));
});

Deno.test("four callers: one cancelled, one failing, two finishing", async () => {
  const fake = openFake({ capacity: { batch: 4 } });
  const [cancelled, failing, first, second] = await Promise.allSettled([
    (async () => {
      const kinds: string[] = [];
      for await (const { kind } of fake.loop.submit(request({ maxTokens: 100 }))) {
        kinds.push(kind);
        if (kinds.length === 5) break;
      }
      return kinds.length;
    })(),
    resultOf(fake.loop.submit(request({ promptIds: [POISON, 4], ignoreEos: true }))),
    resultOf(fake.loop.submit(request({ promptIds: [9, 8, 7] }))),
    resultOf(fake.loop.submit(request({ promptIds: [4, 4, 4], numSteps: 0 }))),
  ]);
  assert.deepEqual(cancelled, { status: "fulfilled", value: 5 });
  assert.ok(failing?.status === "rejected" && failing.reason instanceof UsageError);
  for (const [of, promptIds] of [[first, [9, 8, 7]], [second, [4, 4, 4]]] as const) {
    assert.ok(of?.status === "fulfilled");
    assert.deepEqual(of.value.outputIds, alone(request({ promptIds })));
  }
  assertNothingLeaked(fake);
});

Deno.test("of a request that fails no page of its output is cached", async () => {
  const fake = openFake();
  // One page is the prompt's; the logits are broken once a second one is full.
  const promptIds = [...Array.from({ length: PAGE + 8 }, (_, i) => 2 + i), POISON];
  const failing = resultOf(fake.loop.submit(request({ promptIds, ignoreEos: true })));
  await assert.rejects(failing, /are not numbers/);
  assert.ok(promptIds.length + 8 >= 2 * PAGE);
  assert.equal(fake.cache.size, 1);
  assertNothingLeaked(fake);
});

Deno.test("a runner that fails ends every request, and later ones at once", async () => {
  const fake = openFake();
  let work = 0;
  fake.runner.onWork = () => {
    if (++work === 4) throw new Error("device lost");
    return Promise.resolve();
  };
  const ends = await Promise.allSettled(
    [[5, 6], [7, 8], [9, 9]].map((promptIds) =>
      resultOf(fake.loop.submit(request({ promptIds, ignoreEos: true })))
    ),
  );
  for (const end of ends) {
    assert.ok(end.status === "rejected");
    assert.equal(end.reason.message, "device lost");
  }
  await assert.rejects(resultOf(fake.loop.submit(request({}))), { message: "device lost" });
});

for (const how of ["at once, as the engine's thread does", "a microtask later"]) {
  Deno.test(`events are read before the device works on, by a listener that reads them ${how}`, async () => {
    const fake = openFake();
    // What a reader has seen when each piece of work begins: work keeps the thread until it ends.
    const seen: number[] = [];
    let read = 0;
    const { prefill, begin } = fake.runner;
    fake.runner.prefill = (...of) => {
      seen.push(read);
      return prefill(...of);
    };
    fake.runner.begin = async (...of) => {
      const { results } = await begin(...of);
      return {
        results() {
          seen.push(read);
          return results();
        },
      };
    };
    const told: number[] = [];
    const onEvent = (event: EngineEvent) => {
      if (event.kind !== "round") return;
      read += event.ids.length;
      told.push(read);
    };
    const stream = fake.loop.submit(request({ promptIds: [9, 8, 7], ignoreEos: true }));
    if (how === "a microtask later") stream.listen((event) => queueMicrotask(() => onEvent(event)));
    else stream.listen(onEvent);
    await fake.loop.idle();
    assert.equal(read, 20);
    // Nothing is read before the prefill; before each round the tokens of all earlier rounds are.
    assert.deepEqual(seen, [0, ...told.slice(0, -1)]);
  });
}

Deno.test("a closed engine ends what runs", async () => {
  const fake = openFake();
  const running = resultOf(fake.loop.submit(request({ ignoreEos: true, maxTokens: 100 })));
  await Promise.resolve();
  fake.loop.close();
  await assert.rejects(running, { message: "the engine is closed" });
  await fake.loop.idle();
});

Deno.test("requests behind one system prompt share its pages while they run", async () => {
  const fake = openFake({ capacity: { batch: 4, pages: 60 } });
  const system = Array.from({ length: 50 }, (_, i) => 2 + i);
  const cached: number[] = [];
  const runs = [10, 11, 12, 13].map((last) =>
    resultOf(
      fake.loop.submit(request({ promptIds: [...system, last], ignoreEos: true })),
      (event: EngineEvent) => {
        if (event.kind === "prefill" && event.done === event.total) cached.push(event.cached);
      },
    )
  );
  const results = await Promise.all(runs);
  // 50 tokens in common: three whole pages of 16.
  assert.deepEqual(cached, [0, 48, 48, 48]);
  assert.deepEqual(results.map(({ cachedTokens }) => cachedTokens), cached);
  assertNothingLeaked(fake);
});

Deno.test("1,000 requests with few pages finish as alone", async () => {
  const fake = openFake({ capacity: { batch: 8, pages: 14 }, roundsPerSync: 8 });
  const requests = Array.from({ length: 1000 }, (_, n) =>
    request({
      promptIds: Array.from({ length: 5 + n % 31 }, (_, i) => 2 + (i * (n % 13)) % 90),
      maxTokens: 1 + n % 9 + (n % 5 ? 0 : 40),
      ignoreEos: n % 2 === 0,
    }));
  const results = await Promise.all(
    requests.map((each) => resultOf(fake.loop.submit(each))),
  );
  assert.deepEqual(results.map(({ outputIds }) => outputIds), requests.map((each) => alone(each)));
  const { preemptions, waits } = fake.scheduler.counts;
  assert.ok(preemptions > 20 && waits > 20, `${preemptions} preemptions, ${waits} waits`);
  assertNothingLeaked(fake);
});

Deno.test("preempted sequences find their pages again where nobody took them", async () => {
  const prefills: number[] = [];
  const fake = openFake({ capacity: { batch: 3, pages: 16, prefillRows: 64 } });
  const { prefill } = fake.runner;
  fake.runner.prefill = (chunks) => {
    prefills.push(...chunks.map(({ sequence, to }) => to - sequence.stored));
    return prefill(chunks);
  };
  const prompts = [3, 4, 5].map((id) => Array(30).fill(id));
  const results = await Promise.all(
    prompts.map((promptIds) =>
      resultOf(fake.loop.submit(request({ promptIds, ignoreEos: true, maxTokens: 60 })))
    ),
  );
  for (const [i, { outputIds }] of results.entries()) {
    const of = request({ promptIds: prompts[i] as number[], ignoreEos: true, maxTokens: 60 });
    assert.deepEqual(outputIds, alone(of));
  }
  assert.ok(fake.scheduler.counts.preemptions > 0);
  // Some resumed requests have only a part of their tokens to store again.
  assert.ok(prefills.slice(3).some((rows) => rows < 30), prefills.join());
  assertNothingLeaked(fake);
});

Deno.test("an abort is heard after each small chunk of a prompt", async () => {
  const fake = openFake({ capacity: { prefillRows: 64 }, chunkRows: 8 });
  const done: number[] = [];
  const result = await resultOf(
    fake.loop.submit(request({ promptIds: Array(60).fill(9) })),
    (event) => event.kind === "prefill" && done.push(event.done),
  );
  assert.deepEqual(done, [0, 8, 16, 24, 32, 40, 48, 56, 60]);
  assert.deepEqual(result.outputIds, alone(request({ promptIds: Array(60).fill(9) })));
  const abort = new AbortController();
  const { signal } = abort;
  const stopped = await resultOf(
    fake.loop.submit(request({ promptIds: Array(60).fill(10), signal })),
    (event) => event.kind === "prefill" && event.done >= 16 && abort.abort(),
  );
  assert.deepEqual([stopped.finishReason, stopped.outputIds], ["interrupt", []]);
  assertNothingLeaked(fake);
});

Deno.test("a prompt goes in smaller chunks while another request decodes", async () => {
  const prefills: number[] = [];
  const fake = openFake({
    capacity: { batch: 2, prefillRows: 1024, contextLength: 2048, pages: 300 },
    cached: false,
  });
  const { prefill } = fake.runner;
  fake.runner.prefill = (chunks) => {
    prefills.push(...chunks.map(({ sequence, to }) => to - sequence.stored));
    return prefill(chunks);
  };
  const prompts = [Array(1200).fill(3), Array(1900).fill(4)];
  const asked = prompts.map((promptIds) => request({ promptIds, ignoreEos: true, maxTokens: 20 }));
  const results = await Promise.all(asked.map((each) => resultOf(fake.loop.submit(each))));
  assert.deepEqual(
    results.map(({ outputIds }) => outputIds),
    asked.map((each) => alone(each, 2048)),
  );
  // The first prompt's last 176 tokens leave room for 848 of the second, in whole runs; then the first decodes.
  assert.deepEqual(prefills, [1024, 176, 848, 512, 512, 28]);
  assertNothingLeaked(fake);
});

Deno.test("no request starves: first tokens come in the order of arrival, whatever the lengths of prompts", async () => {
  for (const seed of [1, 2, 3]) {
    const fake = openFake({
      capacity: { batch: 4, prefillRows: 64, contextLength: 1024, pages: 160 },
      cached: false,
    });
    const began: number[] = [];
    let submitted = 0;
    let forwards = 0;
    const waits: number[] = [];
    const { prefill } = fake.runner;
    fake.runner.prefill = (chunks) => {
      forwards++;
      return prefill(chunks);
    };
    // One long prompt in five, and a new request for each that ends: someone always waits.
    const run = async (): Promise<void> => {
      const order = submitted++;
      const length = hash32(seed, order, 1) % 5 === 0 ? 600 : 1 + hash32(seed, order, 2) % 40;
      const maxTokens = 1 + hash32(seed, order, 3) % 30;
      const asked = request({ promptIds: Array(length).fill(3 + order % 80), maxTokens });
      const since = forwards;
      const { outputIds } = await resultOf(fake.loop.submit(asked), ({ kind }) => {
        if (kind !== "round" || began.includes(order)) return;
        began.push(order);
        waits.push(forwards - since);
      });
      assert.deepEqual(outputIds, alone(asked, 1024));
      if (submitted < 60) await run();
    };
    await Promise.all(Array.from({ length: 9 }, run));
    assert.equal(began.length, submitted);
    // Requests of one forward are reported in the order of its chunks, which is also the order of arrival.
    assert.deepEqual(began, began.toSorted((a, b) => a - b));
    // Nine requests have at most 9 * 10 forwards of 64 rows before a token.
    assert.ok(Math.max(...waits) <= 90, `${Math.max(...waits)}`);
    assertNothingLeaked(fake);
  }
});

/** Time of each row of a prompt's program, and time of each forward on top. */
const [ROW_MS, FORWARD_MS] = [0.05, 1];

const COSTS = {
  ...SIMPLE,
  prefill: [8, 2048].map((at) => ({ at, ms: FORWARD_MS + ROW_MS * at })),
};

/**
 * Returns the rows of each prompt forward and the longest time between two rounds of the first request. A round takes
 * 6 ms, and the other prompts come while that request decodes.
 */
async function runLimited(prompts: readonly number[], sloItlMs: number | undefined) {
  let clock = 0;
  const fake = openFake({
    capacity: { batch: 8, prefillRows: 1024, contextLength: 2048, pages: 800 },
    cached: false,
    roundsPerSync: "auto",
    clock: () => clock,
    costs: () => COSTS,
    ...sloItlMs !== undefined && { sloItlMs },
  });
  const rows: number[] = [];
  const { prefill, begin } = fake.runner;
  fake.runner.prefill = (chunks) => {
    const tokens = chunks.map(({ sequence: { stored }, to }) => to - stored);
    const { count } = promptRows(tokens, promptRun(fake.runner.capacity));
    rows.push(count);
    clock += FORWARD_MS + ROW_MS * count;
    return prefill(chunks);
  };
  fake.runner.begin = (sequences, round) => {
    clock += 6 * round.count + 0.5;
    return begin(sequences, round);
  };
  const asked = prompts.map((length, i) =>
    request({
      promptIds: Array(length).fill(3 + i),
      ignoreEos: true,
      maxTokens: i === 0 ? 400 : 20,
      numSteps: 0,
    })
  );
  const arrived: number[] = [];
  const later: Promise<GenerateResult>[] = [];
  const submit = (each: GenerateRequest) => resultOf(fake.loop.submit(each));
  const [first = assert.fail(), ...others] = asked;
  const result = await resultOf(fake.loop.submit(first), ({ kind }) => {
    if (kind !== "round") return;
    // The other requests come together once the time of a round is known; rounds then go two at a time.
    if (arrived.push(clock) === 12) later.push(...others.map(submit));
  });
  const results = [result, ...await Promise.all(later)];
  const texts = results.map(({ outputIds }) => outputIds);
  assert.deepEqual(texts, asked.map((each) => alone(each, 2048)));
  assertNothingLeaked(fake);
  const [, ...after] = arrived;
  return { rows, longest: Math.max(...after.map((at, i) => at - (arrived[i] ?? 0))) };
}

Deno.test("--slo-itl-ms: a forward of prompts has the rows for which others may wait, and texts stay the same", async () => {
  const free = await runLimited([40, 1900, 90], undefined);
  assert.equal(free.rows[1], 512);
  assert.ok(free.longest > 30, `${free.longest}`);
  const limited = await runLimited([40, 1900, 1900, 1900, 1024], 26);
  // Groups have two rounds at most, 12.5 ms, and 128 rows take 7.4. While prompts are stored, groups have one round. So
  // there is time for 256 rows once the longer groups are long ago.
  assert.deepEqual([limited.rows[1], limited.rows.at(-1)], [128, 256]);
  assert.ok(limited.longest <= 26, `${limited.longest}`);
  // Each of many short prompts is padded to whole runs, and their forward to a program's rows.
  const short = await runLimited([40, ...Array(7).fill(33)], 16);
  assert.ok(short.longest <= 16, `${short.longest}`);
});

Deno.test("--slo-itl-ms: where rounds alone take longer, prompts go on by rows that cost little more than a run", async () => {
  const { rows } = await runLimited([40, 900], 5);
  const [, ...others] = rows;
  // 4 rows take 1.2 ms and 8 take 1.4, so forwards have 8 rows until nobody waits.
  assert.ok(others.slice(0, -1).every((count) => count === 8), `${rows}`);
  assert.ok(others.length > 20);
});

/** Records the chunks of each prompt forward as "name: tokens"; a request's name is the first token of its prompt. */
function recordForwards({ runner }: Fake): string[] {
  const forwards: string[] = [];
  const { prefill } = runner;
  runner.prefill = (chunks, ...more) => {
    const names = chunks.map(({ sequence: { ids, stored }, to }) => `${ids[0]}: ${to - stored}`);
    forwards.push(names.join(", "));
    return prefill(chunks, ...more);
  };
  return forwards;
}

Deno.test("short prompts are stored in one forward, as many as its rows hold, and long ones go on beside them", async () => {
  const fake = openFake({
    capacity: { batch: 6, prefillRows: 64, promptRun: 8, contextLength: 256, pages: 100 },
    cached: false,
  });
  const forwards = recordForwards(fake);
  const lengths = [10, 8, 150, 7, 20, 5];
  const asked = lengths.map((length, i) =>
    request({ promptIds: Array(length).fill(10 + i), ignoreEos: true, maxTokens: 4 })
  );
  const results = await Promise.all(asked.map((each) => resultOf(fake.loop.submit(each))));
  assert.deepEqual(results.map(({ outputIds }) => outputIds), asked.map((of) => alone(of, 256)));
  assert.deepEqual(forwards, [
    // 16, 8 and 40 rows, since each prompt has whole runs.
    "10: 10, 11: 8, 12: 40",
    "12: 64",
    // The oldest prompt first, then the others: 48, 8 and 8 rows.
    "12: 46, 13: 7, 14: 8",
    "14: 12, 15: 5",
  ]);
  assertNothingLeaked(fake);
});

Deno.test("a prefix that is just being stored is waited for, and no longer than until it is there", async () => {
  const fake = openFake({
    capacity: { batch: 6, prefillRows: 64, promptRun: 8, contextLength: 256, pages: 100 },
  });
  const forwards = recordForwards(fake);
  // Prompts with the same system prompt have two pages of 16 in common.
  const system = (first: number) => Array.from({ length: 36 }, (_, i) => first + i);
  const cached: number[] = [];
  const asked = [
    [2, 3],
    [...system(10), 2, 2, 2],
    [...system(10), 3],
    [11, 12, 13],
    [...system(40), ...Array(40).fill(2)],
    [...system(40), 3],
  ]
    .map((promptIds) => request({ promptIds, ignoreEos: true, maxTokens: 4 }));
  const results = await Promise.all(asked.map(async (each) => {
    const { outputIds, cachedTokens } = await resultOf(fake.loop.submit(each));
    cached.push(cachedTokens);
    return outputIds;
  }));
  assert.deepEqual(results, asked.map((of) => alone(of, 256)));
  assert.deepEqual(forwards, [
    "2: 2, 10: 39",
    "10: 5, 11: 3, 40: 48",
    // The forward before has stored the common pages, but not the whole prompt that begins with them.
    "40: 28, 40: 5",
  ]);
  assert.deepEqual(cached.toSorted((a, b) => a - b), [0, 0, 0, 0, 32, 32]);
  assertNothingLeaked(fake);
});

Deno.test("no more rounds go together than the policy's choice holds for", async () => {
  const together: number[] = [];
  const { speculation } = staticPlan(chain(3));
  const fake = openFake({
    roundsPerSync: 8,
    speculation: { ...speculation, holds: () => 2 },
    onRound: (round) => together.push(round.together),
  });
  const asked = request({ ignoreEos: true, maxTokens: 60 });
  const { outputIds } = await resultOf(fake.loop.submit(asked));
  assert.deepEqual(outputIds, alone(asked));
  assert.equal(Math.max(...together), 2);
  assertNothingLeaked(fake);
});

Deno.test("a request is admitted once the states before it are placed: it may begin where one of them ends", async () => {
  const fake = openFake();
  const placed = Promise.withResolvers<void>();
  let saving: Promise<void> | undefined = placed.promise;
  const states = {
    count: 0,
    get saving() {
      return saving;
    },
    mayHave: () => true,
    save: () => Promise.resolve(0),
    load: () => {},
  };
  Object.assign(fake.runner, { states });
  const forwards = recordForwards(fake);
  const result = resultOf(fake.loop.submit(request({})));
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  assert.deepEqual(forwards, []);
  saving = undefined;
  placed.resolve();
  assert.deepEqual((await result).outputIds, alone(request({})));
  assert.equal(forwards.length, 1);
  assertNothingLeaked(fake);
});

Deno.test("a drafter that has seldom an idea costs no overlap: rounds go several a sync", async () => {
  const together: number[] = [];
  let clock = 0;
  const drafter: HostDrafter = pureDrafter({
    name: "seldom",
    shapes: chains([3]),
    propose: (ids) =>
      ids.length === 60 ? { tokens: [2], parents: [0] } : { tokens: [], parents: [] },
  });
  const fake = openFake({ drafter, roundsPerSync: "auto", capacity: { batch: 1 } });
  const { begin } = fake.runner;
  fake.runner.begin = (sequences, asked) => {
    together.push(asked.count);
    // The host takes 4 ms a group, the device 1 ms a round.
    clock += 4 + asked.count;
    return begin(sequences, asked);
  };
  const own = performance.now;
  performance.now = () => clock;
  using _ = { [Symbol.dispose]: () => void (performance.now = own) };
  const asked = request({ ignoreEos: true, maxTokens: 100, numSteps: 1 });
  const { outputIds } = await resultOf(fake.loop.submit(asked));
  assert.deepEqual(outputIds, alone(asked));
  assert.ok(Math.max(...together) > 2, `${together}`);
});

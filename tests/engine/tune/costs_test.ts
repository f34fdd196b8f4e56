import assert from "node:assert/strict";
import { resultOf } from "../../../src/engine/schedule/events.ts";
import { statically } from "../../../src/engine/drafting.ts";
import { type LocalOptions, openEngine } from "../open.ts";
import { openSequence } from "../../../src/engine/device/single_sequence.ts";
import { costsPath } from "../../../src/engine/tune/costs/costs_file.ts";
import { measureCosts } from "../../../src/engine/tune/costs/measure.ts";
import { openCosts } from "../../../src/engine/tune/costs/engine_costs.ts";
import { promptLengths } from "../../../src/engine/tune/costs/plan.ts";
import { openPartClock } from "../../../src/engine/tune/program_timer.ts";
import { compiler } from "../../../src/gpu/program.ts";
import { catchUpMs, prefillMs, roundMs } from "../../../src/speculate/costs/lookup.ts";
import { parseCosts } from "../../../src/speculate/costs/parse.ts";
import type { CostTable } from "../../../src/speculate/costs/table.ts";
import type { Policy } from "../../../src/speculate/policy.ts";
import { chain, chains } from "../../../src/speculate/round_shape.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";
import { generatedPrompt } from "../../prompts.ts";
import { SIMPLE } from "../../speculate/costs/table.ts";
import { decode, goldenCases, openFledgling, openWhole } from "../fledgling.ts";
import { assertNothingHeld } from "../held.ts";
import { exhaustive } from "../../exhaustive.ts";

const cache = Deno.makeTempDirSync({ prefix: "eyrie-costs-" });
Deno.env.set("XDG_CACHE_HOME", cache);
const runner = await openFledgling("eagle3", 2);
Deno.test.afterAll(() => {
  runner.gpu[Symbol.dispose]();
  Deno.removeSync(cache, { recursive: true });
});

const NAMES = { adapter: "here", model: "target", draft: "head", buckets: [1, 2] };
/** A clock that advances by TICK_MS at each reading, so that no test depends on the machine's clock. */
function ticking(): () => number {
  let ms = -TICK_MS;
  return () => ms += TICK_MS;
}
/** A few ticks last as long as an idle GPU takes to raise its clocks. */
const TICK_MS = 10;

/** As `ticking`, until this many passes were made: then the time for measuring is over. */
function tickingFor(passes: number) {
  const tick = ticking();
  const progress: number[] = [];
  return {
    progress,
    now: () => tick() + (progress.length < passes ? 0 : 60_000),
    onProgress: (done: number) => void progress.push(done),
  };
}

const ASKED = { names: NAMES, maxBatch: 2, depths: [0, 1, 3], chunkRows: 64, seconds: 1 };

function assertFree(): void {
  assert.equal(runner.pool.free, runner.pool.total);
  using stack = new DisposableStack();
  for (let slot = 0; slot < runner.capacity.batch; slot++) stack.use(openSequence(runner));
}

async function golden(): Promise<number[]> {
  const [one] = goldenCases();
  assert.ok(one);
  using sequence = openWhole(runner);
  const settings = { numSteps: 3, most: 20, sampling: [GREEDY] };
  const [found] = await decode(runner, [sequence], [one.prompt_ids], settings);
  return found?.ids ?? [];
}

exhaustive.test("measured costs: every list has its ends, and nothing is left taken or changed", async () => {
  const before = await golden();
  const { progress, ...clock } = tickingFor(3);
  const found = await measureCosts(runner, { ...ASKED, ...clock });
  assertFree();
  assert.deepEqual(await golden(), before);
  const { table, skipped, repeats } = found;
  assert.deepEqual(parseCosts(JSON.parse(JSON.stringify(table))), table);
  const ends = (list: CostTable["verify"]) => [list[0]?.at, list.at(-1)?.at];
  assert.deepEqual(ends(table.verify), [1, 8]);
  assert.deepEqual(ends(table.extend), [4, 8]);
  assert.deepEqual(ends(table.level), [1, 2]);
  assert.deepEqual(ends(table.catchUp), [1, 32]);
  assert.deepEqual(ends(table.prefill), [8, 64]);
  const packings = found.readings.filter(({ part }) => part === "packing");
  assert.ok(packings.length >= repeats, `${packings.length}`);
  assert.ok(repeats === 4 && skipped.length > 0, "more than fits into so little time");
  assert.ok(progress.length === repeats - 1 && progress.every((done) => done > 0 && done <= 1));
  const round = { batch: 2, steps: 3, cells: 40 };
  for (const ms of [roundMs(table, round), catchUpMs(table, 20), prefillMs(table, 20)]) {
    assert.ok(ms > 0 && Number.isFinite(ms));
  }
});

exhaustive.test("measured costs: with time, every number of steps at every batch, and long contexts", async () => {
  const small = { ...ASKED, depths: [0, 1], seconds: 1.5, maxBatch: 1, ...tickingFor(3) };
  const { table, readings, repeats, skipped } = await measureCosts(runner, small);
  assert.deepEqual([repeats, skipped], [4, []]);
  assert.deepEqual(table.verify.map(({ at }) => at), [1, 2]);
  assert.deepEqual(table.catchUp.map(({ at }) => at), [1, 4, 16, 64]);
  assert.equal(
    new Set(readings.filter(({ part }) => part === "verify").map((one) => one.cells)).size,
    2,
  );
  assertFree();
});

exhaustive.test("measured costs: without a draft's steps there is nothing of the draft", async () => {
  const { table, repeats } = await measureCosts(runner, { ...ASKED, depths: [0], now: ticking() });
  assert.equal(repeats, 15, "no more, whatever the time");
  assert.deepEqual([table.level, table.extend, table.catchUp], [[], [], []]);
  assert.deepEqual(table.verify.map(({ at }) => at), [1, 2]);
  assertFree();
});

exhaustive.test("measured costs: where pages are short, what needs them is left out", async () => {
  using _ = openWhole(runner);
  const { skipped, table } = await measureCosts(runner, { ...ASKED, now: ticking() });
  assert.ok(skipped.some((name) => name.startsWith("rounds of 2 with 3 steps")));
  assert.deepEqual([table.verify[0]?.at, table.verify.at(-1)?.at], [1, 4]);
});

Deno.test("measured costs: where nearly no time is given, what a table cannot do without", async () => {
  const { table, probes, repeats } = await measureCosts(runner, {
    ...ASKED,
    seconds: 1e-6,
    now: ticking(),
  });
  assert.deepEqual([probes, repeats], [3, 1]);
  assert.deepEqual(table.verify.map(({ at }) => at), [1, 4, 8]);
  assertFree();
});

Deno.test("measured costs: an abort ends it", async () => {
  const { repeats, table } = await measureCosts(runner, { ...ASKED, signal: AbortSignal.abort() });
  assert.deepEqual([repeats, table.verify], [0, []]);
  assertFree();
});

Deno.test("without timestamps the clock times parts, what waiting takes taken off", async () => {
  const { steps } = (await runner.programs.round({ ...chain(0), batch: 1 })).verify;
  const clock = [0, 2, 10, 17, 20, 21];
  using timer = await openPartClock(runner.gpu, () => clock.shift() ?? 0);
  assert.deepEqual(await timer.time([{ steps }, { steps: [] }, { steps }]), [5, 0, 0]);
  assert.equal(compiler(runner.gpu).created.modules, 0);
});

Deno.test("measured beside a prefix cache: what it keeps stays, and is found again", async () => {
  using engine = await openEngine({
    limits: { maxBatch: 2, maxKvTokens: 640 },
    hooks: { plan: statically(1) },
  });
  const request = {
    promptIds: Array.from({ length: 200 }, (_, i) => 5 + i % 900),
    sampling: GREEDY,
    maxTokens: 12,
    stop: [],
    ignoreEos: true,
  };
  const before = await resultOf(engine.submit(request));
  const kept = engine.cache.size;
  assert.ok(kept >= 12);
  const { table } = await engine.costs.measure({ seconds: 0.1, keep: false });
  assert.ok(table.verify.length > 0);
  assertNothingHeld(engine);
  assert.equal(engine.cache.size, kept);
  const after = await resultOf(engine.submit(request));
  assert.deepEqual(after.outputIds, before.outputIds);
  assert.ok(after.cachedTokens >= 192);
});

/** Goes by costs: 1 draft where the table says that it is cheap, always. */
function frugal(heard: (CostTable | undefined)[]): Policy<null> {
  return {
    tiers: chains([0, 1, 3]),
    start: null,
    costs: true,
    pick(_, { costs }) {
      heard.push(costs);
      return { tier: chain(costs && heard.length % 3 > 0 ? 1 : 0) };
    },
    holds: () => 1,
    learn: (state) => ({ state }),
    report: () => ({ json: {}, rows: [] }),
  };
}

async function answer(options: LocalOptions) {
  using engine = await openEngine({ ...options, limits: { maxBatch: 2, ...options.limits } });
  const messages = [{ role: "user", content: generatedPrompt(3) }] as const;
  const { text } = await resultOf(engine.submit({
    promptIds: engine.text.encodePrompt({ messages }),
    sampling: GREEDY,
    maxTokens: 40,
    stop: [],
    ignoreEos: true,
  }));
  assertNothingHeld(engine);
  return { text, line: engine.info.costsLine, table: engine.costs.table };
}

Deno.test("a policy that goes by costs: measured at the first start, then found, and refined", async () => {
  const plain = await answer({ hooks: { plan: statically(0) } });
  assert.deepEqual([plain.line, plain.table], [undefined, undefined]);
  const heard: (CostTable | undefined)[] = [];
  const first = await answer({ hooks: { plan: { policy: frugal(heard) } } });
  assert.equal(first.text, plain.text);
  // The rest of the line depends on how much there was time to measure.
  assert.match(
    first.line ?? "",
    /^costs, measured in [\d.]+ s: a round of 1 takes [\d.]+ ms, .* with 3 drafts/,
  );
  assert.ok(heard[0] && !heard[0].refined?.rounds.length, "known before the first round");
  assert.ok(heard.at(-1)?.refined?.rounds.some(({ batch, steps }) => batch === 1 && steps === 1));
  const { refined: _, ...written } = first.table as CostTable;
  const { tables } = JSON.parse(Deno.readTextFileSync(costsPath() as string));
  assert.deepEqual(Object.values(tables), [JSON.parse(JSON.stringify(written))]);

  const again = await answer({ hooks: { plan: { policy: frugal([]) } } });
  assert.deepEqual([again.text, again.line], [plain.text, undefined]);
  assert.deepEqual(again.table?.verify, first.table?.verify);
  const more = await answer({
    limits: { maxBatch: 3 },
    hooks: { plan: { policy: frugal([]) } },
    device: { costs: "off" },
  });
  assert.deepEqual([more.text, more.line, more.table], [plain.text, undefined, undefined]);
});

Deno.test("an abort ends the opening while costs are measured, and none are kept", async () => {
  let calls = 0;
  const opening = (onProgress: () => void, signal = new AbortController().signal) =>
    openEngine({
      limits: { maxBatch: 2, contextLength: 512 },
      hooks: { plan: { policy: frugal([]) }, onProgress, signal },
    });
  (await opening(() => void calls++))[Symbol.dispose]();
  Deno.removeSync(costsPath() as string);
  // The last progress is told before costs are measured.
  const abort = new AbortController();
  const aborted = opening(() => calls-- === 1 && abort.abort(), abort.signal);
  await assert.rejects(aborted, { name: "AbortError" });
  assert.throws(() => Deno.statSync(costsPath() as string), Deno.errors.NotFound);
});

Deno.test("--costs FILE: read as it is, or refused before anything is loaded", async () => {
  const path = `${cache}/mine.json`;
  Deno.writeTextFileSync(path, JSON.stringify(SIMPLE));
  const heard: (CostTable | undefined)[] = [];
  const { line } = await answer({
    hooks: { plan: { policy: frugal(heard) } },
    device: { costs: path },
  });
  assert.equal(line, undefined);
  // The prompt has been timed before the first round.
  const { refined, ...read } = heard[0] as CostTable;
  assert.deepEqual(read, { ...SIMPLE, buckets: [1, 2] });
  assert.deepEqual([refined?.all, refined?.rounds, refined?.catchUp], [1, [], 1]);
  Deno.writeTextFileSync(path, JSON.stringify({ ...SIMPLE, verify: [] }));
  await assert.rejects(openEngine({ device: { costs: path }, model: { model: "/nowhere" } }), {
    name: "UsageError",
    message: `Cannot use the cost file "${path}": verify is empty`,
  });
  await assert.rejects(
    openEngine({ device: { costs: "/no/such.json" } }),
    /Cannot use the cost file "\/no\/such.json": /,
  );
});

Deno.test("prompts of all lengths that programs are made for are measured, at the rows of their programs", async () => {
  const asked = { ...ASKED, chunkRows: 50, depths: [0], now: ticking() };
  const { table, readings } = await measureCosts(runner, { ...asked, prompts: "only" });
  // 50 tokens run in 64 rows; four chunks of 50 tell what attention to the tokens before costs.
  assert.deepEqual(table.prefill.map(({ at }) => at), [8, 16, 32, 64, 200]);
  assert.ok(readings.every(({ part }) => part === "prefill"));
  assertFree();
  assert.deepEqual(promptLengths({ contextLength: 300, pages: 100 }, 1024), [
    8,
    16,
    32,
    64,
    128,
    256,
  ]);
  assert.deepEqual(promptLengths({ contextLength: 8192, pages: 33 }, 1024), [
    ...[8, 16, 32, 64, 128, 256, 384],
  ]);
});

Deno.test("what a table lacks of prompts is measured and put into it, the rest stays", async () => {
  const of = {
    adapter: "here",
    model: "target",
    draft: "head",
    weightBytes: 1,
    kvDtype: "f32",
  };
  const options = { runner, of, choice: undefined, depths: [0, 1], chunkRows: 64, path: undefined };
  const costs = openCosts(options);
  assert.equal(costs.hasPrompts, false);
  const asked = { seconds: 0.3, keep: false };
  await costs.measure(asked);
  const before = costs.table ?? assert.fail();
  costs.refine((table) => ({
    ...table,
    prefill: table.prefill.slice(0, 1),
    refined: { all: 2, rounds: [], catchUp: 3, prefill: 4 },
  }));
  assert.equal(costs.hasPrompts, false);
  // It aborts once some lengths are measured, of which none is kept.
  const abort = new AbortController();
  let looks = 0;
  Object.defineProperty(abort.signal, "aborted", { get: () => looks++ > 3 });
  const { table } = costs;
  await costs.measurePrompts({ seconds: 3, signal: abort.signal });
  assert.ok(looks > 3 && costs.table === table);
  await costs.measurePrompts({ seconds: 3 });
  const { prefill, refined, ...rest } = costs.table ?? assert.fail();
  assert.equal(costs.hasPrompts, true);
  assert.ok(prefill.length > 1 && (prefill.at(-1)?.at ?? 0) >= 64);
  assert.deepEqual(refined, { all: 2, rounds: [], catchUp: 3, prefill: 1 });
  const { prefill: _, ...kept } = before;
  assert.deepEqual(rest, kept);
  assertFree();
});

import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { armsOf, PLAIN, PLAIN_AGAIN, type Plan } from "../../src/measure/plan.ts";
import { type BenchRow, keyOfRow } from "../../src/measure/row.ts";
import type { Case, CellResult, CellSpec } from "../../src/measure/runner.ts";
import { sweep, type SweepEvent } from "../../src/measure/sweep.ts";
import { fakeCell, fakeSession, SUBJECT } from "./fake.ts";

const CASE: Case = { workload: "phases", batch: 2, outputTokens: 32, temperature: 0, depth: 0 };
const PLAN: Plan = {
  cases: [{ ...CASE, batch: 1 }, CASE],
  arms: armsOf({ numSteps: [0, 1, 3], policies: [["ema", { policy: "ema" }]] }),
  blocks: 3,
  seed: 1,
};

interface Options {
  readonly plan?: Plan;
  readonly session?: ReturnType<typeof fakeSession>;
  readonly present?: readonly BenchRow[];
  readonly signal?: AbortSignal;
}

async function run({ plan = PLAN, session = fakeSession(), present = [], signal }: Options = {}) {
  const events: SweepEvent[] = [];
  const options = {
    present: new Map(present.map((row) => [keyOfRow(row), row])),
    signal: signal ?? new AbortController().signal,
  };
  for await (const event of sweep(plan, session, options)) events.push(event);
  const rows = events.flatMap((event) => event.kind === "rows" ? event.rows : []);
  return { events, rows, cells: session.cells };
}

/** A cell of a known speed, in tokens a second. */
function cell(spec: CellSpec, tokens: number): CellResult {
  const { requests } = fakeCell(spec);
  const prefills = { tokens: 0, ms: 0 };
  return {
    tokens,
    seconds: 1,
    rounds: [],
    prefills,
    requests,
    switches: [],
    switchCount: 0,
    tierShare: {},
  };
}

Deno.test("a sweep measures every arm once a block, after a warm-up that is not counted", async () => {
  const { events, rows, cells } = await run();
  const measured = cells.filter(({ repeat }) => repeat >= 0);
  equal(measured.length, 2 * 5 * 3);
  equal(cells.length - measured.length, 2 * 5);
  for (const batch of [1, 2]) {
    const own = cells.filter((cell) => cell.batch === batch);
    deepEqual(own.map(({ repeat }) => repeat).slice(0, 5), Array(5).fill(-1), "warm-up first");
    for (const block of [0, 1, 2]) {
      const settings = own.filter(({ repeat }) => repeat === block).map(({ setting }) => setting);
      equal(settings.filter(({ kind }) => kind === "plain").length, 2, "plain and A/A");
      equal(settings.length, 5);
    }
  }
  const progress = events.flatMap((event) => event.kind === "cell" ? [event.done] : []);
  deepEqual(progress, Array.from({ length: 30 }, (_, at) => at + 1));
  deepEqual(rows.map(({ setting }) => setting).slice(0, 5), PLAN.arms.map(({ label }) => label));
  ok(rows.every(({ blocks, acceptance }) => blocks === 3 && acceptance === "measured"));
});

Deno.test("short warm-up passes go on until they are alike", async () => {
  let slowness = 0.1;
  const session = fakeSession((spec) => {
    const warms = spec.repeat < 0;
    if (warms) slowness = Math.max(0.01, slowness * 0.8);
    return Promise.resolve({ ...cell(spec, 1), seconds: warms ? slowness : 1 });
  });
  const { cells, events } = await run({ session, plan: { ...PLAN, cases: [CASE] } });
  const warmUps = cells.filter(({ repeat }) => repeat < 0).length;
  ok(warmUps > 5 * 4 && warmUps % 5 === 0);
  const warm = events.find(({ kind }) => kind === "warm");
  ok(warm?.kind === "warm");
  equal(warm.passes, warmUps / 5);
});

Deno.test("speed-ups are paired by block; gaps are to the best static setting", async () => {
  // The machine is twice as slow in each block as in the block before.
  const speeds: Record<string, number> = {
    plain: 100,
    "static 1": 150,
    "static 3": 120,
    policy: 300,
  };
  const session = fakeSession((spec) => {
    const { kind } = spec.setting;
    const name = kind === "static" ? `static ${spec.setting.numSteps}` : kind;
    return Promise.resolve(cell(spec, (speeds[name] ?? NaN) / 2 ** spec.repeat));
  });
  const { rows } = await run({ session, plan: { ...PLAN, cases: [CASE] } });
  const row = (setting: string) => rows.find((row) => row.setting === setting) as BenchRow;
  const close = (actual: number | null, expected: number) =>
    ok(Math.abs((actual ?? NaN) - expected) < 1e-9, `${actual}, expected ${expected}`);
  close(row("1 step").speedup.ratio, 1.5);
  close(row("1 step").speedup.low, 1.5);
  close(row(PLAIN).speedup.ratio, 1);
  close(row(PLAIN_AGAIN).speedup.ratio, 1);
  close(row("policy ema").gap_to_best_static?.ratio ?? null, 2);
  close(row("3 steps").gap_to_best_static?.ratio ?? null, 0.8);
  equal(row("3 steps").gap_to_best_static?.best, "1 step");
  deepEqual(row("1 step").tokens_per_second.samples, [150, 75, 37.5]);
  close(row("1 step").tokens_per_second.mean, 87.5);
});

Deno.test("rows that are present are not measured again; plain always is", async () => {
  const all = await run();
  const nothing = await run({ present: all.rows });
  deepEqual([nothing.events, nothing.cells], [[], []]);

  const but = all.rows.filter(({ batch, setting }) => batch === 1 || setting !== "3 steps");
  const { rows, cells } = await run({ present: but });
  deepEqual(rows.map(({ batch, setting }) => [batch, setting]), [[2, "3 steps"]]);
  const settings = new Set(cells.map(({ setting }) => JSON.stringify(setting)));
  deepEqual([...settings].sort(), ['{"kind":"plain"}', '{"kind":"static","numSteps":3}']);

  const few = all.rows.map((row) => ({ ...row, blocks: 2 }));
  equal((await run({ present: few })).rows.length, all.rows.length, "too few blocks");
  const other = all.rows.map((row) => ({ ...row, device: "another" }));
  equal((await run({ present: other })).rows.length, all.rows.length, "another device");
});

Deno.test("greedy outputs that differ end the sweep and name the cell", async () => {
  const session = (temperature: number, simulated = false) =>
    fakeSession((spec) => {
      const result = fakeCell(spec);
      if (spec.setting.kind !== "policy" || spec.repeat !== 1) return Promise.resolve(result);
      const requests = result.requests.with(1, { ...result.requests[1]!, outputHash: "wrong" });
      return Promise.resolve({
        ...result,
        requests: temperature === 0 ? requests : result.requests,
      });
    }, { ...SUBJECT, simulated });
  const plan = { ...PLAN, cases: [CASE] };
  const { events, rows } = await run({ plan, session: session(0) });
  const last = events.at(-1);
  ok(last?.kind === "different");
  match(last.message, /"policy ema"/);
  match(
    last.message,
    /gave different greedy outputs \(phases, batch 2, 32 output tokens, temperature 0, block 2, request 2\)$/,
  );
  deepEqual(rows, []);
  equal((await run({ plan, session: session(0, true) })).rows.length, 5, "simulated: not compared");
});

Deno.test("sampled outputs are not compared", async () => {
  let turn = 0;
  const session = fakeSession((spec) => {
    const result = fakeCell(spec);
    const requests = result.requests.map((one) => ({ ...one, outputHash: String(turn++) }));
    return Promise.resolve({ ...result, requests });
  });
  const { rows } = await run({ session, plan: { ...PLAN, cases: [{ ...CASE, temperature: 1 }] } });
  equal(rows.length, 5);
});

Deno.test("an interrupt keeps the blocks that are whole", async () => {
  for (const how of ["rejects", "returns"]) {
    const interrupt = new AbortController();
    const session = fakeSession((spec, signal) => {
      if (spec.batch === 2 && spec.repeat === 2) interrupt.abort();
      if (signal.aborted && how === "rejects") return Promise.reject(signal.reason);
      return Promise.resolve(fakeCell(spec));
    });
    const { events, rows } = await run({ session, signal: interrupt.signal });
    deepEqual(rows.map(({ blocks }) => blocks), [3, 3, 3, 3, 3, 2, 2, 2, 2, 2], how);
    const kinds = events.flatMap((event) => event.kind === "rows" ? [event.complete] : []);
    deepEqual(kinds, [true, false]);
  }
});

Deno.test("an interrupt in the first block leaves no row; a failure is a failure", async () => {
  const interrupt = new AbortController();
  const session = fakeSession((spec) => {
    if (spec.repeat === 0) interrupt.abort();
    return Promise.resolve(fakeCell(spec));
  });
  deepEqual((await run({ session, signal: interrupt.signal })).rows, []);
  const broken = fakeSession(() => Promise.reject(new Error("device lost")));
  await rejects(run({ session: broken }), /device lost/);
});

Deno.test("simulated rows say so", async () => {
  const session = fakeSession(undefined, { ...SUBJECT, simulated: true });
  const { rows } = await run({ session });
  ok(rows.every(({ acceptance }) => acceptance === "SIMULATED"));
});

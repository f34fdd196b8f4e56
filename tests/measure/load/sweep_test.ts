import { deepEqual, equal, match, ok } from "node:assert/strict";
import { loadArms, rateCase } from "../../../src/measure/load/plan.ts";
import type { LoadRow } from "../../../src/measure/load/row.ts";
import { type LoadEvent, measureLoad } from "../../../src/measure/load/sweep.ts";
import { fakeLoadCell, fakeLoadSession, planOf } from "./fake.ts";

const NEVER = new AbortController().signal;
const CASES = [rateCase(20, 1, { requests: 30 }), rateCase(200, 1, { requests: 40 })];

async function measured(
  session: ReturnType<typeof fakeLoadSession>,
  { signal = NEVER, blocks = 3 } = {},
) {
  const events: LoadEvent[] = [];
  await measureLoad(planOf({ cases: CASES, blocks }), session, {
    maxBatch: 4,
    slo: {},
    now: () => new Date(0),
    signal,
    onEvent: (event) => void events.push(event),
  });
  const rows: LoadRow[] = events.flatMap((event) => event.kind === "row" ? [event.row] : []);
  return { events, rows };
}

Deno.test("each block measures all policies on the same arrivals, in an order of its own", async () => {
  const session = fakeLoadSession();
  const { rows, events } = await measured(session);
  const counted = session.cells.filter(({ block }) => block >= 0);
  equal(counted.length, 2 * 3 * 4);
  for (const of of Map.groupBy(counted, ({ one, block }) => `${one.name} ${block}`).values()) {
    equal(new Set(of.map(({ seed }) => seed)).size, 1);
  }
  const [off, again, three, ema] = planOf({ cases: CASES }).arms.map(({ label }) => label);
  match(again ?? "", /^static:num_steps=0 \(A\/A\)$/);
  const orders = [0, 4, 8, 12, 16, 20]
    .map((first) => counted.slice(first, first + 4).map(({ arm }) => arm.label));
  for (const order of orders) deepEqual(new Set(order), new Set([off, again, three, ema]));
  const before = orders.map((order) => order[order.indexOf(again as string) - 1]);
  ok(new Set(before).size > 2, "arms have other neighbours in other blocks");
  const starts = Map.groupBy(rows, ({ load, block }) => `${load} ${block}`);
  for (const of of starts.values()) {
    equal(of.length, 4);
    for (const { start_times } of of) deepEqual(start_times, of[0]?.start_times);
  }
  const warm = session.cells.filter(({ block }) => block < 0).map(({ arm }) => arm.label);
  deepEqual(warm, [off, three, ema, off, three, ema]);
  const requests = events.filter((event) => event.kind === "requests");
  deepEqual(requests.map(({ done }) => done), Array.from({ length: 840 }, (_, n) => n + 1));
  ok(requests.every(({ total }) => total === 840));
});

Deno.test("arms: policies once, the first one again", () => {
  const policy = { policy: "static" };
  const arms = loadArms(["a", "b", "b", "c"].map((label) => ({ label, policy })));
  deepEqual(arms.map(({ label, again }) => [label, again]), [
    ["a", false],
    ["a (A/A)", true],
    ["b", false],
    ["c", false],
  ]);
});

Deno.test("different texts end the run and are named", async () => {
  const session = fakeLoadSession((spec) => {
    const result = fakeLoadCell(spec);
    if (spec.arm.label !== "static:num_steps=3" || spec.block !== 1) return Promise.resolve(result);
    const requests = result.requests.map((each, n) =>
      n === 4 ? { ...each, outputHash: "x" } : each
    );
    return Promise.resolve({ ...result, requests });
  });
  const { events, rows } = await measured(session);
  const last = events.at(-1);
  ok(last?.kind === "different");
  match(
    last.message,
    /"static:num_steps=3" and ".*" gave different .*20 req\/s, block 2, request 5/,
  );
  deepEqual([rows.at(-1)?.label, rows.at(-1)?.block], ["static:num_steps=3", 1]);
  const simulated = fakeLoadSession(
    (spec) =>
      Promise.resolve({ ...fakeLoadCell(spec), requests: fakeLoadCell(spec).requests.slice(1) }),
    { ...session.subject, simulated: true },
  );
  ok((await measured(simulated, { blocks: 1 })).events.every(({ kind }) => kind !== "different"));
});

Deno.test("the signal ends the run without the measurement in flight", async () => {
  const stop = new AbortController();
  const session = fakeLoadSession((spec) => {
    if (spec.block === 1) stop.abort();
    return Promise.resolve(fakeLoadCell(spec));
  });
  const { rows } = await measured(session, { signal: stop.signal });
  equal(rows.length, 4);
  const failing = fakeLoadSession(() => {
    stop.abort();
    return Promise.reject(new Error("interrupted"));
  });
  deepEqual((await measured(failing, { signal: stop.signal })).rows, []);
});

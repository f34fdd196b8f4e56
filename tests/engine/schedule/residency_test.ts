import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  type MemorySignals,
  moved,
  type MoveOutcome,
  observed,
  RESIDENCY,
  type Residency,
  RESIDENT,
} from "../../../src/engine/schedule/residency.ts";

const OPTIONS = { shortShare: 0.1, shortSteps: 3, wantedSteps: 2, roomShare: 0.2 };
const SHORT: MemorySignals = { chosen: 0, freeShare: 0.05, waiting: 1, heldShare: 0.95 };
const ROOM: MemorySignals = { chosen: 3, freeShare: 0.6, waiting: 0, heldShare: 0.5 };

function after(state: Residency, ...steps: readonly MemorySignals[]): Residency {
  return steps.reduce((now, signals) => observed(now, signals, OPTIONS), state);
}

Deno.test("the draft leaves after so many steps without drafts while pages are short", () => {
  assert.deepEqual(after(RESIDENT, SHORT, SHORT), { kind: "resident", short: 2 });
  assert.deepEqual(after(RESIDENT, SHORT, SHORT, SHORT), { kind: "evicting" });
});

Deno.test("what is no shortage does not count, and takes back what was counted", () => {
  for (const other of [{ ...SHORT, waiting: 0 }, { ...SHORT, freeShare: 0.1 }]) {
    assert.deepEqual(after(RESIDENT, other, other, other, other), RESIDENT);
    assert.deepEqual(after(RESIDENT, SHORT, SHORT, other), { kind: "resident", short: 1 });
  }
  // A step without a round says nothing.
  assert.deepEqual(after(RESIDENT, SHORT, SHORT, { ...SHORT, chosen: undefined }), {
    kind: "resident",
    short: 2,
  });
});

Deno.test("a round that drafts begins the count anew", () => {
  const drafting = { ...SHORT, chosen: 1 };
  assert.deepEqual(after(RESIDENT, SHORT, SHORT, drafting, SHORT, SHORT), {
    kind: "resident",
    short: 2,
  });
});

const HOST: Residency = { kind: "host", wanted: 0 };

Deno.test("it comes back once it was wanted often enough and there is room for it", () => {
  assert.deepEqual(after(HOST, ROOM), { kind: "host", wanted: 1 });
  assert.deepEqual(after(HOST, ROOM, ROOM), { kind: "loading" });
  const full = { ...ROOM, heldShare: 0.81 };
  assert.deepEqual(after(HOST, full, full, full), { kind: "host", wanted: 3 });
  assert.deepEqual(after(HOST, full, full, full, { ...ROOM, chosen: 0 }), { kind: "loading" });
  // One probe among many rounds without drafts counts as well: 0 steps are not for ever.
  const idle = { ...ROOM, chosen: 0 };
  assert.deepEqual(after(HOST, ROOM, idle, idle, idle, ROOM), { kind: "loading" });
});

Deno.test("how moving ends", () => {
  const ends: [Residency, MoveOutcome, Residency][] = [
    [{ kind: "evicting" }, "moved", HOST],
    [{ kind: "evicting" }, "no memory", HOST],
    [{ kind: "loading" }, "moved", RESIDENT],
    [{ kind: "loading" }, "blocked", HOST],
    [{ kind: "loading" }, "no memory", { kind: "lost" }],
  ];
  for (const [from, how, to] of ends) assert.deepEqual(moved(from, how), to);
  assert.deepEqual(after({ kind: "lost" }, SHORT, SHORT, SHORT, ROOM, ROOM), { kind: "lost" });
});

Deno.test("it leaves and comes back no more often than the counts allow, whatever is seen", () => {
  const signals = fc.record({
    chosen: fc.constantFrom(undefined, 0, 3),
    freeShare: fc.double({ min: 0, max: 1, noNaN: true }),
    waiting: fc.constantFrom(0, 1),
    heldShare: fc.double({ min: 0, max: 2, noNaN: true }),
  });
  fc.assert(fc.property(fc.array(signals, { maxLength: 300 }), (steps) => {
    let state: Residency = RESIDENT;
    let since = 0;
    for (const step of steps) {
      const next = observed(state, step, RESIDENCY);
      since++;
      if (next.kind === "evicting") assert.ok(since >= RESIDENCY.shortSteps && step.chosen === 0);
      if (next.kind === "loading") assert.ok(step.heldShare <= 1 - RESIDENCY.roomShare);
      const moves = next.kind === "evicting" || next.kind === "loading";
      if (moves) since = 0;
      state = moves ? moved(next, "moved") : next;
    }
  }));
});

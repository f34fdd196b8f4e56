import assert from "node:assert/strict";
import type { CostTable } from "../../../src/speculate/costs/table.ts";
import { catchUpMs, roundMs } from "../../../src/speculate/costs/lookup.ts";
import { costsLine } from "../../../src/engine/tune/costs/costs_line.ts";
import { learningCosts } from "../../../src/engine/tune/costs/learning.ts";
import { openSpeculation } from "../../../src/engine/schedule/speculation.ts";
import type { Policy, RoundContext, RoundOutcome } from "../../../src/speculate/policy.ts";
import { chain, chains } from "../../../src/speculate/round_shape.ts";
import { SIMPLE } from "../../speculate/costs/table.ts";

/** Drafts as far as requests ask; counts what it is told. */
const ASKED: Policy<number> = {
  tiers: chains([0, 3]),
  start: 0,
  pick: (_, { asked }) => ({ tier: chain(asked[0] ?? 0) }),
  holds: () => 1,
  learn: (told) => ({ state: told + 1 }),
  report: (told) => ({ json: { told }, rows: [] }),
};

function opened() {
  let table: CostTable | undefined = SIMPLE;
  const costs = {
    get table() {
      return table;
    },
    refine(change: (table: CostTable) => CostTable) {
      table = change(table as CostTable);
    },
    forget: () => void (table = undefined),
  };
  return { costs, speculation: learningCosts(openSpeculation("asked", ASKED), costs) };
}

function context(steps: number, lags: readonly number[]): RoundContext {
  return {
    batchSize: lags.length,
    asked: lags.map(() => steps),
    sequences: lags.map((lag, id) => (
      { id, lag, position: 50, depth: 0, accepted: [] }
    )),
    roundsPerSync: 1,
    costs: SIMPLE,
    ranks: false,
  };
}

function outcome(
  steps: number,
  { round, catchUp = 0, told = 2, depth = steps, roundsPerSync = 4 }: {
    readonly round: number;
    readonly catchUp?: number;
    /** Of the batch of two. */
    readonly told?: number;
    readonly depth?: number;
    readonly roundsPerSync?: number;
  },
): RoundOutcome {
  const sequences = Array.from({ length: told }, (_, id) => (
    { id, asked: undefined, depth, accepted: 0, confidences: [], position: 50 }
  ));
  return { tier: chain(steps), batchSize: 2, roundsPerSync, sequences, ms: { round, catchUp } };
}

Deno.test("costs learn of rounds: batch, steps, drafts, cells and rounds a sync are the round's", () => {
  const cases = [
    [{}, { batch: 2, steps: 3, cells: 100, roundsPerSync: 4 }],
    [{ told: 1 }, { batch: 2, steps: 3, cells: 100, roundsPerSync: 4 }],
    [{ depth: 1 }, { batch: 2, steps: 3, drafts: 2, cells: 100, roundsPerSync: 4 }],
    [{ roundsPerSync: 1 }, { batch: 2, steps: 3, cells: 100 }],
  ] as const;
  for (const [how, priced] of cases) {
    const { costs, speculation } = opened();
    // As predicted: nothing changes.
    speculation.learn(outcome(3, { ...how, round: roundMs(SIMPLE, priced) }));
    assert.deepEqual(costs.table?.refined, {
      all: 1,
      catchUp: 1,
      rounds: [{ batch: 2, steps: 3, ratio: 1 }],
    });
    speculation.learn(outcome(3, { ...how, round: 1.5 * roundMs(SIMPLE, priced) }));
    assert.ok((costs.table?.refined?.all ?? 0) > 1);
  }
});

Deno.test("costs learn of catching up what was missed when the round was picked", () => {
  const { costs, speculation } = opened();
  speculation.pick(context(0, [2, 3]));
  speculation.learn(outcome(0, { round: 10 }));
  speculation.pick(context(3, [4, 5]));
  speculation.learn(outcome(3, { round: 20, catchUp: catchUpMs(SIMPLE, 9) }));
  assert.equal(costs.table?.refined?.catchUp, 1);
  speculation.learn(outcome(0, { round: 10 }));
  speculation.pick(context(3, [4, 5]));
  speculation.learn(outcome(3, { round: 20, catchUp: 2 * catchUpMs(SIMPLE, 9) }));
  assert.ok((costs.table?.refined?.catchUp ?? 0) > 1.05);
  assert.deepEqual(speculation.report.own.json, { told: 4 });
  // The next round is picked before that is learned, when nothing is missed any more.
  speculation.learn(outcome(0, { round: 10 }));
  const before = costs.table?.refined?.catchUp ?? 0;
  speculation.pick(context(3, [4, 5]));
  speculation.pick(context(3, [0, 0]));
  speculation.learn(outcome(3, { round: 20, catchUp: 2 * catchUpMs(SIMPLE, 9) }));
  assert.ok((costs.table?.refined?.catchUp ?? 0) > before);
});

Deno.test("rounds of trees, and without a table any, teach no costs but the policy", () => {
  const { costs, speculation } = opened();
  const tree = { ...outcome(3, { round: 9 }), tier: { depth: 3, width: 2, rows: 6 } };
  speculation.learn(tree);
  assert.equal(costs.table, SIMPLE);
  costs.forget();
  speculation.pick(context(3, [1]));
  speculation.learn(outcome(3, { round: 9, catchUp: 3 }));
  assert.deepEqual([costs.table, speculation.report.own.json], [undefined, { told: 2 }]);
  assert.equal(speculation.holds(context(3, [1])), 1);
});

Deno.test("what was measured at start, in a line", () => {
  assert.equal(
    costsLine({ table: SIMPLE, seconds: 2.345 }, [0, 3]),
    "costs, measured in 2.3 s: a round of 1 takes 10.4 ms, 15.6 ms with 3 drafts; " +
      "a round of 8 takes 12.4 ms, 44.9 ms with 3 drafts; " +
      "c_prefill is 4.50 ms for 16 tokens of 1, 15.7 ms for 16 tokens of 8",
  );
  const alone: CostTable = { ...SIMPLE, buckets: [1], level: [], extend: [], catchUp: [] };
  assert.equal(
    costsLine({ table: alone, seconds: 1 }, [0]),
    "costs, measured in 1.0 s: a round of 1 takes 10.4 ms",
  );
});

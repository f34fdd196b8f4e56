import assert from "node:assert/strict";
import { CostError, parseCosts } from "../../../src/speculate/costs/parse.ts";
import { SIMPLE } from "./table.ts";

Deno.test("a cost file is read as it was written", () => {
  assert.deepEqual(parseCosts(JSON.parse(JSON.stringify(SIMPLE))), SIMPLE);
  assert.deepEqual(parseCosts({ ...SIMPLE, packing: 0.1 }), { ...SIMPLE, packing: 0.1 });
  const { draft: _, ...undrafted } = SIMPLE;
  assert.equal(parseCosts(undrafted).draft, undefined);
  assert.equal(parseCosts({ ...SIMPLE, draft: null, level: [], extend: [] }).draft, undefined);
});

Deno.test("what is wrong with a cost file is one line", () => {
  const cases: [unknown, string][] = [
    [[], "it is no object"],
    [{}, 'its format is not "eyrie-costs-1"'],
    [{ ...SIMPLE, format: "eyrie-costs-2" }, 'its format is not "eyrie-costs-1"'],
    [{ ...SIMPLE, model: 3 }, "model is no text"],
    [{ ...SIMPLE, verify: [] }, "verify is empty"],
    [{ ...SIMPLE, level: 3 }, "level is no list"],
    [{ ...SIMPLE, level: [1] }, "level[0] is no object"],
    [
      { ...SIMPLE, level: [{ at: 1, ms: -1 }] },
      "level[0].ms must be a number of at least 0, got -1",
    ],
    [
      { ...SIMPLE, level: [{ at: 1, ms: null }] },
      "level[0].ms must be a number of at least 0, got null",
    ],
    [{ ...SIMPLE, level: [{ at: 1, ms: 1, us: 1 }] }, 'level[0] has "us", known is at, ms'],
    [
      { ...SIMPLE, verify: [{ at: 2, ms: 1 }, { at: 2, ms: 2 }] },
      "at of verify must rise, but 2 is followed by 2",
    ],
    [
      { ...SIMPLE, verify: [{ at: 1, ms: 2 }, { at: 2, ms: 1 }] },
      "ms of verify falls at verify[1]",
    ],
    [
      { ...SIMPLE, verify: [{ at: 1, ms: 0 }, { at: 2, ms: 1 }] },
      "verify[0].ms must be above 0",
    ],
    [{ ...SIMPLE, buckets: [] }, "buckets is empty"],
    [{ ...SIMPLE, buckets: [1, 1.5] }, "buckets[1] must be an integer of at least 1, got 1.5"],
    [{ ...SIMPLE, buckets: [2, 1] }, "buckets must rise, but 2 is followed by 1"],
    [{ ...SIMPLE, host: "0" }, 'host must be a number of at least 0, got "0"'],
    [
      { ...SIMPLE, speed: 1 },
      'it has "speed", known is format, adapter, model, draft, buckets, level, verify, extend, ' +
      "catchUp, prefill, perCell, perRowCell, host, packing, fitError, refined",
    ],
    [{ ...SIMPLE, refined: { all: 0, rounds: [], catchUp: 1 } }, "refined.all must be above 0"],
  ];
  for (const [json, message] of cases) {
    assert.throws(() => parseCosts(json), new CostError(message));
  }
});

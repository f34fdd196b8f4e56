import { deepEqual, equal, ok } from "node:assert/strict";
import { closedCase, rateCase } from "../../../src/measure/load/plan.ts";
import { recordingName, recordingOf } from "../../../src/measure/load/recorded.ts";
import type { LoadCellResult } from "../../../src/measure/load/session.ts";
import { readRecording, recordingText } from "../../../src/simulate/compare/recording.ts";
import { prefillMs, roundMs } from "../../../src/speculate/costs/lookup.ts";
import { SIMPLE } from "../../speculate/costs/table.ts";
import { fakeLoadCell, planOf } from "./fake.ts";

const [ARM] = planOf({ cases: [] }, ["static:num_steps=3"]).arms;
const SPEC = { one: rateCase(4, 1, { requests: 6 }), arm: ARM as never, block: 0, seed: 3 };

Deno.test("a measurement's recording: every request and round, and the machine", () => {
  const result = fakeLoadCell(SPEC);
  const recording = recordingOf(result, "static:num_steps=3");
  ok(recording);
  deepEqual(readRecording(recordingText(recording)), recording);
  equal(recording.requests.length, 6);
  deepEqual(recording.rounds.map(({ ms }) => ms), result.rounds.map(({ ms }) => ms));
  deepEqual(
    recording.rounds.map(({ tMs }) => tMs),
    result.rounds.map(({ beganMs, ms }) => beganMs + ms),
  );
  equal(recording.machine?.policy, "static:num_steps=3");
  equal(recordingOf({ ...result, rounds: [] }, "ema"), undefined);
});

Deno.test("its costs give its own mean times: groups of rounds, packed ones, chunks of prompts", () => {
  // Of one request: chains of 3 in groups of 4, then one of which a single draft is verified.
  const round = { beganMs: 0, numSteps: 3, batch: 1, requests: [0], accepted: [1] };
  const expected = (drafts: number, together: number, cells: number) =>
    roundMs(SIMPLE, { batch: 1, steps: 3, cells, drafts, roundsPerSync: together });
  const result: LoadCellResult = {
    ...fakeLoadCell(SPEC),
    requests: [{
      dueMs: 0,
      runsMs: 0,
      received: [],
      endMs: 9,
      promptTokens: 100,
      outputTokens: 9,
      outputHash: "",
      complete: true,
    }],
    rounds: [
      { ...round, together: 4, drafts: [3], ms: 1.5 * expected(3, 4, 100) },
      { ...round, together: 1, drafts: [1], ms: 1.5 * expected(1, 1, 102) },
    ],
    prefills: [{ chunks: [{ from: 0, to: 64 }], rows: 64, ms: 3 * prefillMs(SIMPLE, 64) }],
    machine: {
      maxBatch: 2,
      kvTokens: 640,
      prefillRows: 64,
      roundsPerSync: "auto",
      costs: { ...SIMPLE, refined: { all: 5, rounds: [], catchUp: 1 } },
    },
  };
  const costs = recordingOf(result, "ema")?.machine?.costs;
  ok(costs);
  const ratio = roundMs(costs, { batch: 1, steps: 3, cells: 100 }) / expected(3, 1, 100);
  ok(Math.abs(ratio - 1.5) < 1e-9, `${ratio}`);
  ok(Math.abs(prefillMs(costs, 64) / prefillMs(SIMPLE, 64) - 3) < 1e-9);
});

Deno.test("names of recordings: load, policy, block", () => {
  equal(recordingName({ ...SPEC, block: 1 }), "4-req-s_static-num_steps=3_2.jsonl");
  const again = { ...SPEC.arm as object, label: "ema:candidate_steps=1/3 (A/A)" } as never;
  const one = closedCase(8, 3);
  equal(
    recordingName({ ...SPEC, one, arm: again }),
    "8-in-flight_ema-candidate_steps=1-3-A-A_1.jsonl",
  );
});

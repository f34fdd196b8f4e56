import assert from "node:assert/strict";
import { COST_PRESETS } from "../../src/cli/simulate/cost_presets.ts";
import {
  type AcceptanceModel,
  acceptedFrom,
  geometric,
  spreadOut,
} from "../../src/simulate/acceptance/model.ts";
import { type RecordedChain, replayed } from "../../src/simulate/acceptance/replay.ts";
import {
  measuredThroughput,
  readRecording,
  type RecordedRound,
  recordingText,
  streamsOf,
} from "../../src/simulate/compare/recording.ts";
import { simulate } from "../../src/simulate/run/simulation.ts";
import type { SimulatedSample } from "../../src/simulate/run/tally.ts";
import type { CostTable } from "../../src/speculate/costs/table.ts";
import { openSource, type Source } from "../../src/simulate/run/source.ts";
import { simulationOf, statically } from "./worlds.ts";

const REQUEST = '{"atMs":0,"promptTokens":8,"outputTokens":4}';
const ROUND = '{"tMs":30,"batch":2,"numSteps":3,"accepted":[3,1],"ms":12}';

Deno.test("a recording: requests and rounds, a line each", () => {
  const recording = readRecording(`${REQUEST}\n${ROUND}\n\n${ROUND}\n`);
  assert.deepEqual([recording.requests.length, recording.rounds.length], [1, 2]);
  assert.deepEqual(
    streamsOf(recording),
    [3, 1].map((accepted) => [
      { drafted: 3, accepted },
      { drafted: 3, accepted },
    ]),
  );
  assert.equal(measuredThroughput(recording), 4 / 0.03);
});

Deno.test("a recording that is broken is refused with the line's number", () => {
  assert.throws(() => readRecording(`${REQUEST}\n{"tMs":1}`), /line 2 is neither/);
  assert.throws(() => readRecording(`${REQUEST}\n{`), /line 2 is neither/);
  const beyond = ROUND.replace("[3,1]", "[4,1]");
  assert.throws(() => readRecording(`${REQUEST}\n${beyond}`), /line 2 is neither/);
  assert.throws(() => readRecording(ROUND), /it has no requests/);
  assert.throws(() => readRecording(REQUEST), /it has no rounds/);
  const late = REQUEST.replace(/"atMs":[\d.]+/, '"atMs":1e9');
  assert.throws(() => readRecording(`${late}\n${ROUND}`), /before its first request/);
});

const MACHINE = {
  policy: "ema",
  maxBatch: 2,
  kvTokens: 640,
  prefillRows: 64,
  maxBatchedRows: 64,
  sloItlMs: 30,
  roundsPerSync: 1,
  costs: { ...(COST_PRESETS["toy"] as CostTable), draft: undefined },
} as const;

Deno.test("a recording: the machine, cached prompts, drafts and requests come back as they were", () => {
  const text = recordingText({
    machine: MACHINE,
    requests: [
      { atMs: 0, promptTokens: 40, outputTokens: 4, cachedTokens: 32 },
      { atMs: 9, promptTokens: 8, outputTokens: 6 },
    ],
    rounds: [{
      tMs: 20,
      batch: 2,
      numSteps: 3,
      accepted: [2, 0],
      ms: 5,
      drafted: [3, 1],
      requests: [1, 0],
    }],
  });
  const recording = readRecording(text);
  assert.deepEqual(readRecording(recordingText(recording)), recording);
  assert.equal(recording.machine?.costs?.model, MACHINE.costs.model);
  assert.equal(recording.machine?.maxBatchedRows, MACHINE.maxBatchedRows);
  assert.equal(recording.machine?.sloItlMs, MACHINE.sloItlMs);
  // Chains are collected by request, not by place in the batch.
  assert.deepEqual(streamsOf(recording), [[{ drafted: 1, accepted: 0 }], [{
    drafted: 3,
    accepted: 2,
  }]]);
  const broken = (from: string, to: string) => () => readRecording(text.replace(from, to));
  assert.throws(broken('"maxBatch":2', '"maxBatch":0'), /line 1 does not describe a machine/);
  assert.throws(broken('"sloItlMs":30', '"sloItlMs":0'), /line 1 does not describe a machine/);
  assert.throws(broken('"format":"eyrie', '"format":"other'), /the costs in line 1 cannot be used/);
  assert.throws(broken('"requests":[1,0]', '"requests":[2,0]'), /its rounds have a request 2/);
  assert.throws(broken('"requests":[1,0]', '"requests":[1]'), /line 4 is neither/);
  assert.throws(broken('"drafted":[3,1]', '"drafted":[1,1]'), /line 4 is neither/);
  assert.throws(broken('"cachedTokens":32', '"cachedTokens":40'), /line 2 is neither/);
});

Deno.test("what requests met is met again round for round, whatever their number", () => {
  const coming = Array.from({ length: 30 }, (_, n) => (
    { atMs: 7 * n, promptTokens: 20 + n, outputTokens: 20 + n % 50 }
  ));
  const samples: SimulatedSample[] = [];
  const run = (acceptance: AcceptanceModel, source: Source) => {
    samples.length = 0;
    const onRound = (sample: SimulatedSample) => void samples.push(sample);
    simulate(simulationOf([], { acceptance, source, policy: statically(3), onRound }));
    return samples.map(({ accepted }) => accepted);
  };
  const lengths = { promptTokens: 1, outputTokens: 1 };
  const open = () => openSource(coming.map((each, seed) => ({ ...each, seed })), lengths);
  const acceptance = spreadOut(geometric(0.6), { requests: 1, tokens: 1 });
  // The chains of each request by the model's chances: all accepted drafts, then one rejected draft.
  const streams = coming.map(({ promptTokens, outputTokens }, seed) => {
    const request = acceptance.open(seed, promptTokens + 1);
    const now = { ms: 0, tokens: 0 };
    const chains: RecordedChain[] = [];
    for (let at = promptTokens + 1; at < promptTokens + outputTokens; at += 1) {
      const accepted = acceptedFrom(at, 3, { seed, request, now });
      chains.push({ drafted: 3, accepted });
      at += accepted;
    }
    return chains;
  });
  const first = run(acceptance, open());
  assert.ok(first.length > 100);
  assert.deepEqual(run(replayed(streams, { own: true }), open()), first);
});

Deno.test("a run that is simulated from its own recording comes within 5 % of itself", () => {
  for (const [perSecond, steps] of [[4, 3], [10, 2], [25, 1]] as const) {
    const rounds: RecordedRound[] = [];
    const coming = Array.from({ length: 120 }, (_, n) => ({
      atMs: Math.round(1000 * n / perSecond),
      promptTokens: 20 + n % 30,
      outputTokens: 40 + n % 50,
    }));
    const recorded = simulate(simulationOf(coming, {
      acceptance: spreadOut(geometric(0.65), { requests: 0.5, tokens: 0.5 }),
      policy: statically(steps),
      onRound: ({ tMs, batch, numSteps, accepted, ms }) =>
        void rounds.push({ tMs, batch, numSteps, accepted, ms }),
    }));
    const recording = readRecording(recordingText({ requests: coming, rounds }));
    assert.deepEqual(recording.requests, coming);
    const measured = measuredThroughput(recording);
    assert.ok(Math.abs(measured / recorded.throughput - 1) < 1e-9);
    const arrivals = recording.requests.map((request, n) => ({ ...request, seed: 1000 + n }));
    const again = simulate(simulationOf([], {
      source: openSource(arrivals, { promptTokens: 1, outputTokens: 1 }),
      acceptance: replayed(streamsOf(recording)),
      policy: statically(steps),
    }));
    const ratio = again.throughput / measured;
    assert.ok(Math.abs(ratio - 1) < 0.05, `${perSecond}/s: ${ratio}`);
  }
});

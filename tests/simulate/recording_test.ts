import assert from "node:assert/strict";
import { geometric, spreadOut } from "../../src/simulate/acceptance/model.ts";
import { replayed } from "../../src/simulate/acceptance/replay.ts";
import {
  measuredThroughput,
  readRecording,
  type RecordedRound,
  recordingText,
  streamsOf,
} from "../../src/simulate/compare/recording.ts";
import { simulate } from "../../src/simulate/run/simulation.ts";
import { openSource } from "../../src/simulate/run/source.ts";
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
      onRound: (sample) => void rounds.push(sample),
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

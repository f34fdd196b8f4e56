import assert from "node:assert/strict";
import { fillCells } from "../../src/engine/check/growth/random_cells.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import {
  fillSequences,
  openCoreProfiler,
  type PartSamples,
} from "../../src/engine/check/profile.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { openFledgling } from "./fledgling.ts";
import { denseLayer } from "../model/dense_layer.ts";

const runner = await openFledgling("eagle3", 2);
Deno.test.afterAll(() => runner.gpu[Symbol.dispose]());

const ignore = !runner.gpu.info.features.includes("timestamp-query");
const { config } = runner.models.target;
const IDS = Array.from({ length: 300 }, (_, i) => 5 + i % 900);

function launchesOf({ launches }: PartSamples, suffix: string) {
  return launches.filter(({ label }) => label.endsWith(suffix));
}

/** Every run timed every dispatch, and none took no time. */
function checkTimes({ launches, launchMs, passMs }: PartSamples, runs: number) {
  assert.deepEqual([launchMs.length, passMs.length], [runs, runs]);
  for (const ms of [...launchMs, passMs]) assert.ok(ms.every((one) => one > 0));
  for (const ms of launchMs) assert.equal(ms.length, launches.length);
}

Deno.test({
  name: "profiled rounds: parts, labels, bytes and flops of what runs",
  ignore,
  async fn() {
    using stack = new DisposableStack();
    const profiler = stack.use(await openCoreProfiler(runner));
    const sequences = [openSequence(runner), openSequence(runner)].map((each) => stack.use(each));
    const ids = IDS.slice(0, 40);
    assert.ok(await fillSequences(runner, sequences, ids, { numSteps: 3 }));
    const { parts, roundMs } = await profiler.rounds({ sequences, ids, numSteps: 3, cycles: 1 });
    assert.deepEqual(parts.map(({ part }) => part), ["draft", "verify", "extend"]);
    for (const part of parts) checkTimes(part, 4);
    assert.ok(roundMs.every((ms, i) => ms >= (parts[1]?.passMs[i] ?? Infinity)));

    const [draft, verify, extend] = parts as [PartSamples, PartSamples, PartSamples];
    assert.equal(launchesOf(draft, "draft.head").length, 2);
    assert.equal(launchesOf(extend, "draft.head").length, 1);
    const { hiddenSize, layers: { 0: layer, length: numLayers } } = config;
    const { attention: { numHeads, numKvHeads, headDim }, mlp: { intermediateSize } } = denseLayer(
      layer,
    );
    const down = launchesOf(verify, ".down");
    assert.equal(down.length, numLayers);
    const rows = 2 * 4;
    assert.equal(down[0]?.flops, 2 * rows * hiddenSize * intermediateSize);
    assert.equal(
      down[0]?.bytes,
      2 * hiddenSize * intermediateSize + 4 * rows * (intermediateSize + hiddenSize),
    );
    assert.equal(launchesOf(verify, "accept")[0]?.bytes, undefined);
    if (!runner.gpu.info.software) return; // hardware splitK attention over the keys
    const [attention] = launchesOf(verify, ".attention");
    const kvBytes = 2 * 40 * 2 * 4 * numKvHeads * headDim; // two sequences of 40 cells
    assert.equal(attention?.bytes, kvBytes + 2 * 4 * rows * numHeads * headDim);
    assert.equal(attention?.flops, 4 * rows * numHeads * headDim * 40);
  },
});

Deno.test({
  name: "plain rounds have one part; a prefill has all its chunks, and rounds go on after both",
  ignore,
  async fn() {
    using profiler = await openCoreProfiler(runner);
    using sequence = openSequence(runner);
    assert.ok(await fillSequences(runner, [sequence], IDS, { numSteps: 0 }));
    const round = { shape: chain(0), count: 1 };
    const [first] = await runner.rounds([sequence], round);
    await prefillPrompt(runner, sequence, IDS, IDS.length - 1);
    const plain = await profiler.rounds({
      sequences: [sequence],
      ids: IDS,
      numSteps: 0,
      cycles: 1,
    });
    assert.deepEqual(plain.parts.map(({ part }) => part), ["verify"]);
    const prefill = await profiler.prefill({ sequence, ids: IDS, times: 2 });
    checkTimes(prefill, 2);
    // The draft's layer is wanted for the last row of the prompt alone, in its last chunk.
    assert.equal(launchesOf(prefill, ".down").length, 2 * config.layers.length + 1);
    assert.equal(launchesOf(prefill, "accept_prompt").length, 1);
    const [again] = await runner.rounds([sequence], round);
    assert.deepEqual(again?.sequences[0]?.ids, first?.sequences[0]?.ids);
  },
});

Deno.test({
  name: "an abort ends rounds and a prefill that have begun",
  ignore,
  async fn() {
    using profiler = await openCoreProfiler(runner);
    using sequence = openSequence(runner);
    assert.ok(await fillSequences(runner, [sequence], IDS, { numSteps: 0 }));
    const signal = AbortSignal.timeout(1);
    await assert.rejects(
      profiler.rounds({ sequences: [sequence], ids: IDS, numSteps: 0, cycles: 20, signal }),
      (error) => error === signal.reason,
    );
    const later = AbortSignal.timeout(1);
    await assert.rejects(
      profiler.prefill({ sequence, ids: IDS, times: 20, signal: later }),
      (error) => error === later.reason,
    );
  },
});

Deno.test({
  name: "rounds over cells that were filled at random see as many as rounds over a prompt",
  ignore,
  async fn() {
    using profiler = await openCoreProfiler(runner);
    await fillCells(runner);
    const parts: PartSamples[] = [];
    for (const filled of [false, true]) {
      using sequence = openSequence(runner);
      assert.ok(await fillSequences(runner, [sequence], IDS, { numSteps: 0, filled }));
      assert.equal(sequence.stored, IDS.length);
      const asked = { sequences: [sequence], ids: IDS, numSteps: 0, cycles: 1 };
      parts.push(...(await profiler.rounds(asked)).parts);
    }
    const [stored, random] = parts as [PartSamples, PartSamples];
    checkTimes(random, 4);
    assert.deepEqual(random.launches, stored.launches);
  },
});

Deno.test({
  name: "the read bandwidth of a software adapter is no floor",
  ignore: ignore || !runner.gpu.info.software,
  async fn() {
    using profiler = await openCoreProfiler(runner);
    assert.equal(await profiler.readBandwidth(), undefined);
  },
});

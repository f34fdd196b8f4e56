// What is copied when the state of a prefix is stored and read again: texts of requests seldom show a part that is not.

import assert from "node:assert/strict";
import { headerWords, stepWords } from "../../kernels/recurrent/delta_rule.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { convWidth, type DeltaNet, type LayerConfig } from "../../src/model/config/layer_config.ts";
import type { LayerState } from "../../src/model/graph/graph.ts";
import { LONG_PREFILL_ROWS, SLOT_WORDS } from "../../src/model/device_layout.ts";
import { keptStates, promptStates, stateSpacing } from "../../src/engine/device/kept_states.ts";
import { newSequence, type Sequence } from "../../src/engine/device/sequence.ts";
import { chain } from "../../src/speculate/round_shape.ts";
import { openDevice } from "../gpu/device.ts";
import { numbers } from "../gpu/numbers.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const BATCH = 3;
const [RING_ROWS, STEP_ROWS] = [5, 3];

const DELTA: DeltaNet = {
  kind: "delta",
  keyHeads: 1,
  valueHeads: 2,
  keyDim: 8,
  valueDim: 64, // two workgroups a head, each with a header
  taps: 4,
  fused: false,
  window: undefined,
};

function inSlot(slot: number): Sequence {
  const sequence = newSequence([1]);
  sequence.slot = slot;
  return sequence;
}

/** Slot `to` of `count` equal parts has what slot `from` had. */
function copied(all: Float32Array, count: number, from: number, to: number): Float32Array {
  const size = all.length / count;
  const out = all.slice();
  out.set(all.subarray(from * size, (from + 1) * size), to * size);
  return out;
}

function open(state: LayerState, layer: DeltaNet | undefined, slots: Operand) {
  const layers = [{ attention: layer ?? { kind: "conv" } }] as unknown as LayerConfig[];
  const kv = [{ keys: state.ring, values: state.ring, state }];
  const capacity = { batch: BATCH, keptStates: 2, shapes: [chain(0)] };
  const kept = keptStates(device.gpu, { layers, kv }, capacity, { slots });
  assert.ok(kept);
  return kept;
}

Deno.test("the state of a Gated DeltaNet: its checkpoint, its ring, and every workgroup's header", async () => {
  const [ring, states] = [
    numbers(BATCH * RING_ROWS * convWidth(DELTA), 1),
    numbers(2 * BATCH * DELTA.valueHeads * DELTA.keyDim * DELTA.valueDim, 2),
  ];
  const [header, ofSlot] = [headerWords(DELTA), stepWords(DELTA, STEP_ROWS)];
  const steps = numbers(BATCH * ofSlot, 3);
  for (let slot = 0; slot < BATCH; slot++) {
    for (let at = 0; at < header; at += 4) {
      steps.set([40 + slot, 16 * (slot + 1), 1, 0], slot * ofSlot + at);
    }
  }
  const delta = {
    states: device.floats(states),
    checkpoints: true,
    steps: device.floats(steps),
    stepRows: STEP_ROWS,
  };
  const state = { ring: device.floats(ring), ringRows: RING_ROWS, delta };
  const kept = open(state, DELTA, device.words(new Uint32Array(BATCH * SLOT_WORDS)));
  assert.equal(await kept.save(inSlot(2), 1), 48);
  assert.equal(await kept.save(inSlot(1), 0), 32);
  kept.load(inSlot(0), 1, 48);
  assert.deepEqual(await device.readFloats(state.ring), copied(ring, BATCH, 2, 0));
  // The checkpoints follow the states of all slots: slot 2's is the state of slot 0 and its checkpoint.
  const expected = copied(copied(states, 2 * BATCH, BATCH + 2, 0), 2 * BATCH, BATCH + 2, BATCH);
  assert.deepEqual(await device.readFloats(delta.states), expected);
  const headers = Float32Array.from({ length: header }, (_, i) => i % 4 < 2 ? 48 : 0);
  const expectedSteps = steps.slice();
  expectedSteps.set(headers);
  assert.deepEqual(await device.readFloats(delta.steps), expectedSteps);
});

Deno.test("the state of a short convolution: its ring, of the slot's whole pages", async () => {
  const ring = numbers(BATCH * RING_ROWS * 12, 4);
  const state = { ring: device.floats(ring), ringRows: RING_ROWS };
  const lengths = new Uint32Array(BATCH * SLOT_WORDS);
  lengths.set([37], SLOT_WORDS);
  const kept = open(state, undefined, device.words(lengths));
  assert.equal(await kept.save(inSlot(1), 1), 32);
  kept.load(inSlot(2), 1, 32);
  assert.deepEqual(await device.readFloats(state.ring), copied(ring, BATCH, 1, 2));
});

Deno.test("states of prompts: whole forwards apart, so many as there are places for, those of long prompts at places of short ones", () => {
  let before = 1;
  for (let tokens = 1; tokens < 300_000; tokens += 977) {
    const spacing = stateSpacing(tokens);
    assert.equal(spacing % LONG_PREFILL_ROWS, 0);
    assert.ok(Math.floor(tokens / spacing) <= 8, `${tokens} tokens, every ${spacing}`);
    assert.equal(spacing % before, 0);
    before = spacing;
  }
  const contexts = [512, 2048, 2049, 4097, 8192, 32_768, 262_144];
  assert.deepEqual(contexts.map(promptStates), [0, 0, 1, 2, 3, 8, 8]);
});

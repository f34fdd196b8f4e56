import assert from "node:assert/strict";
import {
  roundsToDecision,
  type SlotState,
  startSlot,
  updateSlot,
} from "../../src/speculate/adaptive.ts";
import { type AdaptiveSlot, parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { AdaptiveConfigError } from "../../src/speculate/adaptive_fields.ts";

/** Acts on every round, and the average is the last round alone. */
const AT_ONCE = { ema_alpha: 1, warmup_batches: 0, update_interval: 1 };

function slotOf(candidate_steps: readonly number[], fields: object = {}): AdaptiveSlot {
  const [slot] = parseAdaptiveConfig({ "1": { candidate_steps, ...fields } }).slots;
  assert(slot);
  return slot;
}

/** Accepted drafts of one round, then what is expected: changed?, current, ema. */
type Step = readonly [accepted: number[], changed: boolean, current: number, ema: number];

/** After the unit tests of SGLang's `AdaptiveSpeculativeParams`: row, initial steps, slot, rounds. */
const TABLE: readonly [string, number, AdaptiveSlot, readonly Step[]][] = [
  [
    "2: decides first after warm-up and interval",
    3,
    slotOf([1, 3, 7], { ema_alpha: 1, warmup_batches: 1, update_interval: 2 }),
    [[[0, 0], false, 3, 0], [[0, 0], false, 3, 0], [[0, 0], true, 1, 0]],
  ],
  [
    "3: an empty batch does not count",
    3,
    slotOf([1, 3, 7], { ema_alpha: 1, warmup_batches: 1, update_interval: 1 }),
    [[[], false, 3, 2], [[0, 0], false, 3, 0], [[0, 0], true, 1, 0]],
  ],
  [
    "4: rises step by step",
    1,
    slotOf([1, 3, 7], { ...AT_ONCE, up_hysteresis: 0 }),
    [[[1, 1], true, 3, 1], [[3, 3], true, 7, 3]],
  ],
  ["5: falls past a candidate", 7, slotOf([1, 3, 7], AT_ONCE), [[[0, 0], true, 1, 0]]],
  [
    "6: equality does not rise",
    3,
    slotOf([1, 3, 7], { ...AT_ONCE, up_hysteresis: 0 }),
    [[[2, 3], false, 3, 2.5], [[3, 3], true, 7, 3]],
  ],
  [
    "7: equality falls",
    3,
    slotOf([1, 3, 7], { ...AT_ONCE, down_hysteresis: 0, up_hysteresis: 0.5 }),
    [[[0, 1], true, 1, 0.5]],
  ],
  [
    "8: up hysteresis",
    3,
    slotOf([1, 3, 7], { ...AT_ONCE, up_hysteresis: 0.75 }),
    [[[3, 3], false, 3, 3], [[4, 4], true, 7, 4]],
  ],
  [
    "9: down hysteresis",
    7,
    slotOf([1, 3, 7], { ...AT_ONCE, down_hysteresis: -0.75 }),
    [[[2, 2], false, 7, 2], [[1, 1], true, 3, 1]],
  ],
  [
    "10: half of each round",
    3,
    slotOf([1, 3, 7], { ...AT_ONCE, ema_alpha: 0.5, up_hysteresis: 0, down_hysteresis: 0 }),
    [
      [[4, 4], true, 7, 3],
      [[0, 0], true, 3, 1.5],
      [[0, 0], false, 3, 0.75],
      [[0, 0], true, 1, 0.375],
    ],
  ],
  [
    "11: at zero steps the average rests and the next tier is tried",
    3,
    slotOf([0, 3], { ...AT_ONCE, down_hysteresis: 0 }),
    [[[0, 0], true, 0, 0], [[3, 3], true, 3, 0], [[0, 0], true, 0, 0]],
  ],
  [
    "12: ceiling",
    7,
    slotOf([1, 3, 7], { ...AT_ONCE, ceiling_coeff: 1 }),
    [[[1, 1], true, 1, 1]],
  ],
  [
    "zero and one",
    0,
    slotOf([0, 1], { ...AT_ONCE, down_hysteresis: 0 }),
    [[[0], true, 1, 0], [[0], true, 0, 0], [[1], true, 1, 0], [[0], true, 0, 0]],
  ],
  [
    "ceiling 3",
    7,
    slotOf([1, 3, 7], { ...AT_ONCE, ceiling_coeff: 3 }),
    [[[2], true, 3, 2], [[1], false, 3, 1], [[0.5], true, 1, 0.5]],
  ],
  [
    "ceiling 1.67",
    3,
    slotOf([1, 3], { ...AT_ONCE, ceiling_coeff: 1.67 }),
    [[[1], true, 1, 1], [[1.5], true, 3, 1.5], [[2], false, 3, 2]],
  ],
  [
    "the ceiling alone takes steps away",
    2,
    slotOf([1, 2], { ...AT_ONCE, ceiling_coeff: 1 }),
    [[[1], true, 1, 1]],
  ],
  [
    "the ceiling is at least 1",
    1,
    slotOf([0, 1], { ...AT_ONCE, down_hysteresis: -0.75, ceiling_coeff: 1 }),
    [[[0], false, 1, 0]],
  ],
  [
    "the ceiling never stops a rise",
    1,
    slotOf([1, 3], { ...AT_ONCE, ceiling_coeff: 1 }),
    [[[1], true, 3, 1]],
  ],
];

for (const [name, initial, slot, steps] of TABLE) {
  Deno.test(`adaptive slot: ${name}`, () => {
    let state = startSlot(slot, initial);
    for (const [accepted, ...expected] of steps) {
      const next = updateSlot(state, accepted);
      assert.deepEqual([next.current !== state.current, next.current, next.ema], expected);
      state = next;
    }
  });
}

Deno.test("adaptive slot: starts at the initial steps, else at the middle candidate", () => {
  const start = (initial: number, steps: number[]) => {
    const { current, ema, batchCount } = startSlot(slotOf(steps), initial);
    return [current, ema, batchCount];
  };
  assert.deepEqual(start(2, [1, 3, 7]), [3, 2, 0]); // row 1
  assert.deepEqual(start(7, [1, 3, 7]), [7, 6, 0]);
  assert.deepEqual(start(9, [1, 3]), [3, 2, 0]);
  assert.deepEqual(start(0, [0, 1]), [0, -1, 0]);
  assert.deepEqual(start(3, [7, 1, 3, 1]), [3, 2, 0]);
  assert.throws(() => startSlot({ ...slotOf([1]), candidateSteps: [] }, 1), {
    name: "AdaptiveConfigError",
    message: "candidate_steps must have at least 1 value",
  });
  assert.equal(slotOf([1, 3, 7]).ceilingCoeff, 0); // row 13
});

/** Plays `accepted` until the tier changes: the round number and the new state. */
function firstChange(start: SlotState, accepted: number[]): [number, SlotState] {
  let state = start;
  for (let round = 1; round <= 1000; round++) {
    const next = updateSlot(state, accepted);
    if (next.current !== start.current) return [round, next];
    state = next;
  }
  return [Infinity, state];
}

Deno.test("adaptive slot: golden traces under the default fields", () => {
  const slot = slotOf([1, 3, 7]);
  const [rising, risen] = firstChange(startSlot(slot, 3), [7]);
  assert.deepEqual([rising, risen.current, risen.ema.toFixed(6)], [15, 7, "6.824078"]);
  const [falling, fallen] = firstChange(startSlot(slot, 7), [0]);
  assert.deepEqual([falling, fallen.current, fallen.ema.toFixed(6)], [15, 1, "0.211106"]);
  const [never, zero] = firstChange(startSlot(slotOf([0]), 3), [5]);
  assert.deepEqual([never, zero.current, zero.ema], [Infinity, 0, -1]);
});

/** Changes (round, current, ema) over 300 rounds that turn from easy to hard and back. */
function phases(start: SlotState): { changes: number[][]; ema: number } {
  let state = start;
  let x = 2026;
  const changes: number[][] = [];
  for (let round = 1; round <= 300; round++) {
    const accepted = Array.from({ length: 1 + round % 3 }, () => {
      x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff;
      const drawn = (x >>> 16) % ((state.current + 1) * 3);
      const easy = Math.floor(round / 60) % 2 === 0;
      return Math.min(state.current, easy ? drawn : Math.floor(drawn / 5));
    });
    const next = updateSlot(state, accepted);
    if (next.current !== state.current) changes.push([round, next.current, next.ema]);
    state = next;
  }
  return { changes, ema: state.ema };
}

// Written by a Python program of SGLang's rule: equal to the last bit of the average.
const PHASES: readonly [number, AdaptiveSlot, number[][], number][] = [
  [3, slotOf([1, 3, 7]), [
    [25, 7, 2.5178419058376313],
    [95, 3, 1.719841513648577],
    [130, 7, 2.779510535892311],
    [190, 3, 2.0985578782786627],
    [255, 7, 2.6034707246874156],
  ], 3.9770549327208684],
  [7, slotOf([1, 3, 7], { ceiling_coeff: 1.67 }), [
    [65, 3, 3.2755510990524708],
    [80, 1, 0.6828694120049916],
    [125, 3, 0.6879932282882654],
    [170, 7, 2.616219790550511],
    [185, 3, 2.5274017030217393],
    [200, 1, 1.1198036428035394],
    [205, 3, 0.5181372576738639],
    [210, 1, 0.4863698832612384],
    [245, 3, 0.7252070699432138],
    [275, 7, 2.516165888189896],
  ], 3.9679997562935143],
  [1, slotOf([0, 1, 3], { down_hysteresis: 0 }), [
    [15, 3, 0.8495883410800642],
    [110, 0, 0.48405492383507875],
    [115, 1, 0.48405492383507875],
    [120, 0, 0.23925511744227868],
    [125, 1, 0.23925511744227868],
    [130, 3, 0.7507191168834859],
  ], 1.9172876595451882],
];

for (const [initial, slot, changes, ema] of PHASES) {
  Deno.test(`adaptive slot: phases among ${slot.candidateSteps}, as Python computes them`, () => {
    assert.deepEqual(phases(startSlot(slot, initial)), { changes, ema });
  });
}

Deno.test("adaptive slot: only a flat config rises again after it fell", () => {
  // Rises from 1.0 on, falls at 1.75: between them both walks apply.
  const fields = { ...AT_ONCE, up_hysteresis: -1.5, down_hysteresis: -0.75 };
  const candidate_steps = [1, 3, 7];
  const [flat] = parseAdaptiveConfig({ candidate_steps, ...fields }).slots;
  assert(flat);
  assert.equal(updateSlot(startSlot(flat, 7), [1.25]).current, 7);
  assert.equal(updateSlot(startSlot(slotOf(candidate_steps, fields), 7), [1.25]).current, 3);
});

Deno.test("adaptive slot: the error of a config has a class of its own", () => {
  assert.throws(() => parseAdaptiveConfig({}), AdaptiveConfigError);
});

Deno.test("adaptive slot: steps change at the round that roundsToDecision says", () => {
  const fields = { warmup_batches: 3, update_interval: 4, down_hysteresis: 0 };
  let state = startSlot(slotOf([0, 1], fields), 0);
  for (let round = 0; round < 40; round++) {
    const next = updateSlot(state, [0, 0]);
    assert.equal(next.current !== state.current, roundsToDecision(state) === 1);
    state = next;
  }
  assert.equal(roundsToDecision(startSlot(slotOf([3]), 3)), Infinity);
});

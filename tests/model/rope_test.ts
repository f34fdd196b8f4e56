import assert from "node:assert/strict";
import { inverseFrequencies, ropeTable } from "../../src/model/weights/rope_table.ts";
import type { Rope } from "../../src/model/config/rope_config.ts";

const PLAIN: Rope = { theta: 10000, width: 4, scaling: { kind: "default" } };
const LLAMA3: Rope = {
  theta: 500000,
  width: 128,
  scaling: {
    kind: "llama3",
    factor: 8,
    lowFreqFactor: 1,
    highFreqFactor: 4,
    originalMaxPositions: 8192,
  },
};

function near(actual: number, expected: number, relative = 1e-6): void {
  const error = Math.abs(actual - expected);
  assert.ok(error <= relative * Math.abs(expected), `${actual} is not ${expected}`);
}

Deno.test("frequencies fall from 1 by powers of theta", () => {
  const frequencies = inverseFrequencies(PLAIN, 8);
  assert.equal(frequencies[0], 1);
  near(frequencies[1] ?? NaN, 0.01);
});

Deno.test("the table is [positions, headDim / 2, cos and sin]", () => {
  const table = ropeTable(PLAIN, 4, { positions: 3, context: 3 });
  assert.equal(table.length, 3 * 4);
  assert.deepEqual([...table.slice(0, 4)], [1, 0, 1, 0]);
  const expected = [Math.cos(2), Math.sin(2), Math.cos(0.02), Math.sin(0.02)];
  expected.forEach((value, i) => near(table[8 + i] ?? NaN, value));
});

Deno.test("far positions keep the rounding of float32 angles", () => {
  // 100003 * 0.1 is not a float32; the reference rounds the angle before it takes the cosine.
  const rope: Rope = { theta: 100, width: 4, scaling: { kind: "default" } };
  const table = ropeTable(rope, 4, { positions: 100004, context: 100004 });
  const angle = Math.fround(100003 * Math.fround(0.1));
  assert.equal(table[100003 * 4 + 2], Math.fround(Math.cos(angle)));
});

Deno.test("llama3 keeps short waves, slows long ones by the factor, mixes between", () => {
  const plain = inverseFrequencies({ ...LLAMA3, scaling: { kind: "default" } }, 8192);
  const scaled = inverseFrequencies(LLAMA3, 8192);
  const kinds = new Set<string>();
  plain.forEach((frequency, i) => {
    const wave = 2 * Math.PI / frequency;
    const actual = scaled[i] ?? NaN;
    if (wave < 8192 / 4) {
      assert.equal(actual, frequency);
      kinds.add("short");
    } else if (wave > 8192) {
      assert.equal(actual, Math.fround(frequency / 8));
      kinds.add("long");
    } else {
      const smooth = (8192 / wave - 1) / (4 - 1);
      near(actual, (1 - smooth) * frequency / 8 + smooth * frequency);
      kinds.add("between");
    }
  });
  assert.deepEqual([...kinds].sort(), ["between", "long", "short"]);
});

Deno.test("what a partial rope leaves alone does not turn", () => {
  const table = ropeTable(PLAIN, 8, { positions: 2, context: 2 });
  const [turned, passed] = [table.slice(8, 12), table.slice(12)];
  near(turned[1] ?? NaN, Math.sin(1));
  assert.deepEqual([...passed], [1, 0, 1, 0]);
});

Deno.test("linear slows every pair", () => {
  const rope: Rope = { ...PLAIN, scaling: { kind: "linear", factor: 4 } };
  assert.deepEqual([...inverseFrequencies(rope, 8)], [0.25, Math.fround(0.01) / 4]);
});

Deno.test("dynamic is the plain rope up to the model's positions, then slows with the context", () => {
  const scaling = { kind: "dynamic", factor: 4, maxPositions: 32 } as const;
  const rope: Rope = { ...PLAIN, scaling };
  assert.deepEqual(inverseFrequencies(rope, 20), inverseFrequencies(PLAIN, 20));
  // theta (4 * 64 / 32 - 3)^(4 / 2) = 250000
  near(inverseFrequencies(rope, 64)[1] ?? NaN, 250_000 ** -0.5);
});

Deno.test("longrope has factors for short contexts and for long ones, and scales both", () => {
  const rope: Rope = {
    ...PLAIN,
    scaling: {
      kind: "longrope",
      originalMaxPositions: 32,
      shortFactors: [1, 2],
      longFactors: [4, 5],
      attentionFactor: 1.25,
    },
  };
  const frequencies = (context: number) => [...inverseFrequencies(rope, context)];
  assert.deepEqual(frequencies(32), [1, 0.005].map(Math.fround));
  assert.deepEqual(frequencies(33), [0.25, 0.002].map(Math.fround));
  assert.equal(ropeTable(rope, 4, { positions: 1, context: 8 })[0], 1.25);
});

Deno.test("yarn keeps fast pairs, slows slow ones by the factor, mixes between", () => {
  const scaling = {
    kind: "yarn",
    factor: 4,
    originalMaxPositions: 4096,
    betaFast: 32,
    betaSlow: 1,
    truncate: true,
    attentionFactor: 1,
  } as const;
  const plain = inverseFrequencies({ ...LLAMA3, scaling: { kind: "default" } }, 1);
  const scaled = inverseFrequencies({ ...LLAMA3, scaling }, 1);
  const turns = plain.map((frequency) => 4096 * frequency / (2 * Math.PI));
  turns.forEach((count, i) => {
    const slower = (plain[i] ?? NaN) / (scaled[i] ?? NaN);
    if (count > 40) near(slower, 1);
    else if (count < 0.8) near(slower, 4);
    else assert.ok(slower >= 1 && slower <= 4, `pair ${i} is ${slower} times slower`);
  });
  assert.ok(turns.some((count) => count > 1 && count < 32));
});

Deno.test("proportional: the first pairs turn by the frequencies of the whole head, the others not", () => {
  const scaling = { kind: "proportional", pairs: 64, factor: 1 } as const;
  const rope: Rope = { theta: 1e6, width: 512, scaling };
  const frequencies = inverseFrequencies(rope, 8);
  assert.equal(frequencies.length, 256);
  near(frequencies[63] ?? NaN, 1e6 ** (-126 / 512));
  assert.ok(frequencies.subarray(64).every((frequency) => frequency === 0));
  const table = ropeTable(rope, 512, { positions: 2, context: 2 });
  // Pair i of a head is elements i and i + 256: 0 to 63 turn with 256 to 319.
  near(table[512 + 2 * 63 + 1] ?? NaN, Math.sin(1e6 ** (-126 / 512)));
  assert.deepEqual([...table.subarray(512 + 2 * 64)], Array(192).fill([1, 0]).flat());
});

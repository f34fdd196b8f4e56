import assert from "node:assert/strict";
import type { Rope } from "../../src/model/config.ts";
import { inverseFrequencies, ropeTable } from "../../src/model/rope.ts";

const PLAIN: Rope = { theta: 10000, scaling: { kind: "default" } };
const LLAMA3: Rope = {
  theta: 500000,
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
  const frequencies = inverseFrequencies(PLAIN, 4);
  assert.equal(frequencies[0], 1);
  near(frequencies[1] ?? NaN, 0.01);
});

Deno.test("the table is [positions, headDim / 2, cos and sin]", () => {
  const table = ropeTable(PLAIN, 4, 3);
  assert.equal(table.length, 3 * 4);
  assert.deepEqual([...table.slice(0, 4)], [1, 0, 1, 0]);
  const expected = [Math.cos(2), Math.sin(2), Math.cos(0.02), Math.sin(0.02)];
  expected.forEach((value, i) => near(table[8 + i] ?? NaN, value));
});

Deno.test("far positions keep the rounding of float32 angles", () => {
  // 100003 * 0.1 is not a float32; the reference rounds the angle before it takes the cosine.
  const rope: Rope = { theta: 100, scaling: { kind: "default" } };
  const table = ropeTable(rope, 4, 100004);
  const angle = Math.fround(100003 * Math.fround(0.1));
  assert.equal(table[100003 * 4 + 2], Math.fround(Math.cos(angle)));
});

Deno.test("llama3 keeps short waves, slows long ones by the factor, mixes between", () => {
  const plain = inverseFrequencies({ ...LLAMA3, scaling: { kind: "default" } }, 128);
  const scaled = inverseFrequencies(LLAMA3, 128);
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

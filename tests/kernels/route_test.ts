import assert from "node:assert/strict";
import { isBiased, route, type Routing } from "../../kernels/experts/route.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { openDevice } from "../gpu/device.ts";
import { assertClose, numbers } from "../gpu/numbers.ts";
import { routed as reference } from "./routing.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const PLAIN: Routing = {
  scores: "softmax",
  numExperts: 8,
  topK: 2,
  groups: 1,
  topGroups: 1,
  groupBest: 1,
  normalize: true,
  scale: 1,
};

const CASES: Readonly<Record<string, Routing>> = {
  "Mixtral": PLAIN,
  "Qwen3-MoE": { ...PLAIN, numExperts: 128, topK: 8 },
  "gpt-oss": { ...PLAIN, numExperts: 32, topK: 4 },
  "one expert of few": { ...PLAIN, numExperts: 3, topK: 1, normalize: false },
  "DeepSeek-V2": {
    ...PLAIN,
    numExperts: 160,
    topK: 6,
    groups: 8,
    topGroups: 3,
    normalize: false,
    scale: 16,
  },
  "DeepSeek-V3": {
    scores: "sigmoid",
    numExperts: 256,
    topK: 8,
    groups: 8,
    topGroups: 4,
    groupBest: 2,
    normalize: true,
    scale: 2.5,
  },
  "ERNIE 4.5": { ...PLAIN, scores: "biased_softmax", numExperts: 64, topK: 6 },
};

const ROWS = 5;

async function routed(
  logits: Float32Array,
  bias: Float32Array | undefined,
  of: Routing,
  software: boolean,
) {
  const rows = logits.length / of.numExperts;
  // Rows lie apart by one more than they have: what lies between must not be read.
  const stride = of.numExperts + 1;
  const padded = new Float32Array(rows * stride).fill(1e9);
  for (let r = 0; r < rows; r++) {
    padded.set(logits.subarray(r * of.numExperts, (r + 1) * of.numExperts), r * stride);
  }
  const experts = device.words(new Uint32Array(rows * of.topK));
  const weights = device.filled(rows * of.topK);
  const shape = { ...of, rows, stride, tuning: tuning(software), label: "test" };
  const buffers = {
    logits: device.floats(padded),
    bias: bias && device.floats(bias),
    experts,
    weights,
  };
  await device.run([route(buffers, shape)]);
  return { experts: await device.readWords(experts), weights: await device.readFloats(weights) };
}

for (const [name, of] of Object.entries(CASES)) {
  for (const software of [true, false]) {
    Deno.test(`route: ${name}, ${software ? "software" : "hardware"}`, async () => {
      const logits = numbers(ROWS * of.numExperts, of.numExperts).map((x) => 3 * x);
      const bias = numbers(of.numExperts, 7);
      const given = isBiased(of) ? bias : undefined;
      const found = await routed(logits, given, of, software);
      const wanted = Array.from(
        { length: ROWS },
        (_, r) =>
          reference(
            [...logits.subarray(r * of.numExperts, (r + 1) * of.numExperts)],
            [...bias],
            of,
          ),
      );
      assert.deepEqual([...found.experts], wanted.flatMap(({ experts }) => experts));
      assertClose(found.weights, wanted.flatMap(({ weights }) => weights), 1e-5, name);
    });
  }
}

Deno.test("route: of equal experts and groups the lower number is chosen", async () => {
  const of = { ...PLAIN, groups: 4, topGroups: 2, topK: 3 };
  const found = await routed(new Float32Array(8), undefined, of, false);
  assert.deepEqual([...found.experts], [0, 1, 2]);
  assertClose(found.weights, [1 / 3, 1 / 3, 1 / 3], 1e-6, "weights");
});

Deno.test("route: an expert's weight is multiplied by its factor", async () => {
  const rows = 3;
  const of = { ...PLAIN, numExperts: 37, topK: 5 };
  const logits = device.floats(numbers(rows * of.numExperts, 1));
  const factors = numbers(of.numExperts, 2);
  const made = () => ({
    experts: device.filled(rows * of.topK),
    weights: device.filled(rows * of.topK),
  });
  const [found, plain] = [made(), made()];
  const shape = { ...of, rows, stride: of.numExperts, tuning: tuning(false), label: "test" };
  await device.run([
    route({ logits, bias: undefined, factors: device.floats(factors), ...found }, shape),
    route({ logits, bias: undefined, ...plain }, shape),
  ]);
  const experts = await device.readWords(plain.experts);
  assert.deepEqual(await device.readWords(found.experts), experts);
  const weights = await device.readFloats(plain.weights);
  const expected = weights.map((weight, i) => weight * factors[experts[i]!]!);
  assert.deepEqual(await device.readFloats(found.weights), expected);
});

Deno.test("route: shared experts count the sigmoid of the logit behind those of the experts", async () => {
  const [rows, shared] = [3, 2];
  const of = { ...PLAIN, numExperts: 6, topK: 2 };
  const stride = of.numExperts + 2;
  const logits = numbers(rows * stride, 3);
  const made = { experts: device.filled(rows * 4), weights: device.filled(rows * 4) };
  const buffers = { logits: device.floats(logits), bias: undefined, ...made };
  const shape = { ...of, rows, stride, shared, sharedGate: true };
  await device.run([route(buffers, { ...shape, tuning: tuning(false), label: "test" })]);
  const wanted = Array.from({ length: rows }, (_, r) => {
    const row = [...logits.subarray(r * stride, (r + 1) * stride)];
    return reference(row.slice(0, of.numExperts), [], { ...of, shared, gate: row[of.numExperts] });
  });
  const experts = wanted.flatMap((of) => of.experts);
  assert.deepEqual([...await device.readWords(made.experts)], experts);
  const weights = wanted.flatMap((of) => of.weights);
  assertClose(await device.readFloats(made.weights), weights, 1e-5, "weights");
});

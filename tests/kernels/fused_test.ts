/** Two launches as one dispatch: the bits of each alone, and which go together. */
import assert from "node:assert/strict";
import { canBeFused, fused, memoryOf } from "../../kernels/fused.ts";
import { expertMatmul } from "../../kernels/experts/experts.ts";
import { route, type Routing } from "../../kernels/experts/route.ts";
import { routerLogits } from "../../kernels/experts/router_logits.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { shapeKey } from "../../kernels/matmul/matmul_shape.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import { workgroupInvocations } from "../../src/gpu/workgroup.ts";
import { openDevice } from "../gpu/device.ts";
import { drawn } from "../exhaustive.ts";
import { numbers } from "../gpu/numbers.ts";
import { uploadMatrix, weights } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
});
const COLS = 512; // a stage

const bf16 = (rows: number): Matrix =>
  uploadMatrix(device, weights("bf16", rows, COLS), {
    format: "bf16",
    cols: COLS,
    lanes: HARDWARE.lanes,
    shards: [rows],
  });
const q8 = (rows: number): Matrix =>
  uploadQuantized(device, numbers(rows * COLS, 9), {
    format: "q8",
    cols: COLS,
    most: HARDWARE.lanes,
  });

/** A launch of `groups` groups of lanes. */
function launched(matrix: Matrix, groups: number): Tuning {
  const launch = { stage: 64, groups };
  return {
    ...HARDWARE,
    launches: new Map([[shapeKey(matrix), new Map([[1, launch], [8, launch]])]]),
  };
}

for (const rows of [1, 3, 8]) {
  for (
    const [name, first, second, groups] of [
      ["a few columns of bf16 with q8", bf16(6), q8(200), undefined],
      ["workgroups of a subgroup", bf16(12), bf16(70), 2],
    ] as const
  ) {
    const { test } = rows === 1 ? Deno : drawn;
    test(`fused: ${name}, ${rows} rows`, async () => {
      const x = device.floats(numbers(rows * COLS, 3));
      const out = () => [first, second].map((matrix) => device.filled(rows * matrix.rows, 7));
      const launch = (outs: ReturnType<typeof out>) =>
        [first, second].map((matrix, i) => {
          const of = { rows, epilogue: "store", label: "test" } as const;
          const rules = groups ? launched(matrix, groups) : HARDWARE;
          const plan = matmul({ matrix, x, out: outs[i]! }, { ...of, tuning: rules });
          assert.equal(plan.length, 1);
          return plan[0]!;
        }) as [Dispatch, Dispatch];
      const [together, apart] = [out(), out()];
      const both = launch(together);
      assert.equal(workgroupInvocations(both[0]), groups ? 32 : 128);
      assert.ok(canBeFused(both, { ...HARDWARE, storageBuffers: 8 }));
      await device.run([fused(both, "both"), ...launch(apart)]);
      for (const [i, found] of together.entries()) {
        assert.deepEqual(await device.readWords(found), await device.readWords(apart[i]!));
        assert.ok((await device.readFloats(found)).every((y) => y !== 7));
      }
    });
  }
}

const ROUTING: Routing = {
  scores: "softmax",
  numExperts: 12,
  topK: 2,
  groups: 1,
  topGroups: 1,
  groupBest: 1,
  normalize: true,
  scale: 1.5,
};
const SIGMOID: Routing = { ...ROUTING, scores: "sigmoid" };
const BIASED: Routing = { ...ROUTING, scores: "biased_softmax" };

/** What a layer's experts begin with, of some rows, each with what it writes. */
interface Written {
  readonly launch: Dispatch;
  readonly writes: readonly Operand[];
}

const WITH_EXPERTS: Readonly<Record<string, (rows: number) => Written>> = {
  "a router"(rows) {
    const normed = device.filled(rows * COLS, 7);
    const logits = device.filled(rows * ROUTING.numExperts, 7);
    const weight = (seed: number) => device.floats(numbers(COLS, seed));
    const launch = routerLogits({
      matrix: bf16(ROUTING.numExperts),
      x: device.floats(numbers(rows * COLS, 4)),
      added: undefined,
      norm: weight(5),
      expertsNorm: weight(6),
      normed,
      logits,
    }, { rows, eps: 1e-6, tuning: HARDWARE, label: "router" });
    return { launch, writes: [normed, logits] };
  },
  "the choice of experts": (rows) => chosen(rows, ROUTING),
  "their choice by sigmoid scores": (rows) => chosen(rows, SIGMOID, numbers(ROUTING.numExperts, 3)),
  "their choice by a softmax and a bias": (rows) =>
    chosen(rows, BIASED, numbers(ROUTING.numExperts, 3)),
  "experts that choose": (rows) => expertsOf(rows, "q8", true),
  "experts that are chosen": (rows) => expertsOf(rows, "bf16", false),
};

function chosen(rows: number, routing: Routing, bias?: Float32Array): Written {
  const { numExperts, topK } = routing;
  const [experts, weights] = [device.filled(rows * topK, 7), device.filled(rows * topK, 7)];
  const logits = device.floats(numbers(rows * numExperts, 8));
  const buffers = { logits, bias: bias && device.floats(bias), experts, weights };
  const shape = { ...routing, rows, stride: numExperts, tuning: HARDWARE, label: "route" };
  return { launch: route(buffers, shape), writes: [experts, weights] };
}

function expertsOf(rows: number, format: "q8" | "bf16", chooses: boolean): Written {
  const { numExperts, topK } = ROUTING;
  const wide = 40;
  const matrix = (format === "q8" ? q8 : bf16)(numExperts * wide);
  const out = device.filled(rows * topK * wide, 7);
  const experts = chooses
    ? device.filled(rows * topK, 7)
    : device.words(Uint32Array.from({ length: rows * topK }, (_, i) => 5 * i % numExperts));
  const shares = device.filled(rows * topK, 7);
  const logits = device.floats(numbers(rows * numExperts, 8));
  const choice = { routing: ROUTING, logits, stride: numExperts, weights: shares };
  const x = device.floats(numbers(rows * COLS, 4));
  const [launch] = expertMatmul(
    { matrix, x, out, experts, tiles: experts, choice: chooses ? choice : undefined },
    {
      rows,
      topK,
      numExperts,
      tile: chooses ? 1 : 2,
      perJob: false,
      epilogue: "store",
      tuning: HARDWARE,
      label: "experts",
    },
  );
  return { launch: launch!, writes: chooses ? [out, experts, shares] : [out] };
}

for (const [i, [name, made]] of Object.entries(WITH_EXPERTS).entries()) {
  const { test } = i % 2 === 0 ? drawn : Deno;
  test(`fused: a matmul with ${name}`, async () => {
    const rows = 2;
    const matrix = q8(96);
    const x = device.floats(numbers(rows * COLS, 3));
    const both = () => {
      const first = made(rows);
      const out = device.filled(rows * matrix.rows, 7);
      const groups = workgroupInvocations(first.launch) / HARDWARE.lanes;
      const of = {
        rows,
        epilogue: "store",
        tuning: launched(matrix, groups),
        label: "matmul",
      } as const;
      const second = matmul({ matrix, x, out }, of);
      assert.equal(second.length, 1);
      return { launches: [second[0]!, first.launch] as const, writes: [...first.writes, out] };
    };
    const [together, apart] = [both(), both()];
    assert.ok(canBeFused(together.launches, { ...HARDWARE, storageBuffers: 16 }));
    await device.run([fused(together.launches, "both"), ...apart.launches]);
    for (const [i, found] of together.writes.entries()) {
      const words = await device.readWords(found);
      assert.deepEqual(words, await device.readWords(apart.writes[i]!));
      assert.ok(new Set(words).size > 1);
    }
  });
}

Deno.test("launches go together whose workgroups are alike and have room for the memory of both", () => {
  const x = device.filled(COLS, 1);
  const launch = (matrix: Matrix, rules: Tuning) =>
    matmul({ matrix, x, out: device.filled(matrix.rows, 0) }, {
      rows: 1,
      epilogue: "store",
      tuning: rules,
      label: "test",
    })[0]!;
  const [one, other] = [launch(bf16(6), HARDWARE), launch(bf16(70), HARDWARE)];
  const { bytes } = memoryOf(one, other);
  const adapter = { storageBuffers: 6, workgroupBytes: bytes };
  assert.ok(canBeFused([one, other], adapter));
  assert.ok(!canBeFused([one, other], { ...adapter, workgroupBytes: bytes - 1 }));
  assert.ok(!canBeFused([one, other], { ...adapter, storageBuffers: 5 }));
  const few = bf16(6);
  assert.ok(!canBeFused([launch(few, launched(few, 4)), other], adapter));
});

Deno.test("arrays of one type are one of both, as long as the longer, if their lengths are numbers", () => {
  const of = (...arrays: string[]) => ({
    kernel: { code: arrays.map((type, i) => `var<workgroup> v${i}: ${type};`).join("\n") },
    constants: { LANES: 6 },
  });
  const a = of("array<vec4<f32>, 3u * 4u>", "array<f32, 5>");
  const b = of("array<f32, 2>", "array<f32, 7>", "array<vec4<f32>, 20>");
  const memory = memoryOf(a, b);
  assert.deepEqual(memory.arrays, [
    { of: "vec4<f32>", count: 20, bytes: 320, names: ["v0", "v2"] },
    { of: "f32", count: 5, bytes: 20, names: ["v1", "v0"] },
    { of: "f32", count: 7, bytes: 28, names: [undefined, "v1"] },
  ]);
  assert.equal(memory.bytes, 16 * 20 + 32 + 32); // in whole 16 bytes each
  assert.equal(memoryOf(of(), of()).bytes, 0);
  // What an override constant makes longer is of one kernel alone.
  const alone = memoryOf(of("array<f32, 2>"), of("array<f32, 2u * LANES>", "u32"));
  assert.deepEqual(alone.arrays, [{ of: "f32", count: 2, bytes: 8, names: ["v0", undefined] }]);
  assert.equal(alone.bytes, 16 + 4 * 12 + 16);
});

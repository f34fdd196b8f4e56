// Mixtures on the kernels of hardware, matrix units where EYRIE_WEBGPU=dawn has any: the goldens, and models
// wide enough for staged experts, the router in one dispatch and shared experts in the stack, whose
// logits are near those of the software adapter's kernels, and of the same bits at any number of rows.

import assert from "node:assert/strict";
import { checkModel } from "../../src/engine/check/check.ts";
import { storageBuffer } from "../../src/engine/device/buffers.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { slotOf } from "../../src/engine/device/sequence.ts";
import { checkModels, loadWeights } from "../../src/engine/load/load.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import type { Quantization } from "../../src/gpu/weight_format.ts";
import { compiler, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { chainRow, PAGE, ROW_WORDS } from "../../src/model/device_layout.ts";
import { bodyPlan, headPlan } from "../../src/model/lower/target_plans.ts";
import { randomCheckpoint } from "../../src/model/weights/random_checkpoint.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { openGpu } from "../gpu/shared.ts";
import { folderOf } from "./speculated.ts";
import { drawnFrom, EXHAUSTIVE, exhaustive } from "../exhaustive.ts";

const GOLDENS = [
  "mixtral",
  "qwen3_moe",
  "qwen3_5_moe",
  "deepseek_v2_lite",
  "deepseek_v2_groups",
  "deepseek_v3",
];
/** The wider models, with their weight formats. */
const CASES = [
  ["qwen3_moe", "bf16"],
  ["deepseek_v2_lite", "bf16"],
  ["deepseek_v3", "bf16"],
  ["qwen3_moe", "q4"],
  ["deepseek_v2_lite", "q8"],
  ["qwen3_5_moe", "bf16"],
  ["qwen3_5_moe", "q8"],
  ["gemma4_moe", "bf16"],
  ["gemma4_moe", "q8"],
] as const;

/** Software has no matrix units. */
async function adapter(software: boolean): Promise<Gpu> {
  const gpu = await openGpu();
  const matrixUnit = software ? undefined : gpu.matrixUnit;
  return { ...gpu, info: { ...gpu.info, software }, matrixUnit };
}

/** The one golden or wider model that a run draws: a software adapter takes long to compile the kernels of each. */
const DRAWN = drawnFrom<string>([...GOLDENS, ...CASES.map((of) => of.join())]);

for (const name of GOLDENS) {
  const { test } = name === DRAWN ? Deno : exhaustive;
  test(`${name}, hardware kernels: computes what transformers does`, async () => {
    const model = folderOf(name);
    const expected = `${model}/expected.safetensors`;
    const report = await checkModel(
      { model, expected, tolerance: 2e-4 },
      () => adapter(false),
    );
    assert.ok(report.ok, JSON.stringify(report.tensors.filter(({ ok }) => !ok)));
  });
}

/** Just wide enough for a vec8 in each of 16 lanes. */
const WIDE = { hidden_size: 256, moe_intermediate_size: 128, num_hidden_layers: 2 };
const CONFIGS = {
  qwen3_moe: WIDE,
  deepseek_v2_lite: WIDE,
  deepseek_v3: WIDE,
  // Has a layer of each kind, and a second one of a kind whose input rows are not embeddings.
  qwen3_5_moe: {
    ...WIDE,
    shared_expert_intermediate_size: WIDE.moe_intermediate_size,
    num_hidden_layers: 3,
    layer_types: ["linear_attention", "full_attention", "linear_attention"],
  },
  // Each layer also has an MLP, of a width for which its two matmuls are not joined.
  gemma4_moe: {
    ...WIDE,
    intermediate_size: 192,
    layer_types: ["sliding_attention", "full_attention"],
    per_layer_config: { 1: { head_dim: 64, num_key_value_heads: 1 } },
  },
};

/** Prompt length of each sequence, and the most tokens of a sequence in a forward. */
const LENGTHS = [5, 17, 9, 30, 2, 12];
const DEPTH = 4;
const token = (a: number, b: number) => hash32(a, b, 9) % 64;

/** The golden's config made wider, with weights that depend only on their places. */
async function wide(name: keyof typeof CONFIGS): Promise<Checkpoint> {
  const config = JSON.parse(await Deno.readTextFile(`${folderOf(name)}/config.json`));
  const file = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(file, JSON.stringify({ ...config, ...CONFIGS[name] }));
  const shapes = randomCheckpoint(file, "target");
  await Deno.remove(file);
  const tensors = [...shapes.tensors.values()];
  return {
    ...shapes,
    read({ name }, offset, into) {
      const seed = tensors.findIndex((tensor) => tensor.name === name);
      const [, cols] = tensors[seed]?.shape ?? []; // the loader may read it in other rows
      const [size, middle] = cols === undefined ? [0.25, 1] : [1.7 / Math.sqrt(cols), 0];
      const values = new Float32Array(into.length / 2).map((_, i) =>
        middle + size * (hash32(seed, 3, offset / 2 + i) / 2 ** 31 - 1)
      );
      const words = new Uint32Array(values.buffer);
      into.set(new Uint8Array(Uint16Array.from(words, (word) => word >>> 16).buffer));
    },
  };
}

async function open(
  name: keyof typeof CONFIGS,
  { software, quantize }: { software: boolean; quantize: Quantization | undefined },
): Promise<Runner> {
  const gpu = await adapter(software);
  using models = checkModels(await wide(name), undefined);
  // As near to the software adapter's as they can be.
  const weights = await loadWeights(gpu, models, { quantize, precision: "f32" });
  return await openRunner(gpu, weights, {
    batch: LENGTHS.length * DEPTH, // rows that get logits
    shapes: chains([0, DEPTH - 1]),
    prefillRows: 64,
    contextLength: 64,
    pages: LENGTHS.length * 80 / PAGE,
  });
}

/** Logits of `perSlot` more tokens of each of the sequences, by sequence and depth. */
async function logitsOf(
  runner: Runner,
  { slots, sequences, perSlot }: {
    readonly slots: readonly number[];
    readonly sequences: readonly number[];
    readonly perSlot: number;
  },
): Promise<Map<string, Uint32Array>> {
  const { gpu, models: { target } } = runner;
  const rows = sequences.flatMap((sequence) =>
    Array.from({ length: perSlot }, (_, depth) => ({ sequence, depth }))
  );
  const words = rows.flatMap(({ sequence, depth }) => [
    ...chainRow(
      token(100 + sequence, depth),
      slots[sequence] as number,
      (LENGTHS[sequence] as number) + depth,
    ),
  ]);
  const buffer = storageBuffer(gpu, "rows", rows.length * ROW_WORDS);
  gpu.device.queue.writeBuffer(buffer.buffer, 0, Uint32Array.from(words));
  const of = { rows: buffer, count: rows.length, perSlot };
  const plan = [...bodyPlan(target, of), ...headPlan(target, rows.length)];
  submit(gpu, await compiler(gpu).compile(plan));
  const logits = new Uint32Array(await readBuffer(gpu, target.logits));
  const stride = target.weights.head.rows;
  return new Map(rows.map(({ sequence, depth }, i) => [
    `${sequence} ${depth}`,
    logits.slice(i * stride, (i + 1) * stride),
  ]));
}

/**
 * Logits at several numbers of rows: 24, 1 to 4 of one sequence, 6 and 8.
 *
 * @param most how many of these numbers of rows are run at most.
 */
async function allLogits(runner: Runner, most = Infinity): Promise<Map<string, Uint32Array>[]> {
  using stack = new DisposableStack();
  const slots: number[] = [];
  for (const [i, length] of LENGTHS.entries()) {
    const sequence = stack.use(openSequence(runner));
    assert.ok(runner.reserve(sequence, length + DEPTH + 1));
    runner.setSampling(sequence, GREEDY);
    await prefillPrompt(runner, sequence, Array.from({ length }, (_, at) => token(i, at)));
    slots.push(slotOf(sequence));
  }
  const all = [...LENGTHS.keys()];
  const forwards = [
    { sequences: all, perSlot: DEPTH },
    ...(EXHAUSTIVE ? [1, 2, 3, 4] : [1]).map((perSlot) => ({ sequences: [3], perSlot })),
    { sequences: all, perSlot: 1 },
    ...EXHAUSTIVE ? [{ sequences: [4, 1], perSlot: DEPTH }] : [],
  ];
  const found = [];
  for (const forward of forwards.slice(0, most)) {
    found.push(await logitsOf(runner, { slots, ...forward }));
  }
  return found;
}

/** The relative error of each row's logits, in ascending order. */
function distances(found: Map<string, Uint32Array>, wanted: Map<string, Uint32Array>): number[] {
  const size = (values: Float32Array) =>
    Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  const errors = [...wanted].map(([row, bits]) => {
    const want = new Float32Array(bits.buffer);
    const own = new Float32Array(found.get(row)?.buffer ?? new ArrayBuffer(0));
    return size(want.map((value, i) => value - (own[i] ?? NaN))) / size(want);
  });
  return errors.sort((a, b) => a - b);
}

function kernelsOf({ gpu, models: { target } }: Runner): string {
  const of = { rows: storageBuffer(gpu, "rows", ROW_WORDS), count: 1, perSlot: 1 };
  return bodyPlan(target, of).map(({ kernel }) => kernel.name).join(" ");
}

/**
 * Hardware rounds the activations of quantized weights to 8 bits, matrix units round them to 11. A row whose router
 * rates two experts nearly alike may then choose the other, so not all rows must be this near. On an H200 one of
 * qwen3_5_moe's 24 rows is at 0.0105 on units, the others at 0.0036 at most.
 */
const FARTHEST = {
  others: { bf16: 1e-5, q8: 2 ** -5, q4: 2 ** -5 },
  units: { bf16: 1e-5, q8: 2 ** -8, q4: 2 ** -8 },
} as const;

/** The share of the rows that must be. */
const NEAR_ROWS = { others: 1 / 2, units: 7 / 8 } as const;

/** Factor of these bounds for recurrent models: a recurrence adds up the rounding errors of all earlier rows. */
const RECURRENT = 2;

for (const [name, format] of CASES) {
  const { test } = `${name},${format}` === DRAWN ? Deno : exhaustive;
  test(`${name}, wider, ${format}, hardware kernels: logits of the software adapter's, the same at any number of rows`, async () => {
    const quantize = format === "bf16" ? undefined : format;
    const hardware = await open(name, { software: false, quantize });
    const kernels = kernelsOf(hardware);
    assert.match(kernels, /router_logits_bf16/);
    // Quantized weights go to units because the tests set EYRIE_MATRIX_UNITS.
    const units = hardware.gpu.matrixUnit !== undefined;
    const kind = format === "bf16" ? "halved" : `f16_${format}`;
    // Where subgroups choose the experts, an invocation of a quantized matmul of few workgroups has one pair.
    const picked = format !== "bf16" && hardware.gpu.info.subgroup !== undefined;
    const gate = name === "gemma4_moe" ? "geglu" : "swiglu";
    const staged = `matmul_${format}_${gate}_1x${picked ? 1 : 2}_staged`;
    const gateUp = units ? `tensor_${kind}_${gate}_scaled` : staged;
    assert.ok(kernels.includes(`expert_${gateUp}`), kernels);
    const summed = name === "gemma4_moe"
      ? /rms_norm_normed_\d+_scaled_/
      : units
      ? /rms_norm_experts_|normed_\d+x\d+_0_experts_/
      : /expert_sums_/;
    assert.match(kernels, summed);
    // Where no experts are to be added, the matmuls of a recurrent layer norm their rows themselves.
    if (name === "qwen3_5_moe" && !units) {
      assert.match(kernels, /fused_\d+_.*_normed_.*_with_.*_normed_/);
    }
    // The MLP's down depends neither on the router nor on the experts, nor these on it, so it shares a dispatch.
    if (name === "gemma4_moe" && format === "q8" && !units) {
      assert.match(kernels, /fused_\d+_matmul_\S*_with_router_logits_/);
    }
    // Whatever goes to matrix units in one row has had its scales stored.
    if (units) assert.doesNotMatch(kernels, /row_scales/);
    const [whole = new Map(), ...parts] = await allLogits(hardware);
    for (const part of parts) {
      for (const [row, bits] of part) assert.deepEqual(bits, whole.get(row), row);
    }
    const software = await open(name, { software: true, quantize });
    const [wanted = new Map()] = await allLogits(software, 1);
    const all = distances(whole, wanted);
    const kernelKind = units ? "units" : "others";
    const near = format === "bf16" ? 1 : NEAR_ROWS[kernelKind];
    const far = all[Math.ceil(all.length * near) - 1] ?? NaN;
    const farthest = FARTHEST[kernelKind][format];
    assert.ok(far < farthest * (name === "qwen3_5_moe" ? RECURRENT : 1), `${far}`);
  });
}

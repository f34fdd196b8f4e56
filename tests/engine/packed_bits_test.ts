// A row's logits are the same bits whether the rows of its sequence are padded to a number or packed.
import assert from "node:assert/strict";
import { storageBuffer } from "../../src/engine/device/buffers.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { openSequence, prefillPrompt } from "../../src/engine/device/single_sequence.ts";
import { slotOf } from "../../src/engine/device/sequence.ts";
import { openGpu } from "../gpu/shared.ts";
import { compiler, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { chainRow, PAGE, ROW_WORDS } from "../../src/model/device_layout.ts";
import { bodyPlan, headPlan } from "../../src/model/lower/target_plans.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { loadSpeculated, openSpeculated } from "./speculated.ts";
import { exhaustive } from "../exhaustive.ts";

const CONTEXT = 160;
/** Prompts that end in different splits of the keys; drafts of each that are verified. */
const LENGTHS = [9, 63, 130, 64, 17];
const COUNTS = [3, 0, 5, 1, 5];
const DEPTH = 5;
/** Tokens that every golden has. */
const token = (a: number, b: number) => hash32(a, b, 9) % 64;

async function open(name: string, software: boolean): Promise<Runner> {
  const opened = await openGpu();
  const gpu = { ...opened, info: { ...opened.info, software } };
  using models = await openSpeculated(name);
  return await openRunner(gpu, await loadSpeculated(gpu, models), {
    batch: LENGTHS.length,
    shapes: chains([DEPTH]),
    prefillRows: 64,
    contextLength: CONTEXT,
    pages: LENGTHS.length * (CONTEXT + 16) / PAGE,
  });
}

/** Logits of the rows of a forward, each by its sequence and depth. */
async function logitsOf(
  runner: Runner,
  rows: readonly ({ readonly sequence: number; readonly depth: number } | undefined)[],
  perSlot: number,
  slots: readonly number[],
): Promise<Map<string, Uint32Array>> {
  const { gpu, models: { target } } = runner;
  const words = new Uint32Array(rows.length * ROW_WORDS);
  for (const [i, row] of rows.entries()) {
    if (row === undefined) continue;
    const { sequence, depth } = row;
    const cell = (LENGTHS[sequence] as number) + depth;
    const made = chainRow(token(100 + sequence, depth), slots[sequence] as number, cell);
    words.set(made, i * ROW_WORDS);
  }
  const buffer = storageBuffer(gpu, "rows", words.length);
  gpu.device.queue.writeBuffer(buffer.buffer, 0, words);
  const { compile } = compiler(gpu);
  const count = rows.length;
  const plan = [
    ...bodyPlan(target, { rows: buffer, count, perSlot }),
    ...headPlan(target, count),
  ];
  submit(gpu, await compile(plan));
  const logits = new Uint32Array(await readBuffer(gpu, target.logits));
  const stride = target.weights.head.rows;
  return new Map(
    rows.flatMap((row, i) =>
      row === undefined
        ? []
        : [[`${row.sequence} ${row.depth}`, logits.slice(i * stride, (i + 1) * stride)] as const]
    ),
  );
}

const CASES = [
  // Groups of heads, windows, caps, latents and experts.
  ...["llama2", "qwen2_window", "gemma2", "deepseek_v3"].map((name) => [name, true] as const),
  ...["llama2", "gemma3", "qwen3_moe"].map((name) => [name, false] as const),
];

for (const [name, software] of CASES) {
  const isShort = software && (name === "llama2" || name === "gemma2");
  const { test } = isShort ? Deno : exhaustive;
  test(`${name}, ${software ? "software" : "hardware"} kernels: logits of packed rows are those of padded rows, to the bit`, async () => {
    const runner = await open(name, software);
    using stack = new DisposableStack();
    const slots: number[] = [];
    for (const [i, length] of LENGTHS.entries()) {
      const sequence = stack.use(openSequence(runner));
      assert.ok(runner.reserve(sequence, length + 10));
      runner.setSampling(sequence, GREEDY);
      await prefillPrompt(runner, sequence, Array.from({ length }, (_, at) => token(i, at)));
      slots.push(slotOf(sequence));
    }
    const wanted = LENGTHS.map((_, sequence) =>
      Array.from({ length: 1 + (COUNTS[sequence] as number) }, (_, depth) => ({ sequence, depth }))
    );
    const padded = wanted.flatMap((own) => [
      ...own,
      ...Array<undefined>(DEPTH + 1 - own.length),
    ]);
    const packed = [...wanted.flat(), undefined, undefined, undefined];
    const whole = await logitsOf(runner, padded, DEPTH + 1, slots);
    const found = await logitsOf(runner, packed, 1, slots);
    assert.deepEqual([...found.keys()], [...whole.keys()]);
    for (const [row, bits] of whole) {
      assert.deepEqual(found.get(row), bits, row);
    }
    const alone = wanted[2] ?? [];
    const one = await logitsOf(runner, [...alone, undefined, undefined], alone.length + 2, slots);
    for (const [row, bits] of one) assert.deepEqual(bits, whole.get(row), `${row} alone`);
    const values = new Float32Array([...whole.values()][0]?.buffer ?? new ArrayBuffer(0));
    assert.ok(new Set(values).size > 10, "logits of a model");
    runner.gpu[Symbol.dispose]();
  });
}

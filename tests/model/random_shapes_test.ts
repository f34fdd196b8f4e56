// Models of drawn shapes: rows have the same bits however many are computed together and without a drawn rewrite, and
// nothing is read from memory that no operation has written.

import assert from "node:assert/strict";
import { storageBuffer } from "../../src/engine/device/buffers.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { slotOf } from "../../src/engine/device/sequence.ts";
import { openSequence } from "../../src/engine/device/single_sequence.ts";
import { loadRandomWeights } from "../../src/engine/load/random_models.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { compiler, submit, within } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { chainRow, PAGE, ROW_WORDS } from "../../src/model/device_layout.ts";
import { REWRITES } from "../../src/model/lower/rewrites.ts";
import { bodyPlan, headPlan } from "../../src/model/lower/target_plans.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { drawn, drawnFrom } from "../exhaustive.ts";
import { openGpu } from "../gpu/shared.ts";
import { openWide } from "./wide_models.ts";

const KEPT_BITS = REWRITES.filter(({ changesBits }) => !changesBits).map(({ name }) => name);

/** Forwards of the same tokens, by their rows: several splits of keys, rows of one forward among those of another. */
const FORWARDS = [[70, 1, 3, 6], [1, 2, 66, 2, 1, 8]] as const;
const LENGTH = 80;
/** Most rows of a forward whose logits are compared. */
const HEAD_ROWS = 4;

/** NaN as f32, f16 and bf16. */
const POISON = 0xffffffff;

for (const model of ["wide_llama", "wide_qwen3_moe", "wide_deepseek"]) {
  drawn.test(`${model} of a drawn shape: rows have the same bits in all forwards`, async () => {
    const of = <T>(name: string, values: readonly T[]) => drawnFrom(values, `${model} ${name}`);
    const kvHeads = of("kv heads", [1, 2, 3]);
    const sizes = {
      hidden_size: of("hidden", [72, 96, 136, 200, 320]),
      intermediate_size: of("intermediate", [88, 128, 264, 512]),
      num_attention_heads: kvHeads * of("group", [1, 2, 3, 5, 7, 8, 16]),
      num_key_value_heads: kvHeads,
      head_dim: of("head", [32, 64, 80, 96, 112, 128, 192, 256]),
      vocab_size: of("vocab", [259, 333, 512, 1001]),
      moe_intermediate_size: of("experts", [64, 128, 192]),
    };
    const kvDtype = of<KvDtype>("cells", ["f32", "f16", "bf16"]);
    const without = of("rewrite", KEPT_BITS);
    const told = JSON.stringify({ ...sizes, kvDtype, without });
    const gpu = await openGpu();
    const hardware = { ...gpu, info: { ...gpu.info, software: false } };
    using models = await openWide(model, sizes);
    const runner = await openRunner(hardware, await loadRandomWeights(hardware, models, 1), {
      batch: 1,
      shapes: chains([0, 1]),
      prefillRows: 128,
      contextLength: 2 * LENGTH,
      pages: 16,
      kvDtype,
    });
    using sequence = openSequence(runner);
    assert.ok(runner.reserve(sequence, LENGTH));
    const { target } = runner.models;
    const { compile } = compiler(gpu);
    const poison = (all: Iterable<GPUBuffer>) => {
      for (const buffer of all) {
        gpu.device.queue.writeBuffer(buffer, 0, new Uint32Array(buffer.size / 4).fill(POISON));
      }
    };
    /** Bits of the logits of the first rows of each forward, by position. */
    const logitsOf = async (forwards: readonly number[], off: ReadonlySet<string>) => {
      poison(new Set(target.kv.flatMap(({ keys, values }) => [keys.buffer, values.buffer])));
      const found = new Map<number, Uint32Array>();
      let first = 0;
      for (const count of forwards) {
        const rows = storageBuffer(gpu, "rows", count * ROW_WORDS);
        const words = Array.from({ length: count }, (_, i) => [
          ...chainRow(((first + i) * 37 + 5) % sizes.vocab_size, slotOf(sequence), first + i),
        ]);
        gpu.device.queue.writeBuffer(rows.buffer, 0, Uint32Array.from(words.flat()));
        const context = { ...target, without: off };
        const head = Math.min(count, HEAD_ROWS);
        const plan = [
          ...bodyPlan(context, { rows, count, perSlot: count }),
          ...headPlan(context, head),
        ];
        const bound = plan.flatMap(({ buffers }) =>
          Object.values(buffers).map(({ buffer }) => buffer)
        );
        poison(new Set(bound.filter(({ label }) => /^(scratch|final|logits)/.test(label))));
        const cells = Math.ceil((first + count) / PAGE) * PAGE;
        submit(gpu, within(await compile(plan), cells));
        const logits = await readBuffer(gpu, target.logits);
        for (let row = 0; row < head; row++) {
          const at = 4 * row * target.weights.head.rows;
          const bits = new Uint32Array(logits, at, sizes.vocab_size);
          assert.ok(new Float32Array(logits, at, sizes.vocab_size).every(Number.isFinite), told);
          found.set(first + row, bits);
        }
        first += count;
        rows.buffer.destroy();
      }
      assert.equal(first, LENGTH);
      return found;
    };
    const [forwards, others] = FORWARDS;
    const wanted = await logitsOf(forwards, new Set());
    assert.deepEqual(await logitsOf(forwards, new Set([without])), wanted, told);
    const found = await logitsOf(others, new Set());
    const common = [...found.keys()].filter((position) => wanted.has(position));
    assert.ok(common.length > HEAD_ROWS);
    for (const position of common) {
      assert.deepEqual(found.get(position), wanted.get(position), `${told}, ${position}`);
    }
  });
}

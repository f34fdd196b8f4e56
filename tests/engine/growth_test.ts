import assert from "node:assert/strict";
import { measurePrefill, measureRounds, pointCells } from "../../src/engine/check/growth/growth.ts";
import { fillCells } from "../../src/engine/check/growth/random_cells.ts";
import { enginesSizes, growthPlan, growthRoom } from "../../src/engine/check/growth/room.ts";
import { ranOutOfMemory } from "../../src/engine/load/fits.ts";
import { OutOfMemory } from "../../src/gpu/device.ts";
import { PAPER_ADAPTER } from "../../src/gpu/paper.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { UsageError } from "../../src/errors.ts";
import { openGpu } from "../gpu/shared.ts";
import { openEngine } from "./open.ts";

const POINTS = [
  { context: 0, batch: 1, rows: 1 },
  { context: 200, batch: 3, rows: 4 },
];

for (const draft of ["none", undefined]) {
  Deno.test(`growth: points of an engine with draft ${draft ?? "eagle3"}`, async () => {
    const { depths: _, ...sizes } = enginesSizes(POINTS);
    using engine = await openEngine({
      model: draft ? { draft } : {},
      device: { profile: true },
      limits: sizes,
      hooks: { plan: growthPlan(POINTS) },
    });
    const { runner } = engine;
    await fillCells(runner);
    const free = runner.pool.free;
    const works: number[] = [];
    for (const point of POINTS) {
      const found = await measureRounds(runner, point, { times: 3 });
      assert.equal(found?.rounds.length, 3);
      works.push(found?.work.bytes ?? 0);
      for (const { ms, draftMs, verifyMs, extendMs } of found?.rounds ?? []) {
        assert.ok(ms >= draftMs + verifyMs + extendMs);
        if (runner.gpu.info.features.includes("timestamp-query")) assert.ok(verifyMs > 0);
        // A level of a chain of three; without a draft its pass is empty.
        if (draft === undefined && point.rows > 1 && verifyMs > 0) assert.ok(draftMs > 0.05);
      }
      assert.equal(runner.pool.free, free);
    }
    // At least the keys and values of 3 x 200 cells more.
    const { layers } = runner.models.target.config;
    const [{ attention }] = layers as [typeof layers[number]];
    assert.ok(attention.kind === "heads");
    const cell = layers.length * 2 * 4 * attention.numKvHeads * attention.headDim;
    assert.ok((works[1] ?? 0) - (works[0] ?? 0) > 600 * cell);
    // More sequences than slots, and more cells than pages.
    const most = { context: 200, rows: 1 };
    assert.equal(await measureRounds(runner, { ...most, batch: 4 }, { times: 1 }), undefined);
  });
}

Deno.test("growth: a prefill stores the last tokens of a context, chunk by chunk", async () => {
  const points = [{ context: 200, batch: 1, rows: 1 }];
  const { depths: _, ...sizes } = enginesSizes(points);
  using engine = await openEngine({ limits: sizes, model: { draft: "none" } });
  const { runner } = engine;
  const asked = { context: 200, count: 40, chunkRows: 16, times: 2 };
  const found = await measurePrefill(runner, asked);
  assert.deepEqual([found?.count, found?.ms.length], [40, 2]);
  // Two products a weight and row: attention adds to it.
  const { vocabSize, hiddenSize } = runner.models.target.config;
  assert.ok((found?.work.flops ?? 0) > 2 * vocabSize * hiddenSize);
  const whole = await measurePrefill(runner, { ...asked, count: 200, times: 1 });
  assert.ok((whole?.work.flops ?? 0) > 4 * (found?.work.flops ?? Infinity));
  const longer = { ...asked, context: 100_000 };
  await assert.rejects(measurePrefill(runner, longer), /a sequence holds/);
});

for (const kvDtype of ["f32", "f16", "bf16"] as const) {
  Deno.test(`growth: cells are filled with finite numbers in ${kvDtype}`, async () => {
    using engine = await openEngine({
      model: { draft: "none" },
      limits: { kvDtype, contextLength: 64 },
    });
    const { runner } = engine;
    await fillCells(runner);
    const [{ keys }] = runner.models.target.kv as [typeof runner.models.target.kv[number]];
    const words = new Uint32Array(await readBuffer(runner.gpu, keys));
    const numbers = kvDtype === "f32"
      ? [...new Float32Array(words.buffer)]
      : kvDtype === "f16"
      ? [...new Float16Array(words.buffer)]
      : [...words].flatMap((word) => [
        ...new Float32Array(Uint32Array.of(word << 16, word & 0xffff0000).buffer),
      ]);
    assert.ok(numbers.every(Number.isFinite));
    assert.ok(new Set(numbers).size > numbers.length / 100);
  });
}

Deno.test("growth: what there is no room for is known before anything is loaded", async () => {
  const machine = (free: number) => ({
    openGpu,
    gpuMemory: () => Promise.resolve({ total: 2 * free, free }),
  });
  using room = await growthRoom({}, machine(40e6));
  const at = (context: number, batch = 1, rows = 1) => ({ context, batch, rows });
  assert.equal(room.faultOf(at(room.longest)), undefined);
  assert.match(
    room.faultOf(at(room.longest + 1)) ?? "",
    /^the model has 1024 positions, of which 1025 are needed$/,
  );
  assert.match(room.faultOf(at(512, 64)) ?? "", /^it takes .* MB, the GPU has 40\.0 MB free of/);
  using narrow = await growthRoom({ model: { algorithm: "NONE" } }, {
    async openGpu() {
      const gpu = await openGpu();
      const limits = { ...PAPER_ADAPTER.limits, maxStorageBufferBindingSize: 2 ** 20 };
      return { ...gpu, limits };
    },
    gpuMemory: () => Promise.resolve(undefined),
  });
  assert.equal(narrow.faultOf(at(16, 8)), undefined);
  assert.match(
    narrow.faultOf(at(16, 8, 17)) ?? "",
    /^Cannot allocate "logits": it takes 1114112 bytes, the adapter binds 1048576; use a smaller /,
  );
  // What grows with a point: cells with its batch, logits with its rows.
  // Rows of files have these as they are.
  assert.deepEqual(Object.keys(room.needOf(at(512))), ["weights", "kv", "scratch", "total"]);
  assert.ok(room.needOf(at(512, 2)).kv > 1.9 * room.needOf(at(512)).kv);
  assert.ok(room.needOf(at(512, 1, 16)).scratch > room.needOf(at(512)).scratch);
  assert.equal(pointCells(at(0, 1, 1)), 67);
});

Deno.test("growth: an engine that finds no memory is told from other mistakes", () => {
  const error = new OutOfMemory("no memory");
  assert.ok(ranOutOfMemory(error));
  assert.ok(ranOutOfMemory(new UsageError("Cannot load", { cause: error })));
  assert.ok(!ranOutOfMemory(new UsageError("Cannot load")));
});

import assert from "node:assert/strict";
import type { Gpu } from "../../src/gpu/device.ts";
import { dispatch, kernel } from "../../src/gpu/kernel.ts";
import { apart, medianTime, openProfiler } from "../../src/gpu/profile.ts";
import { compiler } from "../../src/gpu/program.ts";
import { UsageError } from "../../src/errors.ts";
import { openDevice } from "./device.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

Deno.test("profile: a median is the middle time, the larger of two", () => {
  assert.equal(medianTime([3, 10, 2]), 3);
  assert.equal(medianTime([4, 1, 3, 2]), 3);
  assert.ok(Number.isNaN(medianTime([])));
});

const COUNT_UP = kernel(
  "count_up",
  `
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(1) fn main() { out[0]++; }`,
  { bindings: ["out"], constants: [] },
);

Deno.test({
  name: "a profiler runs every program once, in order, in as many submissions as it needs",
  ignore: !device.gpu.info.features.includes("timestamp-query"),
  async fn() {
    const out = device.words([0]);
    const launch = (label: string) =>
      dispatch(COUNT_UP, { buffers: { out }, constants: {}, workgroups: [1], label });
    const program = await compiler(device.gpu).compile(["a", "b", "c", "d", "e"].map(launch));
    for (const queries of [2, 4, 4096]) {
      using profiler = await openProfiler(device.gpu, { queries });
      const before = (await device.readWords(out))[0] ?? 0;
      const spans = await profiler.time(apart(program));
      assert.equal(spans.length, 5);
      assert.equal((await device.readWords(out))[0], before + 5);
      assert.equal(spans[0]?.begin, 0);
      for (const [i, { begin, end }] of spans.entries()) {
        assert.ok(end > begin, `${queries} queries, ${i}`);
        assert.ok(begin >= (spans[i - 1]?.end ?? 0), `${queries} queries, ${i}`);
      }
      assert.equal((await profiler.time([program])).length, 1);
    }
    assert.deepEqual(apart(program).flatMap(({ steps }) => steps), program.steps);
  },
});

Deno.test("without timestamp queries there is no profiler", async () => {
  const info = { ...device.gpu.info, adapter: "Slate", features: [] };
  const gpu: Gpu = { ...device.gpu, info };
  await assert.rejects(
    () => openProfiler(gpu),
    new UsageError('Cannot profile "Slate": it has no timestamp queries'),
  );
});

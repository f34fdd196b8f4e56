/** Cells that no row has stored yet may hold anything: what is left of earlier requests, infinities too. */
import assert from "node:assert/strict";
import { resultOf } from "../../src/engine/schedule/events.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { gpuMemory } from "../../src/gpu/memory.ts";
import { openGpu } from "../gpu/shared.ts";
import { openEngine } from "./open.ts";

const MACHINE = {
  openGpu: async () => {
    const gpu = await openGpu();
    return { ...gpu, info: { ...gpu.info, software: false } };
  },
  gpuMemory,
};

/** Greedy ids of a prompt, with all keys and values NaN before it is stored. */
async function answer(
  stale: boolean,
  draft: { readonly draft?: "none" },
): Promise<readonly number[]> {
  const limits = { contextLength: 128, maxBatch: 2, kvDtype: "f32" } as const;
  using engine = await openEngine({ model: draft, limits, device: { costs: "off" } }, MACHINE);
  const { gpu, models: { target } } = engine.runner;
  const buffers = new Set(target.kv.flatMap(({ keys, values }) => [keys.buffer, values.buffer]));
  for (const buffer of stale ? buffers : []) {
    gpu.device.queue.writeBuffer(buffer, 0, new Float32Array(buffer.size / 4).fill(NaN));
  }
  const promptIds = Array.from({ length: 21 }, (_, i) => 3 + (i * 37) % 300);
  const job = { promptIds, sampling: GREEDY, maxTokens: 24, stop: [], ignoreEos: true };
  return (await resultOf(engine.submit(job))).outputIds;
}

for (const draft of [{ draft: "none" }, {}] as const) {
  Deno.test(`hardware kernels, ${draft.draft ?? "a"} draft: stale cells change no text`, async () => {
    assert.deepEqual(await answer(true, draft), await answer(false, draft));
  });
}

import { equal, ok } from "node:assert/strict";
import { costsTokens, sweepTokens } from "../../src/measure/sizes.ts";
import { openWorkload } from "../../src/measure/workload/workload.ts";
import { openRandomModels } from "../../src/engine/load/random_models.ts";
import { openPaper } from "../../src/engine/load/paper.ts";
import { allLayers, capacityOf } from "../../src/engine/load/sizes.ts";
import { PAPER_ADAPTER } from "../../src/gpu/paper.ts";
import { chains, type DraftShape } from "../../src/speculate/round_shape.ts";

const TIERS = chains([0, 1, 3, 7]);
const CASE = { workload: "random", batch: 64, outputTokens: 128, temperature: 0, depth: 0 };
const RANDOM = openWorkload("random", () => "");

/** Bytes of an 8B on a card that holds any buffer, 64 requests in flight. */
function need(maxKvTokens: number | undefined, tiers: readonly DraftShape[]) {
  const shape = (name: string) =>
    new URL(`../../lab/shapes/${name}.json`, import.meta.url).pathname;
  using models = openRandomModels({ target: shape("llama8b"), draft: shape("eagle8b") }, "EAGLE3");
  const most = { maxStorageBufferBindingSize: 2 ** 40, maxBufferSize: 2 ** 40 };
  const adapter = { ...PAPER_ADAPTER, limits: { ...PAPER_ADAPTER.limits, ...most } };
  const settings = { contextLength: 8192, tiers, maxBatch: 64, maxKvTokens };
  const capacity = capacityOf(settings, adapter, allLayers(models));
  return openPaper(models, {}, adapter).need(capacity);
}

Deno.test("64 requests of an 8B take what their prompts and answers need, not 8,192 tokens each", () => {
  const tokens = sweepTokens({ cases: [{ ...CASE, promptTokens: 128 }], workload: RANDOM }, TIERS);
  // 128 + 128 tokens, a last round of 8 and the rows of one more, in pages of 16.
  equal(tokens, 64 * 272);
  const [before, now] = [need(undefined, TIERS), need(tokens, TIERS)];
  equal(now.weights, before.weights);
  ok(now.kv < before.kv / 25, `${now.kv} of ${before.kv}`);
  ok(now.total < 40e9 && before.total > 140e9, `${now.total} of ${before.total}`);
});

Deno.test("the largest case decides; contexts before the prompts and trees are counted", () => {
  const of = (cases: readonly (typeof CASE & { promptTokens?: number })[], tiers = TIERS) =>
    sweepTokens({ cases, workload: RANDOM }, tiers);
  const one = { ...CASE, batch: 1, promptTokens: 16 };
  const deep = { ...one, depth: 4096 };
  equal(of([deep]) - of([one]), 4096 + 16);
  equal(of([one, deep, { ...one, batch: 2 }]), of([deep]));
  ok(of([one], [...TIERS, { depth: 8, width: 8, rows: 60 }]) >= of([one]) + 48);
  ok(of([deep]) < costsTokens(64));
});

Deno.test("texts are bounded by their bytes, and every turn of a chat has its answer", () => {
  const line = (turns: readonly string[]) => `${JSON.stringify({ turns })}\n`;
  const cases = [{ ...CASE, batch: 1, workload: "file:f" }];
  const tokens = (...lines: string[]) =>
    sweepTokens({ cases, workload: openWorkload("spec-bench:f", () => lines.join("")) }, TIERS);
  const short = tokens(line(["x".repeat(100)]));
  ok(short >= 4 * (100 + 128) && short < 4 * 600, String(short));
  const long = tokens(line(["x".repeat(100)]), line(["ä".repeat(500), "y".repeat(200)]));
  ok(long >= 4 * (1000 + 200 + 2 * 128), String(long));
});

import { deepEqual, equal, ok } from "node:assert/strict";
import { columnsFor } from "../../src/measure/columns.ts";
import { armsOf } from "../../src/measure/plan.ts";
import { prefillRate, prefillShare, prefillsOf } from "../../src/measure/prefills.ts";
import { rowOf } from "../../src/measure/row.ts";
import { csv } from "../../src/measure/row_file.ts";
import type { CellResult } from "../../src/measure/runner.ts";
import { summary } from "../../src/measure/summary.ts";
import { SUBJECT } from "./fake.ts";

const CASE = { workload: "random", batch: 32, outputTokens: 128, temperature: 0, depth: 0 };

/** 32 prompts of 128 tokens that take 30 ms each, one after the other. All requests wait from the start. */
const CHUNKS = Array.from(
  { length: 32 },
  () => ({ chunks: [{ from: 0, to: 128 }], rows: 128, ms: 30 }),
);

function cell(seconds: number): CellResult {
  const requests = CHUNKS.map((_, at) => ({
    ttftMs: 30 * (at + 1),
    tpotMs: 7,
    itlMs: [],
    prompt: { tokens: 128, ms: 30 * (at + 1) },
    answer: { tokens: 128, ms: 900 },
    outputHash: "",
  }));
  const prefills = prefillsOf(CHUNKS);
  return {
    tokens: 4096,
    seconds,
    rounds: [],
    prefills,
    requests,
    switches: [],
    switchCount: 0,
    tierShare: {},
  };
}

Deno.test("prompt throughput is tokens over the time of prefill, not over what each request waited", () => {
  const prefills = prefillsOf(CHUNKS);
  deepEqual(prefills, { tokens: 4096, ms: 960 });
  equal(prefillRate(prefills), 4096 / 0.96);
  equal(prefillShare(prefills, 1.92), 0.5);
  // A chunk after a cached prefix counts only the tokens that were computed.
  deepEqual(prefillsOf([{ chunks: [{ from: 100, to: 128 }], rows: 28, ms: 5 }]), {
    tokens: 28,
    ms: 5,
  });
});

Deno.test("where every prompt was cached there is no prefill", () => {
  const nothing = prefillsOf([]);
  deepEqual([prefillRate(nothing), prefillShare(nothing, 1), prefillShare(nothing, 0)], [0, 0, 0]);
});

Deno.test("a row has prompt throughput and the share of time, in JSON, CSV, Markdown and on 80 columns", () => {
  const [arm] = armsOf({ numSteps: [0] });
  ok(arm);
  const pairs = [1.92, 2.4].map((seconds) => ({ own: cell(seconds), plain: cell(seconds) }));
  const row = rowOf(arm, pairs, { subject: SUBJECT, one: CASE, seed: 1 });
  deepEqual(row.prefill_tokens_per_second?.samples, [4096 / 0.96, 4096 / 0.96]);
  deepEqual(row.prefill_time_share?.samples, [0.5, 0.4]);
  const [names = "", values = ""] = csv([row]).split("\n");
  const cells = values.replaceAll(/"[^"]*"/g, "").split(",");
  const at = (name: string) => cells[names.split(",").indexOf(name)];
  deepEqual([at("prefill_tokens_per_second_mean"), at("prefill_time_share_mean")], [
    String(4096 / 0.96),
    "0.45",
  ]);
  const shown = columnsFor([row]).columns.filter(({ title }) => title.startsWith("prefill"));
  deepEqual(shown.map(({ title, text }) => [title, text(row)]), [
    ["prefill tokens/s", "4267"],
    ["prefill time", "45.0%"],
  ]);
  const text = summary([row], { columns: 80 });
  ok(text.includes("\nprefill, plain decoding: batch 32 4267 tokens/s in 45.0% of the time\n"));
  ok(text.split("\n").every((line) => line.length <= 80));
});

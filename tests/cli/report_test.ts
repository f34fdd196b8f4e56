import { equal } from "node:assert/strict";
import { outputText, statsLine } from "../../src/cli/generate/report.ts";
import type { GenerateResult } from "../../src/engine/schedule/events.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { fakeEngine } from "./fake.ts";

Deno.test("the closing line tells noticeable times of compiling apart from the prompt's", async () => {
  const engine = fakeEngine();
  const request = { promptIds: [1], sampling: GREEDY, maxTokens: 2, stop: [], ignoreEos: false };
  let result: GenerateResult | undefined;
  for await (const event of engine.submit(request)) {
    if (event.kind === "finish") result = event.result;
  }
  if (result === undefined) throw new Error("the fake engine did not finish");
  const { timing } = result;
  const line = (times: { compileMs: number; queuedMs: number }, finished: GenerateResult) =>
    statsLine({
      engine,
      result: { ...finished, timing: { ...timing, ...times } },
      seed: undefined,
    }).split(", ").slice(3, 5).join(", ");
  equal(
    line({ compileMs: 21_770, queuedMs: 0 }, result),
    "prompt 1 token in 20 ms, 21.77 s before it to compile kernels",
  );
  equal(
    line({ compileMs: 300, queuedMs: 2240 }, result),
    "prompt 1 token in 20 ms, 2.24 s before it to compile the grammar",
  );
  equal(line({ compileMs: 300, queuedMs: 300 }, result), "prompt 1 token in 20 ms");
});

Deno.test("time and rate of an answer are those of the tokens after the first", () => {
  const timing = { decodeMs: 193, tokensPerSecond: 4 / 0.193 };
  equal(outputText(5, "token", timing), "5 tokens, 193 ms after the first, 20.7 tokens/s");
  equal(outputText(1, "token", { decodeMs: 0.4, tokensPerSecond: 0 }), "1 token");
  equal(outputText(0, "token", { decodeMs: 0, tokensPerSecond: 0 }), "0 tokens");
  equal(outputText(7, "piece", { decodeMs: 1500 }), "7 pieces, 1.50 s after the first");
});

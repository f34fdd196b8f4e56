import assert from "node:assert/strict";
import { engineInWorker } from "../../../src/engine/worker/client.ts";
import { resultOf } from "../../../src/engine/schedule/events.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";

const REQUEST = {
  promptIds: [1, 2],
  sampling: GREEDY,
  maxTokens: 9,
  stop: [],
  ignoreEos: false,
  numSteps: 0,
  logprobs: 0,
};

Deno.test("an abort that the engine's thread does not answer ends a request with what was received", async () => {
  const open = engineInWorker(new URL("fake_worker.ts", import.meta.url));
  await using engine = await open({});
  const abort = new AbortController();
  const texts: string[] = [];
  for await (const event of engine.submit({ ...REQUEST, signal: abort.signal })) {
    if (event.kind === "text") {
      texts.push(event.text);
      abort.abort();
    }
    if (event.kind !== "finish") continue;
    const { text, outputIds, finishReason, logprobs } = event.result;
    assert.deepEqual([text, outputIds, finishReason], ["so", [7], "interrupt"]);
    assert.deepEqual(logprobs, [{ id: 7, logprob: -0.5, text: "so", top: [] }]);
    texts.push("finish");
  }
  assert.deepEqual(texts, ["so", "finish"]);
  // An aborted one is not sent at all.
  const unsent = await resultOf(engine.submit({ ...REQUEST, signal: AbortSignal.abort() }));
  assert.deepEqual(unsent.logprobs, []);
  // Leaving does not wait for the thread longer than an abort does.
  for await (const { kind } of engine.submit(REQUEST)) if (kind === "text") break;
  await engine.terminate();
  await assert.rejects(engine.submit(REQUEST).next(), { message: "the engine is closed" });
});

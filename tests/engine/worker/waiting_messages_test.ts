import assert from "node:assert/strict";
import { mean } from "d3-array";
import type { Engine } from "../../../src/engine/engine.ts";
import type { GenerateRequest } from "../../../src/engine/schedule/events.ts";
import { GREEDY } from "../../../src/speculate/sampling.ts";
import { open } from "./open.ts";

const MESSAGES = { messages: [{ role: "user", content: "Count from 3 to 20." }] } as const;

function request(promptIds: readonly number[], of: Partial<GenerateRequest>): GenerateRequest {
  return { promptIds, sampling: GREEDY, maxTokens: 1000, stop: [], ignoreEos: true, ...of };
}

/** Counts the rounds of a request that goes on while `use` runs. */
async function whileBusy(
  engine: Engine,
  use: (rounds: () => number, promptIds: readonly number[]) => Promise<void>,
): Promise<void> {
  const promptIds = await engine.encodePrompt(MESSAGES);
  const leaving = new AbortController();
  let rounds = 0;
  const begun = Promise.withResolvers<void>();
  const run = (async () => {
    const events = engine.submit(request(promptIds, { signal: leaving.signal }));
    for await (const { kind } of events) {
      if (kind === "round") rounds++;
      if (rounds > 2) begun.resolve();
    }
  })();
  await begun.promise;
  await use(() => rounds, promptIds);
  leaving.abort();
  await run;
}

/** Of 100 the mean: the thread may be held up by others on the machine. */
Deno.test("a request whose prompt is encoded while another runs begins a round later", async () => {
  await using engine = await open({ limits: { maxBatch: 2, roundsPerSync: 1 } });
  await whileBusy(engine, async (rounds, promptIds) => {
    const waits: number[] = [];
    while (waits.length < 100) {
      const before = rounds();
      await engine.encodePrompt(MESSAGES);
      for await (const { kind } of engine.submit(request(promptIds, { maxTokens: 1 }))) {
        if (kind === "prefill") break;
      }
      waits.push(rounds() - before);
    }
    assert.ok((mean(waits) ?? NaN) <= 1.5, waits.join(" "));
  });
});

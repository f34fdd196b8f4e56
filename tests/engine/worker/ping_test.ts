import assert from "node:assert/strict";
import { GREEDY } from "../../../src/speculate/sampling.ts";
import { engineInWorker } from "../../../src/engine/worker/client.ts";

Deno.test("a ping measures how long the engine's thread takes to answer, up to a deadline", async () => {
  const open = engineInWorker(new URL("./fake_worker.ts", import.meta.url));
  const engine = await open({});
  const ms = await engine.ping();
  assert.ok(ms >= 0 && Number.isFinite(ms));
  await assert.rejects(engine.ping(AbortSignal.timeout(50)), { name: "TimeoutError" });
  // One that was not answered takes nothing from the next.
  assert.ok(await engine.ping() >= 0);
  await assert.rejects(engine.ping(AbortSignal.abort()), { name: "AbortError" });
  const silent = engine.ping();
  const end = assert.rejects(silent, /the engine is closed/);
  await Promise.all([end, engine.terminate()]);
});

Deno.test("a request that cannot be sent is not counted as a message that waits", async () => {
  const open = engineInWorker(new URL("./fake_worker.ts", import.meta.url));
  const engine = await open({});
  const request = { promptIds: [1], sampling: GREEDY, maxTokens: 1, ignoreEos: false };
  const uncopied = (() => {}) as unknown as string;
  assert.throws(() => engine.submit({ ...request, stop: [uncopied] }), { name: "DataCloneError" });
  assert.deepEqual(await engine.readStatus(), { oneWaits: false });
  await engine.terminate();
});

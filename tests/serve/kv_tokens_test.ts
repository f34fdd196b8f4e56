import assert from "node:assert/strict";
import { serve, user } from "./server.ts";

Deno.test("an engine with fewer keys and values than the context answers without max_tokens", async () => {
  await using server = await serve({}, { limits: { maxKvTokens: 128 } });
  const { data: [model] } = await server.json("/v1/models");
  assert.ok(model.max_model_len <= 128, `${model.max_model_len}`);
  const answer = await server.ask("/v1/chat/completions", { ...user("Hello!"), temperature: 0 });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { usage } = JSON.parse(text);
  assert.ok(usage.total_tokens <= 128, text);
});

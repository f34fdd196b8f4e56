import assert from "node:assert/strict";
import { fakeEngine } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { user } from "./server.ts";

const HELLO = user("Hello!");

Deno.test("a model of several names answers to each of them", async () => {
  await using server = await fakeServer({ modelName: "a", otherNames: ["org/b", "c"] });
  for (const model of ["a", "org/b", "c"]) {
    const chat = await server.json("/v1/chat/completions", { ...HELLO, model });
    assert.equal(chat.model, model);
    const message = await server.json("/v1/messages", { ...HELLO, model, max_tokens: 5 });
    assert.equal(message.model, model);
    const said = await server.json("/api/chat", {
      ...HELLO,
      model: `${model}:latest`,
      stream: false,
    });
    assert.equal(said.model, model);
    assert.equal((await server.json(`/v1/models/${model}`)).id, model);
  }
  assert.equal((await server.json("/v1/chat/completions", HELLO)).model, "a");
  const { data } = await server.json("/v1/models");
  assert.deepEqual(data.map(({ id }: { id: string }) => id), ["a", "org/b", "c"]);
  const { models } = await server.json("/api/tags");
  assert.deepEqual(models.map(({ name }: { name: string }) => name), ["a", "org/b", "c"]);
  const response = await server.ask("/v1/chat/completions", { ...HELLO, model: "d" });
  assert.equal(response.status, 404);
  await response.body?.cancel();
});

Deno.test("with the name * every name is the model's", async () => {
  await using server = await fakeServer({ anyModel: true });
  for (const model of ["gpt-5", "claude-opus-4-5-20251101"]) {
    assert.equal((await server.json("/v1/chat/completions", { ...HELLO, model })).model, model);
  }
  const { data } = await server.json("/v1/models");
  assert.deepEqual(data.map(({ id }: { id: string }) => id), ["fledgling"]);
});

Deno.test("fewer keys and values than the context: answers are cut where they end", async () => {
  const engine = fakeEngine({ contextLength: 1000 });
  Object.assign(engine.info, { requestTokens: 100 });
  await using server = await fakeServer({}, engine);
  const most = () => engine.requests.at(-1)?.maxTokens;
  for (const fields of [{}, { max_tokens: 500 }, { max_tokens: 99 }]) {
    assert.equal(
      (await server.ask("/v1/chat/completions", { ...HELLO, ...fields })).status,
      200,
    );
    assert.equal(most(), 99);
  }
  await server.json("/v1/chat/completions", { ...HELLO, max_tokens: 7 });
  assert.equal(most(), 7);
  const { data: [model] } = await server.json("/v1/models");
  assert.equal(model.max_model_len, 100);
  const long = await server.ask("/v1/chat/completions", user("x ".repeat(150)));
  const { error } = await long.json();
  assert.equal(long.status, 400);
  assert.deepEqual([error.n_prompt_tokens, error.n_ctx], [151, 100]);
  const { tokens } = await server.json("/tokenize", { content: "x ".repeat(1500) });
  assert.equal(tokens.length, 1501);
});

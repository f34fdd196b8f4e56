import assert from "node:assert/strict";
import { fakeServer } from "./fake_server.ts";
import { serve } from "./shared.ts";

Deno.test("what ollama's clients ask of the model", async (t) => {
  await using server = await serve();
  const post = (path: string, body: unknown) =>
    fetch(`${server.url}${path}`, { method: "POST", body: JSON.stringify(body) });

  await t.step(
    "/api/show describes it, and says in ollama's shape what it does not know",
    async () => {
      const shown = await post("/api/show", { model: "fledgling:latest" });
      assert.equal(shown.status, 200);
      const { capabilities, details, model_info } = await shown.json();
      assert.ok(capabilities.includes("completion"));
      assert.equal(typeof details.family, "string");
      assert.equal(typeof model_info, "object");
      const cases: [unknown, number, RegExp][] = [
        [{ model: "other" }, 404, /"other"/],
        [{}, 400, /"model"/],
      ];
      for (const [body, status, message] of cases) {
        const answer = await post("/api/show", body);
        assert.equal(answer.status, status);
        const error = await answer.json();
        assert.deepEqual(Object.keys(error), ["error"]);
        assert.match(error.error, message);
      }
    },
  );

  await t.step("/api/ps lists it as loaded", async () => {
    const { models } = await (await fetch(`${server.url}/api/ps`)).json();
    assert.deepEqual(models.map(({ name }: { name: string }) => name), ["fledgling"]);
    // ollama's own client shows the first twelve digits.
    assert.match(models[0].digest, /^[0-9a-f]{64}$/);
    const { version } = await (await fetch(`${server.url}/api/version`)).json();
    const [major, minor] = version.split(".").map(Number);
    assert.ok(major > 0 || minor >= 7, "clients refuse older ones");
  });

  await t.step("/api/embed is refused in ollama's shape", async () => {
    for (const path of ["/api/embed", "/api/embeddings"]) {
      const answer = await post(path, { model: "fledgling", input: "hi" });
      assert.equal(answer.status, 501);
      assert.deepEqual(await answer.json(), { error: "this server makes no embeddings" });
    }
  });
});

Deno.test("/api/generate of a model without a chat template takes the prompt as it is, as raw does", async () => {
  await using server = await serve();
  await using without = await serve({}, { hasChatTemplate: false });
  const generate = async (url: string, body: object) => {
    const asked = { model: "fledgling", prompt: "One morning", stream: false, ...body };
    const options = { num_predict: 12, temperature: 0 };
    const answer = await fetch(`${url}/api/generate`, {
      method: "POST",
      body: JSON.stringify({ ...asked, options }),
    });
    return { status: answer.status, ...await answer.json() };
  };
  const raw = await generate(server.url, { raw: true });
  assert.equal(raw.status, 200);
  assert.ok(raw.response.length > 0);
  assert.notEqual((await generate(server.url, {})).response, raw.response);
  for (const body of [{}, { raw: true }]) {
    const { status, response, error } = await generate(without.url, body);
    assert.equal(status, 200, error);
    assert.equal(response, raw.response);
  }
  const system = await generate(without.url, { system: "Be short." });
  assert.equal(system.status, 400);
  assert.match(system.error, /"system" with a raw prompt/);
});

Deno.test("a request without a prompt loads or unloads the model, without the engine", async () => {
  await using server = await fakeServer();
  const empty = { role: "assistant", content: "" };
  for (
    const [path, body, said] of [
      ["/api/generate", {}, { response: "", done_reason: "load" }],
      ["/api/generate", { prompt: "", stream: false }, { response: "", done_reason: "load" }],
      ["/api/generate", { keep_alive: "5m" }, { response: "", done_reason: "load" }],
      ["/api/generate", { keep_alive: 0 }, { response: "", done_reason: "unload" }],
      ["/api/generate", { keep_alive: "0s" }, { response: "", done_reason: "unload" }],
      ["/api/chat", { messages: [] }, { message: empty, done_reason: "load" }],
      ["/api/chat", { messages: [], keep_alive: 0 }, { message: empty, done_reason: "unload" }],
    ] as const
  ) {
    const response = await server.ask(path, { model: "fledgling", ...body });
    assert.equal(response.status, 200, JSON.stringify(body));
    const { created_at, ...rest } = await response.json();
    assert.ok(Date.parse(created_at) > 0);
    assert.deepEqual(rest, { model: "fledgling", done: true, ...said });
  }
  assert.equal((await server.ask("/api/generate", { model: "other" })).status, 404);
  assert.deepEqual([server.engine.prompts, server.engine.requests], [[], []]);
});

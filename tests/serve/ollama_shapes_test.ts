import assert from "node:assert/strict";
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

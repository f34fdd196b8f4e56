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

import assert from "node:assert/strict";
import { openLog } from "../../src/serve/service/log.ts";
import { fakeServer } from "./fake_server.ts";
import { user } from "./server.ts";

Deno.test("what is taken without effect is named in the answer and once in the log", async () => {
  const call = { id: "c", type: "function", function: { name: "f", arguments: '{"city": "Par' } };
  const messages = [
    ...user("Hello!").messages,
    { role: "assistant", content: "", tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "cut" },
  ];
  const cases: [path: string, body: unknown, name: string][] = [
    ["/v1/chat/completions", { messages, max_tokens: 4 }, "messages.tool_calls.function.arguments"],
    [
      "/api/chat",
      { model: "fledgling", ...user("Hello!"), stream: false, options: { num_ctx: 9999999 } },
      "options.num_ctx",
    ],
  ];
  const lines: string[] = [];
  const log = openLog({ format: "text", write: (line) => void lines.push(line) });
  await using server = await fakeServer({ log });
  for (const [path, body, name] of cases) {
    for (let i = 0; i < 2; i++) {
      const answer = await fetch(`${server.url}${path}`, {
        method: "POST",
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      assert.equal(answer.headers.get("eyrie-ignored"), name);
    }
    assert.equal(lines.filter((line) => line.includes(`"${name}"`)).length, 1);
  }
});

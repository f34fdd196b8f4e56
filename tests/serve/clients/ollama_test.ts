import assert from "node:assert/strict";
import { Ollama } from "npm:ollama@0.6.4";
import { generated } from "../cli_lines.ts";
import { serve } from "../shared.ts";

const PROMPT = "Count from 3 to 20.";
const MESSAGES = [{ role: "user", content: PROMPT }];
const GREEDY = { model: "fledgling", options: { temperature: 0, num_predict: 20 } };

Deno.test("the client of npm ollama", async (t) => {
  await using server = await serve();
  const client = new Ollama({ host: server.url });
  const [expected] = await generated([{ messages: MESSAGES, temperature: 0, max_tokens: 20 }]);

  await t.step("list and version", async () => {
    assert.deepEqual((await client.list()).models.map(({ name }) => name), ["fledgling"]);
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
  });

  await t.step("chat, whole and streamed", async () => {
    const { message, done_reason, eval_count } = await client.chat({
      ...GREEDY,
      messages: MESSAGES,
    });
    assert.equal(message.content, expected.text);
    assert.deepEqual([done_reason, eval_count], ["length", 20]);
    const parts = await Array.fromAsync(
      await client.chat({ ...GREEDY, model: "fledgling:latest", messages: MESSAGES, stream: true }),
    );
    assert.equal(parts.map((part) => part.message.content).join(""), expected.text);
    assert.deepEqual(parts.map(({ done }) => done), [...parts.slice(1).map(() => false), true]);
  });

  await t.step("generate, whole, streamed and raw", async () => {
    const { response } = await client.generate({ ...GREEDY, prompt: PROMPT });
    assert.equal(response, expected.text);
    const parts = await Array.fromAsync(
      await client.generate({ ...GREEDY, prompt: PROMPT, stream: true }),
    );
    assert.equal(parts.map((part) => part.response).join(""), expected.text);
    const prompt = `<|im_start|>user\n${PROMPT}<|im_end|>\n<|im_start|>assistant\n`;
    assert.equal((await client.generate({ ...GREEDY, prompt, raw: true })).response, expected.text);
  });

  await t.step("formats and tools", async () => {
    const format = {
      type: "object",
      properties: { n: { type: "integer", minimum: 1, maximum: 9 } },
      required: ["n"],
      additionalProperties: false,
    };
    const { message } = await client.chat({ ...GREEDY, messages: MESSAGES, format });
    assert.ok(JSON.parse(message.content).n >= 1);
    const tools = [{
      type: "function",
      function: { name: "f", description: "F", parameters: format },
    }];
    const calls = [{ function: { name: "f", arguments: { n: 1 } } }];
    const answer = await client.chat({
      ...GREEDY,
      options: { ...GREEDY.options, num_predict: 3 },
      tools,
      messages: [...MESSAGES, { role: "assistant", content: "", tool_calls: calls }, {
        role: "tool",
        content: "2",
        tool_name: "f",
      }],
    });
    assert.equal(answer.eval_count, 3);
  });

  await t.step("abort, and its errors", async () => {
    const stream = await client.generate({
      ...GREEDY,
      options: { temperature: 0, num_predict: -1 },
      prompt: PROMPT,
      stream: true,
    });
    for await (const _ of stream) break;
    stream.abort();
    while (server.server.service.table.live.size > 0) await new Promise((r) => setTimeout(r, 2));
    await assert.rejects(client.generate({ model: "x", prompt: "" }), /"x" does not exist/);
  });
});

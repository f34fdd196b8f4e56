import assert from "node:assert/strict";
import OpenAI from "npm:openai@7.57.0";
import { zodResponseFormat } from "npm:openai@7.57.0/helpers/zod";
import { z } from "zod";
import { generated } from "../cli_lines.ts";
import { serve } from "../shared.ts";

const MESSAGES = [{ role: "user" as const, content: "Count from 3 to 20." }];
const GREEDY = { model: "fledgling", messages: MESSAGES, temperature: 0, max_tokens: 20 };

Deno.test("the client of npm openai", async (t) => {
  await using server = await serve({ apiKey: "a-key" });
  const options = { baseURL: `${server.url}/v1`, maxRetries: 0 };
  const client = new OpenAI({ ...options, apiKey: "a-key" });
  const [expected] = await generated([{ messages: MESSAGES, temperature: 0, max_tokens: 20 }]);

  await t.step("models", async () => {
    const listed = await Array.fromAsync(client.models.list());
    assert.deepEqual(listed.map(({ id }) => id), ["fledgling"]);
    assert.equal((await client.models.retrieve("fledgling")).id, "fledgling");
    await assert.rejects(client.models.retrieve("gpt-5"), OpenAI.NotFoundError);
  });

  await t.step("chat", async () => {
    const { choices: [choice], usage } = await client.chat.completions.create(GREEDY);
    assert.equal(choice?.message.content, expected.text);
    assert.equal(choice?.finish_reason, "length");
    assert.ok((usage?.completion_tokens_details?.accepted_prediction_tokens ?? 0) > 0);
  });

  await t.step("stream, by hand and by its helper", async () => {
    const asked = { ...GREEDY, stream_options: { include_usage: true } };
    const stream = await client.chat.completions.create({ ...asked, stream: true });
    let text = "";
    let usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, expected.text);
    assert.equal(usage?.completion_tokens, 20);
    const final = await client.chat.completions.stream(asked).finalChatCompletion();
    assert.equal(final.choices[0]?.message.content, expected.text);
    assert.equal(final.usage?.total_tokens, usage?.total_tokens);
  });

  await t.step("a prediction", async () => {
    const prediction = { type: "content" as const, content: expected.text };
    const asked = { ...GREEDY, prediction };
    const { choices: [choice], usage } = await client.chat.completions.create(asked);
    assert.equal(choice?.message.content, expected.text);
    const details = usage?.completion_tokens_details ?? assert.fail();
    assert.ok((details.accepted_prediction_tokens ?? 0) >= 10, JSON.stringify(details));
    assert.ok((details.rejected_prediction_tokens ?? -1) >= 0);
    assert.equal(details.reasoning_tokens, 0);
    const final = await client.chat.completions.stream({
      ...asked,
      prediction: { type: "content", content: "Something else." },
      stream_options: { include_usage: true },
    }).finalChatCompletion();
    assert.equal(final.choices[0]?.message.content, expected.text);
    assert.equal(final.usage?.completion_tokens_details?.accepted_prediction_tokens, 0);
  });

  await t.step("a schema of zod, parsed", async () => {
    const Answer = z.object({ name: z.string().max(3), ok: z.boolean() });
    const { choices: [choice] } = await client.chat.completions.parse({
      ...GREEDY,
      max_tokens: 60,
      response_format: zodResponseFormat(Answer, "answer"),
    });
    const { name, ok } = choice?.message.parsed ?? assert.fail();
    assert.ok(name.length <= 3 && typeof ok === "boolean");
  });

  await t.step("tools: forced, streamed through its helper, and a loop with a result", async () => {
    const parameters = {
      type: "object",
      properties: { n: { type: "integer", minimum: 1, maximum: 9 } },
      required: ["n"],
      additionalProperties: false,
    };
    const tools = [{ type: "function" as const, function: { name: "double", parameters } }];
    const tool_choice = { type: "function" as const, function: { name: "double" } };
    const stream = client.chat.completions.stream({
      ...GREEDY,
      tools,
      tool_choice,
      max_tokens: 40,
    });
    const events: string[] = [];
    stream.on("tool_calls.function.arguments.done", ({ name }) => events.push(name));
    const { choices: [choice] } = await stream.finalChatCompletion();
    assert.deepEqual(events, ["double"]);
    const [call] = choice?.message.tool_calls ?? [];
    assert.ok(call?.type === "function");
    const { n } = JSON.parse(call.function.arguments);
    assert.ok(n >= 1 && n <= 9);
    const message = choice?.message ?? assert.fail();
    const result = { role: "tool" as const, tool_call_id: call.id, content: String(2 * n) };
    const next = await client.chat.completions.create({
      ...GREEDY,
      max_tokens: 3,
      tools,
      messages: [...MESSAGES, message, result],
    });
    assert.ok(next.choices[0]?.message);
  });

  await t.step("log-probabilities", async () => {
    const { choices: [choice] } = await client.chat.completions.create({
      ...GREEDY,
      max_tokens: 4,
      logprobs: true,
      top_logprobs: 3,
    });
    const content = choice?.logprobs?.content ?? [];
    assert.deepEqual(content.map(({ top_logprobs: top }) => top.length), [3, 3, 3, 3]);
  });

  await t.step("abort", async () => {
    const stream = await client.chat.completions.create({
      ...GREEDY,
      max_tokens: 900,
      stream: true,
    });
    for await (const _ of stream) break;
    stream.controller.abort();
    while (server.server.service.table.live.size > 0) await new Promise((r) => setTimeout(r, 2));
  });

  await t.step("completions", async () => {
    const { choices } = await client.completions.create({
      model: "fledgling",
      prompt: "Once",
      max_tokens: 4,
      temperature: 0,
    });
    assert.equal(choices[0]?.finish_reason, "length");
  });

  await t.step("its errors", async () => {
    const { chat } = new OpenAI({ ...options, apiKey: "wrong" });
    await assert.rejects(chat.completions.create(GREEDY), OpenAI.AuthenticationError);
    await assert.rejects(
      client.chat.completions.create({ ...GREEDY, temperature: -3 }),
      (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature",
    );
    const long = [{ role: "user" as const, content: "word ".repeat(2000) }];
    await assert.rejects(
      client.chat.completions.create({ ...GREEDY, messages: long }),
      (error) =>
        error instanceof OpenAI.BadRequestError && error.type === "exceed_context_size_error",
    );
  });
});

import assert from "node:assert/strict";
import Anthropic from "npm:@anthropic-ai/sdk@1.12.0";
import { generated } from "../cli_lines.ts";
import { serve } from "../shared.ts";

const PROMPT = "Count from 3 to 20.";
const MESSAGES = [{ role: "user" as const, content: PROMPT }];
const GREEDY = { model: "fledgling", messages: MESSAGES, temperature: 0, max_tokens: 20 };
const TOOL = {
  name: "double",
  description: "Twice a number",
  input_schema: {
    type: "object" as const,
    properties: { n: { type: "integer", minimum: 1, maximum: 9 } },
    required: ["n"],
    additionalProperties: false,
  },
};

Deno.test("messages, by the client of npm @anthropic-ai/sdk", async (t) => {
  await using server = await serve({ apiKey: "a-key" });
  const client = new Anthropic({ baseURL: server.url, apiKey: "a-key", maxRetries: 0 });
  const line = { messages: MESSAGES, temperature: 0, max_tokens: 20 };
  const system = { role: "system", content: "Be brief." };
  const [expected, briefly, stopped] = await generated([
    line,
    { ...line, messages: [system, ...MESSAGES] },
    { ...line, stop: ["7,", "6"] },
  ]);

  await t.step("a message", async () => {
    const { content: [block], usage, stop_reason } = await client.messages.create(GREEDY);
    assert.deepEqual(block, { type: "text", text: expected.text });
    assert.equal(stop_reason, "max_tokens");
    assert.equal(usage.output_tokens, 20);
    assert.equal(
      usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
      expected.usage.prompt_tokens,
    );
    const told = await client.messages.create({
      ...GREEDY,
      system: [{ type: "text", text: "Be brief." }],
    });
    assert.deepEqual(told.content[0], { type: "text", text: briefly.text });
  });

  await t.step("a stream and its helper", async () => {
    const stream = client.messages.stream(GREEDY);
    const types: string[] = [];
    stream.on("streamEvent", ({ type }) => types.push(type));
    assert.equal(await stream.finalText(), expected.text);
    assert.deepEqual([...new Set(types)], [
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    const { usage, stop_reason } = await stream.finalMessage();
    assert.deepEqual([usage.output_tokens, stop_reason], [20, "max_tokens"]);
  });

  await t.step("stop sequences, told which", async () => {
    const asked = { ...GREEDY, stop_sequences: ["7,", "6"] };
    const { content: [block], stop_reason, stop_sequence } = await client.messages.create(asked);
    assert.deepEqual(block, { type: "text", text: stopped.text });
    assert.deepEqual([stop_reason, stop_sequence], ["stop_sequence", "6"]);
    const whole = await client.messages.create({
      ...asked,
      stop_sequences: ["no"],
      max_tokens: 300,
    });
    assert.deepEqual([whole.stop_reason, whole.stop_sequence], ["end_turn", null]);
  });

  await t.step("the assistant's last word is gone on from", async () => {
    const begun = expected.text.slice(0, 9);
    const messages = [...MESSAGES, { role: "assistant" as const, content: begun }];
    const { content: [block] } = await client.messages.create({ ...GREEDY, messages });
    assert.ok(block?.type === "text");
    assert.ok(`${begun}${block.text}`.startsWith(expected.text));
  });

  await t.step("tools: forced, streamed, and the result", async () => {
    const asked = { ...GREEDY, max_tokens: 50, tools: [TOOL] };
    const tool_choice = { type: "tool" as const, name: "double" };
    const { content: [call], stop_reason } = await client.messages.create({
      ...asked,
      tool_choice,
    });
    assert.ok(call?.type === "tool_use" && stop_reason === "tool_use");
    const { n } = call.input as { n: number };
    assert.ok(n >= 1 && n <= 9);
    const stream = client.messages.stream({ ...asked, tool_choice: { type: "any" } });
    const [streamed] = (await stream.finalMessage()).content;
    assert.ok(streamed?.type === "tool_use");
    assert.deepEqual(streamed.input, call.input);
    const result = { type: "tool_result" as const, tool_use_id: call.id, content: String(2 * n) };
    const next = await client.messages.create({
      ...asked,
      max_tokens: 3,
      messages: [...MESSAGES, { role: "assistant", content: [call] }, {
        role: "user",
        content: [result],
      }],
    });
    assert.equal(next.content[0]?.type, "text");
  });

  await t.step("tokens are counted as they are used", async () => {
    const { input_tokens } = await client.messages.countTokens({
      model: "fledgling",
      messages: MESSAGES,
    });
    assert.equal(input_tokens, expected.usage.prompt_tokens);
    const long = [{ role: "user" as const, content: "word ".repeat(2000) }];
    const counted = await client.messages.countTokens({ model: "fledgling", messages: long });
    assert.ok(counted.input_tokens > 2000);
    await assert.rejects(
      client.messages.create({ ...GREEDY, messages: long }),
      (error) =>
        error instanceof Anthropic.BadRequestError &&
        /prompt is too long: \d+ tokens > 1024/.test(error.message),
    );
  });

  await t.step("its errors", async () => {
    const other = new Anthropic({ baseURL: server.url, apiKey: "wrong", maxRetries: 0 });
    await assert.rejects(other.messages.create(GREEDY), Anthropic.AuthenticationError);
    await assert.rejects(
      client.messages.create({ ...GREEDY, model: "x" }),
      Anthropic.NotFoundError,
    );
  });

  await t.step("a model without a switch for thinking answers all the same", async () => {
    const thinking = { type: "enabled" as const, budget_tokens: 1024 };
    const { content } = await client.messages.create({ ...GREEDY, thinking });
    assert.deepEqual(content, (await client.messages.create(GREEDY)).content);
  });
});

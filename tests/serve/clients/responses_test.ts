import assert from "node:assert/strict";
import OpenAI from "npm:openai@7.57.0";
import { generated } from "../cli_lines.ts";
import { type Json } from "../server.ts";
import { serve } from "../shared.ts";

const PROMPT = "Count from 3 to 20.";
const GREEDY = { model: "fledgling", input: PROMPT, temperature: 0, max_output_tokens: 20 };

Deno.test("Responses, by the client of npm openai", async (t) => {
  await using server = await serve();
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  const messages = [{ role: "user", content: PROMPT }];
  const line = { messages, temperature: 0, max_tokens: 20 };
  const system = { role: "system", content: "Be brief." };
  const [expected, briefly] = await generated([line, { ...line, messages: [system, ...messages] }]);

  await t.step("a text", async () => {
    const response = await client.responses.create(GREEDY);
    assert.equal(response.output_text, expected.text);
    assert.equal(response.status, "incomplete");
    assert.deepEqual(response.incomplete_details, { reason: "max_output_tokens" });
    assert.equal(response.usage?.output_tokens, 20);
    assert.equal(response.usage?.input_tokens, expected.usage.prompt_tokens);
    const told = await client.responses.create({ ...GREEDY, instructions: "Be brief." });
    assert.equal(told.output_text, briefly.text);
  });

  await t.step("a stream: its events in order and numbered, and the helper's result", async () => {
    const stream = await client.responses.create({ ...GREEDY, stream: true });
    const events = await Array.fromAsync(stream);
    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
    const types = events.map(({ type }) => type);
    assert.deepEqual([...new Set(types)], [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.incomplete",
    ]);
    const deltas = events.map((event) =>
      event.type === "response.output_text.delta" ? event.delta : ""
    );
    assert.equal(deltas.join(""), expected.text);
    const final = await client.responses.stream({ ...GREEDY, max_output_tokens: 300 })
      .finalResponse();
    assert.equal(final.status, "completed");
    assert.match(final.output_text, /, 20\b/);
  });

  await t.step("a function that is forced, its result, and a schema", async () => {
    const parameters = {
      type: "object",
      properties: { n: { type: "integer", minimum: 1, maximum: 9 } },
      required: ["n"],
      additionalProperties: false,
    };
    const tools = [{ type: "function" as const, name: "double", parameters, strict: true }];
    const asked = { ...GREEDY, max_output_tokens: 60, tools };
    const tool_choice = { type: "function" as const, name: "double" };
    const { output: [call] } = await client.responses.create({ ...asked, tool_choice });
    assert.ok(call?.type === "function_call" && call.name === "double");
    const { n } = JSON.parse(call.arguments);
    assert.ok(n >= 1 && n <= 9);
    const stream = await client.responses.create({
      ...asked,
      tool_choice: "required",
      stream: true,
    });
    let json = "";
    for await (const event of stream) {
      if (event.type === "response.function_call_arguments.delta") json += event.delta;
    }
    assert.equal(typeof JSON.parse(json).n, "number");
    const output = { type: "function_call_output" as const, call_id: call.call_id, output: "4" };
    const next = await client.responses.create({
      ...asked,
      max_output_tokens: 3,
      input: [{ role: "user", content: PROMPT }, call, output],
    });
    assert.equal(next.output[0]?.type, "message");
    const format = { type: "json_schema" as const, name: "n", schema: parameters, strict: true };
    const typed = await client.responses.create({
      ...GREEDY,
      max_output_tokens: 60,
      text: { format },
    });
    assert.ok(JSON.parse(typed.output_text).n >= 1);
  });

  await t.step("what needs a store is refused", async () => {
    for (
      const fields of [{ previous_response_id: "resp_1" }, { store: true }, { background: true }]
    ) {
      const { error }: Json = await server.json("/v1/responses", { ...GREEDY, ...fields });
      assert.equal(error.param, Object.keys(fields)[0]);
    }
  });
});

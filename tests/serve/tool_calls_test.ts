import assert from "node:assert/strict";
import { type Json, user } from "./server.ts";
import { serve } from "./shared.ts";

const CHAT = "/v1/chat/completions";

const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 6 }, unit: { enum: ["C", "F"] } },
      required: ["city", "unit"],
      additionalProperties: false,
    },
    strict: true,
  },
};
const TIME = {
  type: "function",
  function: { name: "time", parameters: { type: "object", properties: {} } },
};
const NAMED = { type: "function", function: { name: "get_weather" } };
const BODY = { ...user("Weather?"), temperature: 0, max_tokens: 60, tools: [WEATHER, TIME] };

Deno.test("calls of functions", async (t) => {
  await using server = await serve();

  await t.step("one that is named: valid arguments, whole and streamed alike", async () => {
    const body = { ...BODY, tool_choice: NAMED };
    const { choices: [choice] } = await server.json(CHAT, body);
    assert.equal(choice.finish_reason, "tool_calls");
    assert.equal(choice.message.content, null);
    const [call, ...more] = choice.message.tool_calls;
    assert.deepEqual(more, []);
    assert.match(call.id, /^call_\w{24}$/);
    assert.equal(call.type, "function");
    assert.equal(call.function.name, "get_weather");
    const given = JSON.parse(call.function.arguments);
    assert.deepEqual(Object.keys(given), ["city", "unit"]);
    assert.ok(["C", "F"].includes(given.unit) && given.city.length <= 6);

    const events = await server.stream(CHAT, { ...body, stream: true });
    const deltas = events.slice(0, -1).map(({ choices }) => choices[0]);
    const calls = deltas.flatMap(({ delta }) => delta.tool_calls ?? []);
    assert.deepEqual(
      [calls[0].index, calls[0].type, calls[0].function],
      [0, "function", { name: "get_weather", arguments: "" }],
    );
    assert.ok(calls.slice(1).every(({ id, function: { name } }: Json) => !id && !name));
    assert.ok(calls.length > 3, "the arguments come as they are written");
    const json = calls.map((each: Json) => each.function.arguments).join("");
    assert.equal(json, call.function.arguments);
    assert.ok(deltas.every(({ delta }) => !delta.content));
    assert.equal(deltas.at(-1).finish_reason, "tool_calls");
  });

  await t.step("any of them where one is required", async () => {
    const { choices: [{ message }] } = await server.json(CHAT, {
      ...BODY,
      tool_choice: "required",
    });
    const [{ function: called }] = message.tool_calls;
    assert.ok(["get_weather", "time"].includes(called.name));
    assert.equal(typeof JSON.parse(called.arguments), "object");
  });

  await t.step("none where none may be: the text of a request without tools", async () => {
    const without = { ...user("Count from 3 to 9."), temperature: 0, max_tokens: 10 };
    const { choices: [plain] } = await server.json(CHAT, without);
    const none = { ...without, tools: [TIME], tool_choice: "none" };
    assert.deepEqual((await server.json(CHAT, none)).choices[0], plain);
  });

  await t.step("the model's own choice: tools are in the prompt, text stays text", async () => {
    const { usage: { prompt_tokens } } = await server.json(CHAT, {
      ...BODY,
      tools: undefined,
      max_tokens: 1,
    });
    const { choices: [choice], usage } = await server.json(CHAT, { ...BODY, max_tokens: 12 });
    assert.ok(usage.prompt_tokens > prompt_tokens + 50);
    assert.equal(choice.message.tool_calls, undefined);
    assert.ok(choice.message.content.length > 0);
  });

  await t.step("a conversation with a call and its result goes on", async () => {
    const calls = [{ id: "call_1", type: "function", function: { name: "time", arguments: "{}" } }];
    const messages = [
      ...BODY.messages,
      { role: "assistant", content: null, tool_calls: calls },
      { role: "tool", tool_call_id: "call_1", content: "12:00" },
    ];
    const body = { ...BODY, messages, max_tokens: 3 };
    assert.equal((await server.ask(CHAT, body)).status, 200);
    const [call] = calls;
    const broken = { ...call, function: { name: "time", arguments: "{" } };
    const wrong = [
      messages[0],
      { role: "assistant", content: "", tool_calls: [broken] },
      messages[2],
    ];
    // A limit had cut them.
    const response = await server.ask(CHAT, { ...body, messages: wrong });
    await response.body?.cancel();
    const left = response.headers.get("eyrie-ignored");
    assert.deepEqual([response.status, left], [200, "messages.tool_calls.function.arguments"]);
  });

  await t.step("a schema that no grammar can be made of is refused", async () => {
    const parameters = { type: "object", patternProperties: { "^a": { type: "string" } } };
    const tools = [{ type: "function", function: { name: "f", parameters } }];
    const { error } = await server.json(CHAT, { ...BODY, tools, tool_choice: "required" });
    assert.match(error.message, /^Cannot constrain the output: .*patternProperties/);
  });
});

import assert from "node:assert/strict";
import { fakeEngine } from "../cli/fake.ts";
import { type ChatMessage, renderChat } from "../../src/text/chat_template.ts";
import { fakeServer } from "./fake_server.ts";
import { type Json, user } from "./server.ts";

const CHAT = "/v1/chat/completions";
const TOOLS = ["f", "g"].map((name) => ({ type: "function", function: { name } }));
const CALLS = '<tool_call> {"name": "f", "arguments": {"a": "b c"}} </tool_call> ' +
  '<tool_call> {"name": "g", "arguments": {}} </tool_call>';

/** A server of a model that gives this answer, with a template in Hermes's format. */
function saying(answer: string, chatTemplate = "{{ tools }}<tool_call>") {
  const engine = fakeEngine({ answer: () => answer });
  Object.assign(engine.info, { chatTemplate });
  return fakeServer({}, engine);
}

Deno.test("calls that the model chooses to make, after thoughts and text", async () => {
  await using server = await saying(`<think>which one? </think>I look. ${CALLS}`);
  const body = { ...user("hi"), tools: TOOLS };
  const { choices: [choice], usage } = await server.json(CHAT, body);
  assert.equal(choice.finish_reason, "tool_calls");
  // Tokens are words here; the last one begins with the closing mark.
  assert.equal(usage.completion_tokens_details.reasoning_tokens, 3);
  const response = await server.json("/v1/responses", { input: "hi" });
  assert.equal(response.usage.output_tokens_details.reasoning_tokens, 3);
  const { content, reasoning_content, tool_calls } = choice.message;
  assert.deepEqual([content, reasoning_content], ["I look.", "which one?"]);
  const called = tool_calls.map((
    call: Json,
  ) => [call.function.name, JSON.parse(call.function.arguments)]);
  assert.deepEqual(called, [["f", { a: "b c" }], ["g", {}]]);
  assert.equal(new Set(tool_calls.map(({ id }: Json) => id)).size, 2);

  const events = await server.stream(CHAT, { ...body, stream: true });
  const deltas = events.slice(0, -1).map(({ choices }) => choices[0]);
  const joined = (of: (delta: Json) => string | undefined) =>
    deltas.map(({ delta }) => of(delta) ?? "").join("");
  assert.equal(joined((delta) => delta.content), "I look.");
  assert.equal(joined((delta) => delta.reasoning_content), "which one?");
  const parts = deltas.flatMap(({ delta }) => delta.tool_calls ?? []);
  for (const [index, call] of tool_calls.entries()) {
    const own = parts.filter((part) => part.index === index);
    assert.equal(own[0].function.name, call.function.name);
    assert.equal(own.map((part) => part.function.arguments).join(""), call.function.arguments);
  }
  assert.equal(deltas.at(-1).finish_reason, "tool_calls");
});

Deno.test("parallel_tool_calls: false ends the answer after one", async () => {
  await using server = await saying(`${CALLS} and more`);
  const body = { ...user("hi"), tools: TOOLS, parallel_tool_calls: false };
  const { choices: [choice] } = await server.json(CHAT, body);
  assert.equal(choice.finish_reason, "tool_calls");
  assert.deepEqual(choice.message.tool_calls.map((call: Json) => call.function.name), ["f"]);
  assert.equal(choice.message.content, null);
});

Deno.test("parallel_tool_calls: false gives the same answer however its tokens are cut, and is no abort", async () => {
  const messages: Json[] = [];
  for (const pieces of [(answer: string) => [answer], (answer: string) => [...answer]]) {
    const engine = fakeEngine({ answer: () => `I look. ${CALLS} and more`, pieces });
    Object.assign(engine.info, { chatTemplate: "{{ tools }}<tool_call>" });
    await using server = await fakeServer({}, engine);
    const body = { ...user("hi"), tools: TOOLS, parallel_tool_calls: false };
    const { choices: [{ message, finish_reason }] } = await server.json(CHAT, body);
    const [call, ...others] = message.tool_calls;
    assert.deepEqual([others, finish_reason], [[], "tool_calls"]);
    messages.push([message.content, call.function]);
    const metrics = await (await server.ask("/metrics")).text();
    const reasons = [...metrics.matchAll(/finished_reason="(\w+)"[^}]*\} (\d+)/g)];
    const counted = reasons.filter(([, , count]) => count !== "0").map(([, reason]) => reason);
    assert.deepEqual(counted, ["stop"]);
  }
  const [whole, byLetter] = messages;
  assert.deepEqual(whole, ["I look.", { name: "f", arguments: '{"a": "b c"}' }]);
  assert.deepEqual(byLetter, whole);
});

Deno.test("tools that the grammar of the text leaves no room for are named in the header, by each API", async () => {
  await using server = await saying("{}");
  const schema = { type: "object" };
  const json = { type: "json_schema", json_schema: { schema } };
  const hello = { ...user("hi"), model: "fledgling" };
  const custom = { name: "f", input_schema: schema };
  const flat = { type: "function", name: "f" };
  const max_tokens = 9;
  for (
    const [path, body, named] of [
      [CHAT, { ...hello, tools: TOOLS, response_format: json }, "tools"],
      [CHAT, { ...hello, tools: TOOLS, regex: "a+" }, "tools"],
      [CHAT, { ...hello, tools: TOOLS, tool_choice: "none", regex: "a+" }, null],
      [CHAT, { ...hello, tools: TOOLS, tool_choice: "required" }, null],
      [CHAT, { ...hello, tools: TOOLS }, null],
      ["/v1/messages", {
        ...hello,
        max_tokens,
        tools: [custom],
        output_config: { format: { type: "json_schema", schema } },
      }, "tools"],
      ["/v1/responses", {
        input: "hi",
        tools: [flat],
        text: { format: { type: "json_object" } },
      }, "tools"],
      ["/api/chat", { ...hello, tools: TOOLS, format: "json" }, "tools"],
    ] as const
  ) {
    const response = await server.ask(path, body);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.equal(response.headers.get("eyrie-ignored"), named, JSON.stringify(body));
  }
});

Deno.test("without tools what looks like a call is text", async () => {
  await using server = await saying(CALLS);
  const { choices: [choice] } = await server.json(CHAT, user("hi"));
  assert.equal(choice.message.content, CALLS);
  assert.equal(choice.finish_reason, "stop");
});

Deno.test("a tool that returned nothing has an empty result", async () => {
  await using server = await saying("fine", "{{ tools }}{{ tool_calls }}<tool_call>");
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
  const messages = [
    { role: "user", content: "hi" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: null },
  ];
  await server.json(CHAT, { messages, tools: TOOLS });
  const prompt = server.engine.prompts.at(-1) as Json[];
  assert.deepEqual(prompt.at(-1), { role: "tool", content: "", tool_call_id: "call_1" });
});

Deno.test("templates get tools, calls and results as they want them", async () => {
  const messages = [
    { role: "user", content: "hi" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{
        id: "call12345",
        type: "function",
        function: { name: "f", arguments: '{"a":1}' },
      }],
      reasoning_content: "hm",
    },
    { role: "tool", tool_call_id: "call12345", content: [{ type: "text", text: "2" }] },
  ];
  const expected = {
    "{{ tools }}{{ tool_calls }}<tool_call>": { a: 1 },
    "{{ tools }}[TOOL_CALLS]": { a: 1 },
    "{{ tools }}<｜tool▁calls▁begin｜>": '{"a":1}',
  };
  for (const [template, sent] of Object.entries(expected)) {
    await using server = await saying("fine", template);
    await server.json(CHAT, { messages, tools: TOOLS });
    const [, call, result] = server.engine.prompts.at(-1) as Json[];
    assert.deepEqual(call.tool_calls[0].function, { name: "f", arguments: sent }, template);
    assert.equal(call.reasoning_content, "hm");
    assert.deepEqual(result, { role: "tool", content: "2", tool_call_id: "call12345" });
  }
  // If a template writes no calls, it gets them in the text.
  const written = {
    "{{ tools }}<tool_call>": '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call>',
    "List of tools: {{ tools }}": "<|tool_call_start|>[f(a=1)]<|tool_call_end|>",
    "{{ tools }}<|start_of_role|><|tool_call|>": '<|tool_call|>[{"name":"f","arguments":{"a":1}}]',
  };
  for (const [template, content] of Object.entries(written)) {
    await using server = await saying("fine", template);
    await server.json(CHAT, { messages, tools: TOOLS });
    const [, call] = server.engine.prompts.at(-1) as Json[];
    assert.deepEqual(call, { role: "assistant", content, reasoning_content: "hm" });
  }
  // If a template knows no tools, it gets them in words.
  await using server = await saying("fine", "");
  await server.json(CHAT, { messages, tools: TOOLS });
  const [system, , call, result] = server.engine.prompts.at(-1) as Json[];
  assert.equal(system.role, "system");
  assert.match(system.content, /"name":"f"[^]*"name":"g"[^]*<tool_call>/);
  assert.match(call.content, /^<tool_call>\n\{"name":"f","arguments":\{"a":1\}\}\n<\/tool_call>$/);
  assert.deepEqual(result, { role: "user", content: "<tool_response>\n2\n</tool_response>" });
});

Deno.test("results of tools alternate with answers for Gemma 3's template, which wants that", async () => {
  const template = await Deno.readTextFile(
    new URL("../golden/templates/gemma3.jinja", import.meta.url),
  );
  await using server = await saying("fine", template);
  const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
  const result = (id: string) => ({ role: "tool", tool_call_id: id, content: id });
  await server.json(CHAT, {
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: null, tool_calls: [call("one"), call("two")] },
      result("one"),
      result("two"),
      { role: "user", content: "And now?" },
    ],
    tools: TOOLS,
  });
  const prompt = server.engine.prompts.at(-1) as readonly ChatMessage[];
  const rendered = renderChat(template, prompt, {
    addGenerationPrompt: true,
    bosToken: "<bos>",
    eosToken: "<eos>",
    now: new Date(2026, 2, 5),
    templateArguments: {},
  });
  assert.deepEqual(rendered.match(/(?<=<start_of_turn>)\w+/g), ["user", "model", "user", "model"]);
  assert.match(rendered, /one\n<\/tool_response>\n\n<tool_response>\ntwo[^]*\n\nAnd now\?/);
});

Deno.test("reasoning_effort and chat_template_kwargs reach the template", async () => {
  await using server = await saying("fine");
  const sent = async (fields: Json) => {
    const response = await server.ask(CHAT, { ...user("hi"), ...fields });
    assert.equal(response.status, 200);
    await response.body?.cancel();
    return server.engine.templateArguments.at(-1);
  };
  assert.deepEqual(await sent({}), {});
  assert.deepEqual(await sent({ reasoning_effort: "none" }), {
    enable_thinking: false,
    thinking: false,
  });
  assert.deepEqual(await sent({ reasoning_effort: "high" }), {
    enable_thinking: true,
    thinking: true,
  });
  const kwargs = { enable_thinking: false, custom: [1] };
  assert.deepEqual(await sent({ reasoning_effort: "high", chat_template_kwargs: kwargs }), {
    enable_thinking: false,
    thinking: true,
    custom: [1],
  });
  await using spoken = await saying("fine", "{{ reasoning_effort }}");
  await spoken.json(CHAT, { ...user("hi"), reasoning_effort: "low" });
  assert.equal(spoken.engine.templateArguments.at(-1)?.["reasoning_effort"], "low");
});

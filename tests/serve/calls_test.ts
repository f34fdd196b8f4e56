import assert from "node:assert/strict";
import { fakeEngine, streamOf } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { LITERAL_JSON, parseToWrite } from "../../src/text/number_literals.ts";
import { type Json, user } from "./server.ts";

const HELLO = user("Hello!");
const CALL = '<tool_call> {"name": "f", "arguments": {"a": 1, "b": 2}} </tool_call>';

const TOOL = { name: "f", input_schema: { type: "object" } };

async function fakeAnswering(text: string) {
  return await fakeServer({}, fakeEngine({ answer: () => text }));
}

Deno.test("Anthropic: a block of a call is whole or not there, at every limit", async () => {
  await using server = await fakeAnswering(`Yes. ${CALL}`);
  const body = { ...HELLO, tools: [TOOL] };
  for (let most = 1; most <= 9; most++) {
    const { content, stop_reason: reason } = await server.json("/v1/messages", {
      ...body,
      max_tokens: most,
    });
    const events = await server.stream("/v1/messages", { ...body, max_tokens: most, stream: true });
    const calls = content.filter(({ type }: Json) => type === "tool_use");
    const opened = events.filter(({ content_block: block }) => block?.type === "tool_use");
    const whole = reason === "tool_use";
    // The limit may also cut the text after a call.
    if (whole || most < 8) assert.equal(calls.length, whole ? 1 : 0, `${most}: ${reason}`);
    assert.equal(opened.length, calls.length, String(most));
    const json = events.map(({ delta }) => delta?.partial_json ?? "").join("");
    assert.deepEqual(json === "" ? [] : [JSON.parse(json)], calls.map(({ input }: Json) => input));
    assert.equal(events.find(({ type }) => type === "message_delta").delta.stop_reason, reason);
    assert.match(content[0].text, /^Yes\. ?$/);
  }
});

Deno.test("Anthropic: what looks like a call and is no JSON is text, and no reason to stop", async () => {
  await using server = await fakeAnswering(
    `<tool_call> {"name": "f", "arguments": {'a': 1}} </tool_call>`,
  );
  const message = await server.json("/v1/messages", { ...HELLO, tools: [TOOL], max_tokens: 99 });
  assert.equal(message.stop_reason, "end_turn");
  assert.deepEqual(message.content, [{ type: "text", text: "f{'a': 1}" }]);
});

Deno.test("Anthropic, ollama: numbers of calls keep their literals, in answers and in earlier turns", async () => {
  const sent = '{"id":9007199254740993,"by":1.0,"deep":[2.50]}';
  await using server = await fakeAnswering(
    `<tool_call> {"name": "f", "arguments": ${sent}} </tool_call>`,
  );
  const text = async (path: string, body: Json) => await (await server.ask(path, body)).text();
  const input = parseToWrite(sent);
  const assertEarlier = () => {
    const messages = server.engine.prompts.at(-1) as Json;
    const { content } = messages.find(({ role }: Json) => role === "assistant");
    assert.ok(content.includes(`"arguments":${sent}`), content);
  };

  const block = { type: "tool_use", id: "1", name: "f", input };
  const turns = [
    { role: "user", content: "x" },
    { role: "assistant", content: [block] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "y" }] },
  ];
  const said = await text("/v1/messages", {
    messages: turns,
    tools: [{
      ...TOOL,
      input_schema: { properties: { input: { minimum: LITERAL_JSON.rawJSON("1.0") } } },
    }],
    max_tokens: 99,
  });
  assert.ok(said.includes(`"input":${sent}`), said);
  assertEarlier();

  const call = { function: { name: "f", arguments: input } };
  const chat = {
    model: "fledgling",
    stream: false,
    options: { temperature: LITERAL_JSON.rawJSON("1.0") },
    tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
    messages: [
      { role: "user", content: "x" },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", content: "y" },
    ],
  };
  for (const stream of [false, true]) {
    const said = await text("/api/chat", { ...chat, stream });
    assert.ok(said.includes(`"arguments":${sent}`), said);
    assertEarlier();
  }
});

Deno.test("parameters that exclude objects are refused, with the tool's name, by each API", async () => {
  await using server = await fakeServer();
  const parameters = { type: "string" };
  const chat = { type: "function", function: { name: "shout", parameters } };
  for (
    const [path, body] of [
      ["/v1/chat/completions", { ...HELLO, tools: [chat] }],
      ["/v1/messages", {
        ...HELLO,
        max_tokens: 5,
        tools: [{ name: "shout", input_schema: parameters }],
      }],
      ["/v1/responses", { input: "x", tools: [{ type: "function", name: "shout", parameters }] }],
      ["/api/chat", { model: "fledgling", ...HELLO, tools: [chat] }],
    ] as const
  ) {
    const response = await server.ask(path, body);
    assert.equal(response.status, 400, path);
    assert.match(await response.text(), /the tool \\"shout\\": its parameters exclude objects/);
  }
});

/** An engine whose answers a stop text ends. */
function stoppedEngine(text: string, stopOf: () => string | undefined) {
  const engine = fakeEngine({ answer: () => text });
  const { submit } = engine;
  engine.submit = (request) =>
    streamOf((async function* () {
      for await (const event of submit(request)) {
        const stop = stopOf();
        if (event.kind !== "finish" || stop === undefined) yield event;
        else yield { kind: "finish", result: { ...event.result, stop } };
      }
    })());
  return engine;
}

Deno.test("a call that a stop text has cut is no call to make", () => cutCall('"m"'));

Deno.test("a call in which the model ends its answer is no call to make", () => cutCall(undefined));

async function cutCall(stop: string | undefined): Promise<void> {
  const engine = stoppedEngine('<tool_call>{"name": "f", "arguments": {"n": 3, ', () => stop);
  await using server = await fakeServer({}, engine);
  const tools = [{ type: "function", function: { name: "f" } }];
  const chat = { ...HELLO, tools, stop: '"m"' };
  const whole = await server.json("/v1/chat/completions", chat);
  assert.equal(whole.choices[0].finish_reason, "stop");
  const events = await server.stream("/v1/chat/completions", { ...chat, stream: true });
  const reasons = events.flatMap(({ choices }) => choices?.[0]?.finish_reason ?? []);
  assert.deepEqual(reasons, ["stop"]);
  const response = { input: "x", tools: [{ type: "function", name: "f" }], stop: '"m"' };
  const { output } = await server.json("/v1/responses", response);
  assert.deepEqual(output.map(({ type, status }: Json) => [type, status]), [
    ["function_call", "incomplete"],
  ]);
}

Deno.test("a call whose arguments break off before its end is no call to make", async () => {
  const engine = fakeEngine({
    answer: () =>
      "<tool_call>\n<function=f>\n<parameter=a>\nb\n</parameter>\n</function>\n" +
      '</tool_call>\n<tool_call>{"name": "f", "arguments": {"a": 1}, "type" 2}</tool_call>',
  });
  const chatTemplate = "{{ tools }}<tool_call>\n<function=";
  Object.assign(engine.info, { chatTemplate });
  await using server = await fakeServer({}, engine);
  const tools = [{ type: "function", function: { name: "f" } }];
  const chat = await server.json("/v1/chat/completions", { ...HELLO, tools });
  assert.equal(chat.choices[0].finish_reason, "stop");
  const response = { input: "x", tools: [{ type: "function", name: "f" }] };
  const { output } = await server.json("/v1/responses", response);
  assert.deepEqual(output.slice(0, 2).map(({ type, status }: Json) => [type, status]), [
    ["function_call", "completed"],
    ["function_call", "incomplete"],
  ]);
});

Deno.test("Responses: a custom tool's text is there as far as a limit allows", async () => {
  await using server = await fakeAnswering(
    '<tool_call>{"name": "p", "arguments": {"input": "a\\nb c',
  );
  const tools = [{ type: "custom", name: "p" }];
  const { output } = await server.json("/v1/responses", { input: "x", tools });
  assert.deepEqual(output.map(({ type, input }: Json) => [type, input]), [
    ["custom_tool_call", "a\nb c"],
  ]);
});

Deno.test("what would lose a part of the conversation is refused", async () => {
  await using server = await fakeServer();
  const reference = { type: "item_reference", id: "msg_1" };
  const called = {
    role: "assistant",
    content: [{ type: "tool_use", id: "1", name: "f", input: {} }],
  };
  for (
    const [path, body, message] of [
      ["/v1/responses", { input: [{ role: "user", content: "x" }, reference] }, /are not stored/],
      ["/v1/chat/completions", {
        ...HELLO,
        tools: [{ type: "custom", custom: { name: "code" } }],
      }, /\/v1\/responses takes them/],
      ["/v1/messages", {
        messages: [...HELLO.messages, called],
        max_tokens: 5,
        tools: [TOOL],
      }, /the last one calls a tool/],
    ] as const
  ) {
    const response = await server.ask(path, body);
    assert.equal(response.status, 400, path);
    assert.match((await response.json()).error.message, message);
  }
});

Deno.test("Anthropic: consecutive messages of the assistant are one, and chats take its refusals", async () => {
  await using server = await fakeAnswering("c");
  const assistant = (content: unknown) => ({ role: "assistant", content });
  const [first] = HELLO.messages;
  const messages = [first, assistant("a"), assistant([{ type: "text", text: "b" }]), first];
  await server.json("/v1/messages", { messages, max_tokens: 5 });
  const refusal = assistant([{ type: "refusal", refusal: "ab" }]);
  await server.json("/v1/chat/completions", { messages: [first, refusal, first] });
  for (const prompt of server.engine.prompts as readonly (readonly Json[])[]) {
    const said = prompt.filter(({ role }) => role === "assistant");
    assert.deepEqual(said.map(({ content }) => content), ["ab"]);
  }
});

Deno.test("texts of tools and calls count as the prompt's: too many are refused before they are rendered", async () => {
  await using server = await fakeServer();
  const long = "ab".repeat(3_700_000);
  const tool = { type: "function", function: { name: "f", description: long } };
  const call = {
    id: "1",
    type: "function",
    function: { name: "f", arguments: JSON.stringify({ a: long }) },
  };
  for (
    const body of [
      { ...HELLO, tools: [tool] },
      {
        messages: [...HELLO.messages, { role: "assistant", tool_calls: [call] }, ...HELLO.messages],
      },
      { messages: Array.from({ length: 230_000 }, () => ({ role: "user", content: "" })) },
    ]
  ) {
    const response = await server.ask("/v1/chat/completions", body);
    assert.ok([400, 413].includes(response.status), `${response.status}`);
    await response.body?.cancel();
  }
  assert.deepEqual(server.engine.prompts, []);
});

Deno.test("Anthropic: a streamed block of thoughts ends with a signature, as the whole one has it", async () => {
  await using server = await fakeAnswering("<think>hm</think>Hi");
  const body = { ...HELLO, max_tokens: 9 };
  const { content: [thoughts] } = await server.json("/v1/messages", body);
  assert.deepEqual(thoughts, { type: "thinking", thinking: "hm", signature: "" });
  const events = await server.stream("/v1/messages", { ...body, stream: true });
  const told = events.filter(({ index }) => index === 0).map(({ type, delta }) => delta ?? type);
  assert.deepEqual(told, [
    "content_block_start",
    { type: "thinking_delta", thinking: "hm" },
    { type: "signature_delta", signature: "" },
    "content_block_stop",
  ]);
});

Deno.test("Anthropic: the stop sequence is the engine's, whatever its text has left out", async () => {
  let stop: string | undefined = "END";
  const engine = stoppedEngine("Yes ", () => stop);
  await using server = await fakeServer({}, engine);
  // The output's tokens have special ones inside, which its text has not.
  engine.decode = () => Promise.resolve("<|channel|>Yes <|end|>END");
  const body = { ...HELLO, max_tokens: 9, stop_sequences: ["END", "Yes"] };
  const ends = async () => {
    const { stop_reason, stop_sequence } = await server.json("/v1/messages", body);
    const events = await server.stream("/v1/messages", { ...body, stream: true });
    const { delta } = events.find(({ type }) => type === "message_delta");
    assert.deepEqual(delta, { stop_reason, stop_sequence });
    return [stop_reason, stop_sequence];
  };
  assert.deepEqual(await ends(), ["stop_sequence", "END"]);
  stop = undefined;
  assert.deepEqual(await ends(), ["end_turn", null]);
});

Deno.test("Responses: an answer that refused comes back as a text", async () => {
  await using server = await fakeServer();
  const refusal = { type: "refusal", refusal: "I will not." };
  const response = await server.ask("/v1/responses", {
    input: [
      { role: "user", content: "x" },
      { type: "message", role: "assistant", content: [refusal] },
      { role: "user", content: "y" },
    ],
  });
  assert.equal(response.status, 200, await response.text());
  const [, said] = server.engine.prompts.at(-1) as Json[];
  assert.deepEqual(said, { role: "assistant", content: "I will not." });
});

Deno.test("Responses: what the limit cuts is incomplete, what came before is not", async () => {
  await using server = await fakeAnswering(`Yes. ${CALL}`);
  const tools = [{ type: "function", name: "f", parameters: { type: "object" } }];
  const statuses = async (most: number) => {
    const body = { input: "x", tools, max_output_tokens: most };
    const response = await server.json("/v1/responses", body);
    const events = await server.stream("/v1/responses", { ...body, stream: true });
    const done = events.filter(({ type }) => type === "response.output_item.done");
    assert.deepEqual(
      done.map(({ item }) => item.status),
      response.output.map(({ status }: Json) => status),
    );
    assert.equal(events.at(-2).response.status, response.status);
    return [response.status, ...response.output.map(({ type, status }: Json) => [type, status])];
  };
  assert.deepEqual(await statuses(1), ["incomplete", ["message", "incomplete"]]);
  assert.deepEqual(await statuses(6), [
    "incomplete",
    ["message", "completed"],
    ["function_call", "incomplete"],
  ]);
  assert.deepEqual(await statuses(99), [
    "completed",
    ["message", "completed"],
    ["function_call", "completed"],
  ]);
});

Deno.test("Responses: calls have the names that the client gave: namespaces and custom tools", async () => {
  const call = (name: string, args: unknown) =>
    `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`;
  await using server = await fakeAnswering(
    `${call("agents__close", { target: "a" })} ${call("apply_patch", { input: "*** Begin" })}`,
  );
  const body = {
    input: [
      { type: "message", role: "user", content: "x" },
      { type: "function_call", namespace: "agents", name: "close", arguments: "{}", call_id: "1" },
      { type: "function_call_output", call_id: "1", output: "closed" },
      { type: "custom_tool_call", name: "apply_patch", input: "p", call_id: "2" },
      { type: "custom_tool_call_output", call_id: "2", output: "applied" },
      { type: "web_search_call", id: "ws_1", status: "completed" },
    ],
    tools: [
      {
        type: "namespace",
        name: "agents",
        tools: [{ type: "function", name: "close" }, { type: "mcp", name: "x" }],
      },
      { type: "custom", name: "apply_patch", format: { type: "grammar" } },
      { type: "web_search" },
    ],
  };
  const response = await server.ask("/v1/responses", body);
  assert.equal(
    response.headers.get("eyrie-ignored"),
    "tools.web_search, tools.mcp, input.web_search_call, tools.format",
  );
  const { output } = await response.json();
  const shown = output.map((
    { type, name, namespace, arguments: given, input }: Json,
  ) => [type, namespace, name, given ?? input]);
  assert.deepEqual(shown, [
    ["function_call", "agents", "close", '{"target":"a"}'],
    ["custom_tool_call", undefined, "apply_patch", "*** Begin"],
  ]);
  const events = await server.stream("/v1/responses", { ...body, stream: true });
  const custom = events.filter(({ type }) => type?.startsWith("response.custom_tool_call_input"));
  assert.deepEqual(custom.map(({ delta, input }) => delta ?? input), ["*** Begin", "*** Begin"]);
  const prompt = server.engine.prompts.at(-1) as readonly { content: string }[];
  const said = prompt.map(({ content }) => content).join("\n");
  for (const part of ["agents__close", "closed", '{\\"input\\":\\"p\\"}', "applied"]) {
    assert.ok(said.includes(part) || said.includes(part.replaceAll("\\", "")), part);
  }
});

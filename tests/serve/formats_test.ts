import assert from "node:assert/strict";
import { reasoningOf } from "../../src/text/reasoning.ts";
import { fakeEngine } from "../cli/fake.ts";
import { accepts } from "../grammar/accepts.ts";
import { fakeServer } from "./fake_server.ts";
import { type Json, user } from "./server.ts";

const CHAT = "/v1/chat/completions";
const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
};
const TOOL = { type: "function", function: { name: "weather", parameters: PARAMETERS } };

const text = (name: string) =>
  Deno.readTextFileSync(new URL(`../golden/templates/${name}.jinja`, import.meta.url));

/** The output of each template's model: it thinks, speaks and calls. Spaces separate the fake engine's tokens. */
const SAID: Readonly<Record<string, string>> = {
  gpt_oss:
    "<|channel|>analysis<|message|>I think so.<|start|>assistant<|channel|>commentary<|message|>" +
    "I look it up.<|start|>assistant<|channel|>commentary to=functions.weather json<|message|>" +
    '{"city": "Bad Ems", "days": 2}',
  glimmer: " to=self<|message|>I think so.<|start|>assistant to=user<|message|>I look it up." +
    '<|start|>assistant to=weather<|message|><atem:function_calls>\n<atem:invoke name="weather">\n' +
    '<atem:parameter name="city">Bad Ems</atem:parameter>\n' +
    '<atem:parameter name="days">2</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
  gemma4: "<|channel>thought\nI think so.\n<channel|>I look it up.<|tool_call>call:weather{city:" +
    '<|"|>Bad Ems<|"|>,days:2}<tool_call|>',
  qwen38: "<think>\nI think so.\n</think>\n\nI look it up.\n\n<tool_call>\n<function=weather>\n" +
    "<parameter=city>\nBad Ems\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
  glm47: "<think>I think so.</think>I look it up.<tool_call>weather<arg_key>city</arg_key>" +
    "<arg_value>Bad Ems</arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
  laguna: "<think>I think so.</think>I look it up.<tool_call>weather<arg_key>city</arg_key>" +
    "<arg_value>Bad Ems</arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
  laguna_xs2: "<think>\nI think so.\n</think>\nI look it up.\n<tool_call>weather\n" +
    "<arg_key>city</arg_key>\n<arg_value>Bad Ems</arg_value>\n<arg_key>days</arg_key>\n" +
    "<arg_value>2</arg_value>\n</tool_call>",
  ministral3: "[THINK]I think so.[/THINK]I look it up.[TOOL_CALLS]weather[ARGS]" +
    '{"city": "Bad Ems", "days": 2}',
  seed_oss:
    "<seed:think>I think so.</seed:think>\nI look it up.\n<seed:tool_call>\n<function=weather>\n" +
    "<parameter=city>Bad Ems</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
};

const MARKS: Readonly<Record<string, readonly [string, string]>> = {
  gemma4: ["<|channel>thought", "<channel|>"],
  ministral3: ["[THINK]", "[/THINK]"],
  seed_oss: ["<seed:think>", "</seed:think>"],
};

/** A server of a model that has this template and gives this output. */
function saying(
  name: string,
  answer: string = SAID[name] as string,
  pieces: ((answer: string) => readonly string[]) | undefined = undefined,
) {
  const engine = fakeEngine({ answer: () => answer, ...pieces && { pieces } });
  const [open, close] = MARKS[name] ?? ["<think>", "</think>"];
  const channels = name === "gpt_oss" ? "harmony" : name === "glimmer" ? "glimmer" : undefined;
  const reasoning = channels === undefined
    ? { marks: { open, close }, openings: [], switchable: true }
    : {
      marks: undefined,
      openings: [],
      switchable: false,
      channels: { name: channels, start: -1, message: -2 },
    };
  Object.assign(engine.info, { chatTemplate: text(name), reasoning });
  return fakeServer({}, engine);
}

const ARGUMENTS = { city: "Bad Ems", days: 2 };

for (const name of Object.keys(SAID)) {
  Deno.test(`what ${name} thinks, says and calls, in each API, whole and streamed`, async () => {
    await using server = await saying(name);
    const body = { ...user("hi"), tools: [TOOL] };
    const { choices: [{ message, finish_reason: reason }] } = await server.json(CHAT, body);
    const [{ function: called }] = message.tool_calls;
    assert.deepEqual(
      [
        message.reasoning_content,
        message.content,
        called.name,
        JSON.parse(called.arguments),
        reason,
      ],
      ["I think so.", "I look it up.", "weather", ARGUMENTS, "tool_calls"],
    );
    const events = await server.stream(CHAT, { ...body, stream: true });
    const deltas = events.slice(0, -1).map(({ choices }) => choices[0].delta);
    const joined = (of: (delta: Json) => string | undefined) =>
      deltas.map((d) => of(d) ?? "").join("");
    assert.equal(joined((delta) => delta.reasoning_content), "I think so.");
    assert.equal(joined((delta) => delta.content), "I look it up.");
    const streamed = joined((delta) => delta.tool_calls?.[0].function.arguments);
    assert.deepEqual(JSON.parse(streamed), ARGUMENTS);

    const { output } = await server.json("/v1/responses", {
      input: "hi",
      tools: [{ type: "function", name: "weather", parameters: PARAMETERS }],
    });
    assert.deepEqual(output.map(({ type }: Json) => type), [
      "reasoning",
      "message",
      "function_call",
    ]);
    assert.deepEqual(JSON.parse(output[2].arguments), ARGUMENTS);

    const { content } = await server.json("/v1/messages", {
      ...user("hi"),
      max_tokens: 99,
      thinking: { type: "adaptive" },
      tools: [{ name: "weather", input_schema: PARAMETERS }],
    });
    assert.deepEqual(content.map(({ type }: Json) => type), ["thinking", "text", "tool_use"]);
    assert.deepEqual(content[2].input, ARGUMENTS);

    const { message: told } = await server.json("/api/chat", {
      model: "fledgling",
      ...user("hi"),
      tools: [TOOL],
      think: true,
      stream: false,
    });
    assert.deepEqual(
      [told.thinking, told.content, told.tool_calls[0].function],
      ["I think so.", "I look it up.", { name: "weather", arguments: ARGUMENTS }],
    );
  });
}

for (const name of Object.keys(SAID)) {
  Deno.test(`what ${name} thinks, says and calls is the same wherever its tokens end`, async () => {
    const said = SAID[name] as string;
    let cut: (answer: string) => readonly string[] = (answer) => [...answer];
    await using server = await saying(name, said, (answer) => cut(answer));
    const streamed = async () => {
      const events = await server.stream(CHAT, { ...user("hi"), tools: [TOOL], stream: true });
      const deltas = events.slice(0, -1).map(({ choices }) => choices[0].delta);
      const joined = (of: (delta: Json) => string | undefined) =>
        deltas.map((delta) => of(delta) ?? "").join("");
      return [
        joined(({ reasoning_content }) => reasoning_content),
        joined(({ content }) => content),
        joined(({ tool_calls }) => tool_calls?.[0].function.name),
        JSON.parse(joined(({ tool_calls }) => tool_calls?.[0].function.arguments)),
      ];
    };
    const expected = ["I think so.", "I look it up.", "weather", ARGUMENTS];
    assert.deepEqual(await streamed(), expected, "character by character");
    for (let at = 1; at < said.length; at++) {
      cut = (answer) => [answer.slice(0, at), answer.slice(at)];
      assert.deepEqual(await streamed(), expected, `cut at ${JSON.stringify(said.slice(0, at))}`);
    }
  });
}

/** Two messages' ends in one piece: the rounds of a draft have several tokens. */
const ROUNDS: Readonly<Record<string, readonly string[]>> = {
  gpt_oss: [
    "<|channel|>commentary<|message|>I look",
    " it up.<|start|>assistant<|channel|>commentary to=functions.weather json<|message|>" +
    '{"city": "Bad',
    ' Ems", "days": 2}<|start|>assistant<|channel|>analysis<|message|>I wait.',
  ],
  glimmer: [
    " to=user<|message|>I look",
    " it up.<|start|>assistant to=weather<|message|><atem:function_calls>\n" +
    '<atem:invoke name="weather">\n<atem:parameter name="city">Bad',
    ' Ems</atem:parameter>\n<atem:parameter name="days">2</atem:parameter>\n</atem:invoke>\n' +
    "</atem:function_calls><|start|>assistant to=self<|message|>I wait.",
  ],
};

for (const [name, rounds] of Object.entries(ROUNDS)) {
  Deno.test(`Responses: the items of ${name} have the output's order where a round spans messages`, async () => {
    await using server = await saying(name, rounds.join(""), () => rounds);
    const { output } = await server.json("/v1/responses", {
      input: "hi",
      tools: [{ type: "function", name: "weather", parameters: PARAMETERS }],
    });
    const [message, call, reasoning, ...others] = output;
    assert.equal(message.content[0].text, "I look it up.");
    assert.deepEqual(JSON.parse(call.arguments), ARGUMENTS);
    assert.equal(reasoning.content[0].text, "I wait.");
    assert.deepEqual(others, []);
  });
}

Deno.test("harmony: the nearest effort, and a forced call in a message of its own", async () => {
  await using server = await saying("gpt_oss");
  await server.json(CHAT, { ...user("hi"), tools: [TOOL], reasoning_effort: "minimal" });
  assert.equal(server.engine.templateArguments.at(-1)?.["reasoning_effort"], "low");
  await using forced = await saying("gpt_oss", '{"city": "A"}');
  const { choices: [choice] } = await forced.json(CHAT, {
    ...user("hi"),
    tools: [TOOL],
    tool_choice: "required",
  });
  const [{ function: called }] = choice.message.tool_calls;
  assert.deepEqual(called, { name: "weather", arguments: '{"city": "A"}' });
  assert.equal(forced.engine.requests.at(-1)?.grammar?.kind, "forms");
});

/** The text before and after the constrained part of a forced call, in the model's free output. */
const FORCED: Readonly<Record<string, readonly [begin: string, end: string]>> = {
  gpt_oss: [" json<|message|>", ""],
  glimmer: ["<atem:function_calls>\n", ""],
  gemma4: ["<|tool_call>call:", "<tool_call|>"],
  qwen38: ["<tool_call>\n", ""],
  glm47: ["<tool_call>", ""],
  laguna: ["<tool_call>", ""],
  laguna_xs2: ["<tool_call>", ""],
  ministral3: ["[ARGS]", ""],
  seed_oss: ["<seed:tool_call>\n", ""],
};

for (const [name, [begin, end]] of Object.entries(FORCED)) {
  Deno.test(`a forced call of ${name} is what it says by itself, whole and streamed`, async () => {
    const said = SAID[name] as string;
    const from = said.lastIndexOf(begin) + begin.length;
    const answer = said.slice(from, said.length - end.length);
    await using server = await saying(name, answer);
    const body = { ...user("hi"), tools: [TOOL], tool_choice: "required" };
    const { choices: [{ message, finish_reason: reason }] } = await server.json(CHAT, body);
    const [{ function: called }] = message.tool_calls;
    assert.deepEqual([called.name, JSON.parse(called.arguments), reason], [
      "weather",
      ARGUMENTS,
      "tool_calls",
    ]);
    assert.equal(message.content, null);
    const { grammar } = server.engine.requests.at(-1) as Json;
    assert.ok(await accepts(grammar, answer), answer);
    const events = await server.stream(CHAT, { ...body, stream: true });
    const given = events.slice(0, -1)
      .map(({ choices }) => choices[0].delta.tool_calls?.[0].function.arguments ?? "").join("");
    assert.deepEqual(JSON.parse(given), ARGUMENTS);
  });
}

Deno.test("Qwen3.5: a call ends reasoning that was not closed", async () => {
  const call = (SAID["qwen38"] as string).slice((SAID["qwen38"] as string).indexOf("<tool_call>"));
  await using server = await saying("qwen38", `<think>\nI call <tool_call> now.\n${call}`);
  const ready = server.engine.info.reasoning as Json;
  Object.assign(ready, { break: { begin: "<tool_call>\n<function=" } });
  const { choices: [{ message }] } = await server.json(CHAT, { ...user("hi"), tools: [TOOL] });
  assert.equal(message.reasoning_content, "I call <tool_call> now.");
  assert.equal(message.tool_calls[0].function.name, "weather");
});

Deno.test("a switch for thinking is a variable of the template", () => {
  const tokenizer = { encode: () => [], idOf: () => undefined };
  const switchable = Object.keys(SAID).filter((name) =>
    reasoningOf(tokenizer, text(name)).switchable
  );
  assert.deepEqual(switchable, ["gemma4", "qwen38", "glm47", "laguna", "laguna_xs2", "seed_oss"]);
});

Deno.test("templates that need whole tools get them", async () => {
  for (const name of ["gpt_oss", "glimmer", "seed_oss"]) {
    await using server = await saying(name, "fine");
    const bare = { type: "function", function: { name: "now" } };
    await server.json(CHAT, { ...user("hi"), tools: [bare] });
    const [tool] = server.engine.tools.at(-1) as Json[];
    const parameters = { type: "object", properties: {} };
    assert.deepEqual(tool.function, { name: "now", description: "", parameters });
  }
});

Deno.test("Responses: all reasoning of a turn goes back to the template", async () => {
  await using server = await saying("qwen38", "fine");
  const thought = (text: string) => ({
    type: "reasoning",
    content: [{ type: "reasoning_text", text }],
  });
  await server.json("/v1/responses", {
    input: [
      { role: "user", content: "hi" },
      thought("One."),
      thought("Two."),
      { type: "function_call", call_id: "c", name: "weather", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "21" },
    ],
  });
  const [, call] = server.engine.prompts.at(-1) as Json[];
  assert.equal(call.reasoning_content, "One.\n\nTwo.");
});

Deno.test("ollama: a model with channels can think", async () => {
  await using server = await saying("gpt_oss", "fine");
  const { capabilities } = await server.json("/api/show", { model: "fledgling" });
  assert.deepEqual(capabilities, ["completion", "tools", "thinking"]);
});

Deno.test("Mistral gets ids of nine characters, whatever a client calls them", async () => {
  await using server = await saying("ministral3", "fine");
  const call = (id: string) => ({
    id,
    type: "function",
    function: { name: "weather", arguments: "{}" },
  });
  await server.json(CHAT, {
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: "", tool_calls: [call("toolu_01A"), call("call_2 and more")] },
      { role: "tool", tool_call_id: "call_2 and more", content: "21" },
    ],
    tools: [TOOL],
  });
  const [, calling, result] = server.engine.prompts.at(-1) as Json[];
  const [first, second] = calling.tool_calls.map(({ id }: Json) => id);
  assert.equal(first, "toolu_01A");
  assert.match(second, /^[0-9a-z]{9}$/);
  assert.equal(result.tool_call_id, second);
});

Deno.test("ollama: results belong to the calls of their functions", async () => {
  await using server = await saying("qwen38", "fine");
  const call = (name: string) => ({ function: { name, arguments: {} } });
  await server.json("/api/chat", {
    model: "fledgling",
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: "", tool_calls: [call("a"), call("b"), call("a")] },
      { role: "tool", tool_name: "b", content: "1" },
      { role: "tool", tool_name: "a", content: "2" },
      { role: "tool", content: "3" },
    ],
    stream: false,
  });
  const [, calling, ...results] = server.engine.prompts.at(-1) as Json[];
  assert.deepEqual(calling.tool_calls.map(({ id }: Json) => id), ["call_0", "call_1", "call_2"]);
  const ids = results.map(({ tool_call_id: id }: Json) => id);
  assert.deepEqual(ids, ["call_1", "call_0", "call_2"]);
});

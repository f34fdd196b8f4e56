import assert from "node:assert/strict";
import { type Json, user } from "./server.ts";
import { serve } from "./shared.ts";

const CHAT = "/v1/chat/completions";
const HELLO = user("Hello!");

/** Requests that are refused: the fields, the parameter that the error names, and the error's message. */
const REFUSED: readonly (readonly [fields: unknown, param: string | null, message: RegExp])[] = [
  [{}, "messages", /^Cannot do without "messages"/],
  [{ messages: [] }, "messages", /^Cannot use "messages"/],
  [{ messages: [{ role: "boss", content: "x" }] }, "messages[0].role", /"messages\[0\]\.role"/],
  [{ messages: [{ role: "user", content: 7 }] }, "messages[0].content", /content/],
  [
    { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
    "messages[0].content[0].type",
    /text alone/,
  ],
  [{ ...HELLO, temperature: -1 }, "temperature", /^Cannot use "temperature"/],
  [{ ...HELLO, temperature: "hot" }, "temperature", /^Cannot use "temperature"/],
  [{ ...HELLO, top_p: 0 }, "top_p", /top_p/],
  [{ ...HELLO, seed: 1.5 }, "seed", /seed/],
  [{ ...HELLO, n: 0 }, "n", /"n"/],
  [{ ...HELLO, n: 13 }, "n", /at most 12/],
  [{ ...HELLO, max_tokens: 0 }, "max_tokens", /max_tokens/],
  [{ ...HELLO, stop: "" }, "stop", /stop/],
  [{ ...HELLO, logit_bias: { "the": 1 } }, "logit_bias.the", /logit_bias/],
  [{ ...HELLO, logit_bias: { "9999": 1 } }, "logit_bias", /Cannot bias token id 9999/],
  [{ ...HELLO, logprobs: true, top_logprobs: 21 }, "top_logprobs", /top_logprobs/],
  [{ ...HELLO, top_logprobs: 2 }, "top_logprobs", /needs "logprobs"/],
  [{ ...HELLO, stream_options: { include_usage: true } }, "stream_options", /needs "stream"/],
  [{ ...HELLO, response_format: { type: "xml" } }, "response_format.type", /response_format/],
  [
    {
      ...HELLO,
      response_format: { type: "json_schema", json_schema: { schema: { type: "no" } } },
    },
    "response_format",
    /^Cannot constrain the output: JSON schema/,
  ],
  [{ ...HELLO, grammar: "root ::= nothing" }, "grammar", /^Cannot constrain the output/],
  [{ ...HELLO, regex: "(" }, "regex", /^Cannot constrain the output/],
  [{ ...HELLO, regex: "a", response_format: { type: "json_object" } }, "regex", /one grammar/],
  [{ ...HELLO, regex: "a", grammar: 'root ::= "a"' }, "regex", /one grammar/],
  [{ ...HELLO, reasoning_effort: "all" }, "reasoning_effort", /reasoning_effort/],
  [
    { ...HELLO, chat_template_kwargs: { messages: 1 } },
    "chat_template_kwargs.messages",
    /the request itself sets it/,
  ],
  [{ ...HELLO, tool_choice: "required" }, "tool_choice", /it needs tools/],
  [
    {
      ...HELLO,
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: { type: "function", function: { name: "g" } },
    },
    "tool_choice.function.name",
    /no tool "g"/,
  ],
  [
    {
      ...HELLO,
      tools: [{ type: "function", function: { name: "f", parameters: { not: {} } } }],
      tool_choice: "required",
    },
    "tools",
    /^Cannot constrain the output: JSON schema/,
  ],
  [{ ...HELLO, guided_regex: "(" }, "guided_regex", /^Cannot constrain the output/],
  [{ ...HELLO, tools: [{ type: "function" }] }, "tools[0].function", /tools/],
  [{ ...HELLO, tools: [7] }, "tools[0]", /tools/],
  [{ ...HELLO, functions: [{ name: "f" }] }, "functions", /replaced by "tools"/],
  [{ ...HELLO, store: true }, "store", /not stored/],
  [{ ...HELLO, prediction: { type: "text", content: "x" } }, "prediction.type", /prediction/],
  [{ ...HELLO, prediction: { type: "content" } }, "prediction.content", /prediction/],
  [
    { ...HELLO, prediction: { type: "content", content: "x".repeat(1_100_000) } },
    "prediction",
    /^Cannot use "prediction": it has 1100000 characters/,
  ],
  [{ ...HELLO, modalities: ["audio"] }, "modalities[0]", /text alone/],
  [{ ...HELLO, num_steps: 60 }, "num_steps", /draft steps/],
  [{ ...HELLO, model: "gpt-5" }, "model", /does not exist/],
  ["[1]", null, /the body/],
  ["{", null, /not JSON/],
  ["null", null, /the body/],
];

Deno.test("what is refused", async (t) => {
  await using server = await serve();

  await t.step("fields of a chat, each with its name and OpenAI's shape", async () => {
    for (const [fields, param, message] of REFUSED) {
      const response = await server.ask(CHAT, fields);
      const { error } = await response.json();
      const told = JSON.stringify(fields).slice(0, 200);
      assert.equal(response.status, param === "model" ? 404 : 400, `${told}: ${error?.message}`);
      assert.match(error.message, message, told);
      assert.equal(error.param, param, told);
      assert.ok(typeof error.type === "string" && "code" in error, told);
    }
  });

  await t.step("the same before a stream begins", async () => {
    for (const fields of [{ regex: "(" }, { logit_bias: { "9999": 1 } }, { num_steps: 60 }]) {
      const response = await server.ask(CHAT, { ...HELLO, ...fields, stream: true });
      assert.equal(response.status, 400);
      assert.match((await response.json()).error.message, /^Cannot/);
    }
  });

  await t.step("completions", async () => {
    const fields: readonly (readonly [Json, RegExp])[] = [
      [{}, /Cannot do without "prompt"/],
      [{ prompt: "a", echo: true }, /echo/],
      [{ prompt: "a", suffix: "b" }, /suffix/],
      [{ prompt: "a", best_of: 2 }, /best_of/],
      [{ prompt: [99999] }, /token id 99999/],
      [{ prompt: [] }, /prompt/],
      [{ prompt: "" }, /prompt is empty/],
      [{ prompt: "a", regex: "a", grammar: 'root ::= "a"' }, /one grammar/],
      [{ prompt: "a", regex: "a", json_schema: {} }, /one grammar/],
      [{ prompt: "a", logprobs: true }, /logprobs/],
    ];
    for (const [body, message] of fields) {
      const response = await server.ask("/v1/completions", body);
      assert.equal(response.status, 400, JSON.stringify(body));
      assert.match((await response.json()).error.message, message, JSON.stringify(body));
    }
  });

  await t.step("more answers than requests may wait: by n, or by the prompts", async () => {
    const prompts = Array.from({ length: 13 }, () => "a");
    const bodies = [[{ prompt: "a", n: 13 }, "n"], [{ prompt: prompts }, "prompt"]] as const;
    for (const [body, param] of bodies) {
      const { error } = await server.json("/v1/completions", body);
      assert.match(error.message, /^13 answers are asked for, and at most 12 /);
      assert.equal(error.param, param);
    }
  });

  await t.step("an answer of no token to Anthropic's clients", async () => {
    for (const max_tokens of [0, -1]) {
      const { error } = await server.json("/v1/messages", { ...HELLO, max_tokens });
      assert.deepEqual(error, {
        type: "invalid_request_error",
        message: 'Cannot use "max_tokens": an answer has a token at least: allowed is 1 to 1000000',
      });
    }
  });

  await t.step("a server that has refused all this answers on, and logged nothing", async () => {
    assert.equal((await server.ask("/health")).status, 200);
    const { choices } = await server.json(CHAT, { ...HELLO, max_tokens: 1 });
    assert.equal(choices.length, 1);
    assert.deepEqual(server.log, []);
    assert.equal(server.server.service.table.live.size, 0);
  });
});

import assert from "node:assert/strict";
import type { GenerateRequest } from "../../src/engine/schedule/events.ts";
import { unknownFields, withoutNulls } from "../../src/serve/fields/nulls.ts";
import { openLog } from "../../src/serve/service/log.ts";
import { fakeEngine } from "../cli/fake.ts";
import { fakeServer } from "./fake_server.ts";
import { type Json, user } from "./server.ts";

const CHAT = "/v1/chat/completions";
const COMPLETION = "/v1/completions";
const HELLO = user("Hello!");
const F = { type: "function", name: "f" };
const IMAGE = { type: "input_image", image_url: "data:" };
const SCHEMA = { type: "object", properties: { a: { type: "integer" } } };

/** Fields beyond OpenAI's that clients of each server send, with the values that they send. */
const TAKEN: Readonly<Record<string, Json>> = {
  OpenAI: {
    user: "u",
    metadata: { a: "b", n: 1 },
    store: false,
    service_tier: "flex",
    parallel_tool_calls: true,
    safety_identifier: "s",
    prompt_cache_key: "k",
    prompt_cache_retention: "24h",
    verbosity: "low",
    modalities: ["text"],
    reasoning_effort: "max",
    functions: [],
    function_call: "none",
    web_search_options: {},
  },
  vLLM: {
    best_of: 1,
    use_beam_search: false,
    top_k: -1,
    min_p: 0,
    repetition_penalty: 1,
    length_penalty: 1,
    stop_token_ids: [],
    include_stop_str_in_output: false,
    ignore_eos: false,
    min_tokens: 0,
    skip_special_tokens: true,
    spaces_between_special_tokens: true,
    truncate_prompt_tokens: null,
    prompt_logprobs: null,
    guided_decoding_backend: "xgrammar",
    guided_json: null,
    priority: 0,
    add_special_tokens: false,
    add_generation_prompt: true,
    continue_final_message: false,
    chat_template: null,
    documents: [],
    mm_processor_kwargs: {},
    request_id: "r",
    echo: false,
    return_token_ids: false,
    return_tokens_as_token_ids: false,
    cache_salt: "c",
    kv_transfer_params: {},
    vllm_xargs: {},
    bad_words: [],
    include_reasoning: true,
  },
  SGLang: {
    lora_path: null,
    session_params: {},
    separate_reasoning: true,
    stream_reasoning: true,
    return_hidden_states: false,
    rid: "r",
    bootstrap_host: "h",
    bootstrap_port: 1,
    bootstrap_room: 1,
    min_new_tokens: 0,
    no_stop_trim: false,
    custom_params: {},
  },
  "llama-server": {
    cache_prompt: true,
    id_slot: -1,
    slot_id: -1,
    t_max_predict_ms: 0,
    n_probs: 0,
    min_keep: 0,
    repeat_penalty: 1,
    repeat_last_n: 64,
    dry_multiplier: 0,
    dry_base: 1.75,
    dry_allowed_length: 2,
    dry_penalty_last_n: -1,
    dry_sequence_breakers: ["\n"],
    xtc_probability: 0,
    xtc_threshold: 0.1,
    typical_p: 1,
    mirostat: 0,
    mirostat_tau: 5,
    mirostat_eta: 0.1,
    samplers: [],
    timings_per_token: true,
    post_sampling_probs: false,
    return_tokens: false,
    return_progress: true,
    n_keep: 0,
    n_discard: 0,
    n_predict: -1,
    dynatemp_range: 0,
    dynatemp_exponent: 1,
    top_n_sigma: -1,
    reasoning_format: "auto",
    thinking_forced_open: false,
    parse_tool_calls: true,
    lora: [],
    "speculative.n_max": 16,
  },
  OpenRouter: {
    models: ["a/b"],
    route: "fallback",
    provider: { order: ["x"] },
    transforms: ["middle-out"],
    plugins: [{ id: "web" }],
    usage: { include: true },
    reasoning: { effort: "low", exclude: false },
    top_a: 0,
    structured_outputs: true,
    cache_control: { type: "ephemeral" },
  },
};

/** Fields that are honoured, and the fields of the engine's request that they set. */
const HONOURED:
  readonly (readonly [path: string, fields: Json, request: Partial<GenerateRequest>])[] = [
    [CHAT, { n_predict: 7 }, { maxTokens: 7 }],
    [CHAT, { max_tokens: 7, n_predict: 7 }, { maxTokens: 7 }],
    [COMPLETION, { n_predict: 7 }, { maxTokens: 7 }],
    [CHAT, { ignore_eos: true }, { ignoreEos: true }],
    [CHAT, { guided_json: SCHEMA }, { grammar: { kind: "json schema", schema: SCHEMA } }],
    [CHAT, { guided_json: JSON.stringify(SCHEMA) }, {
      grammar: { kind: "json schema", schema: SCHEMA },
    }],
    [CHAT, { json_schema: SCHEMA }, { grammar: { kind: "json schema", schema: SCHEMA } }],
    [COMPLETION, { json_schema: SCHEMA }, { grammar: { kind: "json schema", schema: SCHEMA } }],
    [COMPLETION, { guided_json: SCHEMA }, { grammar: { kind: "json schema", schema: SCHEMA } }],
    [CHAT, { response_format: { type: "json_object", schema: SCHEMA } }, {
      grammar: { kind: "json schema", schema: SCHEMA },
    }],
    [COMPLETION, { response_format: { type: "json_object" } }, {
      grammar: { kind: "json object" },
    }],
    [CHAT, { structured_outputs: { json: SCHEMA } }, {
      grammar: { kind: "json schema", schema: SCHEMA },
    }],
    [CHAT, { structured_outputs: { json_object: true } }, { grammar: { kind: "json object" } }],
    [CHAT, { structured_outputs: { regex: "a+" } }, { grammar: { kind: "regex", pattern: "a+" } }],
    [CHAT, { guided_regex: "a+" }, { grammar: { kind: "regex", pattern: "a+" } }],
    [CHAT, { guided_choice: ["a.b", "c"] }, { grammar: { kind: "regex", pattern: "a\\.b|c" } }],
    [CHAT, { guided_choice: ["non-fiction", "fiction"] }, {
      grammar: { kind: "regex", pattern: "non-fiction|fiction" },
    }],
    [CHAT, { guided_grammar: "root ::= x" }, { grammar: { kind: "ebnf", text: "root ::= x" } }],
    [CHAT, { ebnf: "root ::= x" }, { grammar: { kind: "ebnf", text: "root ::= x" } }],
    [CHAT, { n_probs: 3 }, { logprobs: 3 }],
    [COMPLETION, { n_probs: 3 }, { logprobs: 3 }],
  ];

/** Values that would change the answer but are not supported by the server. */
const REFUSED: Json = {
  use_beam_search: true,
  best_of: 3,
  stop_token_ids: [1],
  include_stop_str_in_output: true,
  min_tokens: 5,
  skip_special_tokens: false,
  truncate_prompt_tokens: 5,
  prompt_logprobs: 1,
  chat_template: "{{ messages }}",
  echo: true,
  add_special_tokens: true,
  add_generation_prompt: false,
  lora_path: "x",
  return_hidden_states: true,
  min_new_tokens: 2,
  no_stop_trim: true,
  t_max_predict_ms: 100,
  dry_multiplier: 0.8,
  xtc_probability: 0.5,
  typical_p: 0.5,
  mirostat: 2,
  samplers: ["top_k"],
  return_tokens: true,
  lora: [{ id: 0, scale: 1 }],
  top_a: 0.5,
  store: true,
  n_predict: "many",
  guided_json: "{",
  structured_outputs: { structural_tag: "x" },
  repetition_penalty: 1e-9,
  audio: {},
};

Deno.test("fields of other servers' clients", async (t) => {
  const lines: string[] = [];
  const log = openLog({ format: "text", write: (line) => void lines.push(line) });
  await using server = await fakeServer({ log });
  const { engine } = server;

  for (const [name, fields] of Object.entries(TAKEN)) {
    await t.step(`what clients of ${name} send without meaning much is taken`, async () => {
      for (const [field, value] of Object.entries(fields)) {
        const response = await server.ask(CHAT, { ...HELLO, [field]: value });
        const text = await response.text();
        assert.equal(response.status, 200, `${field}: ${text}`);
        const dropped = ["web_search_options", "plugins"].includes(field) ? field : null;
        assert.equal(response.headers.get("eyrie-ignored"), dropped, field);
      }
      assert.equal((await server.ask(CHAT, { ...HELLO, ...fields })).status, 200);
    });
  }

  await t.step("each is named in the log once", () => {
    const named = lines.flatMap((line) =>
      /^(?:the field|ignored) "(.*)" of a request/.exec(line)?.[1] ?? []
    );
    assert.equal(new Set(named).size, named.length);
    for (const name of ["user", "cache_prompt", "rid", "repeat_last_n", "plugins"]) {
      assert.ok(named.includes(name), name);
    }
    assert.ok(!named.includes("messages"));
  });

  await t.step("what Eyrie can do is done", async () => {
    for (const [path, fields, wanted] of HONOURED) {
      const body = path === CHAT ? { ...HELLO, ...fields } : { prompt: "a", ...fields };
      const response = await server.ask(path, body);
      assert.equal(response.status, 200, `${JSON.stringify(fields)}: ${await response.text()}`);
      const asked: Json = engine.requests.at(-1);
      for (const [key, value] of Object.entries(wanted)) assert.deepEqual(asked[key], value);
    }
    await server.json(CHAT, { ...HELLO, repeat_penalty: 1.25 });
    assert.equal(engine.requests.at(-1)?.sampling.repetitionPenalty, 1.25);
  });

  await t.step("seeds are folded into 32 bits", async () => {
    for (const [seed, folded] of [[-1, 2 ** 32 - 1], [2 ** 32 + 7, 7], [2 ** 40 + 5, 5], [9, 9]]) {
      for (const path of [CHAT, "/v1/messages", "/v1/responses"]) {
        const body = path === "/v1/responses" ? { input: "x" } : { ...HELLO, max_tokens: 5 };
        assert.equal((await server.ask(path, { ...body, seed })).status, 200, path);
        assert.equal(engine.requests.at(-1)?.sampling.seed, folded);
      }
    }
  });

  await t.step("what changes the answer and is not here is refused by its name", async () => {
    for (const [field, value] of Object.entries(REFUSED)) {
      const response = await server.ask(CHAT, { ...HELLO, [field]: value });
      const { error } = await response.json();
      assert.equal(response.status, 400, field);
      assert.match(error.message, new RegExp(`^Cannot use "${field}`), field);
      assert.match(error.param, new RegExp(`^${field}`), field);
    }
  });

  await t.step("structured_outputs: one grammar, and no field that would be ignored", async () => {
    const refused = [
      { json_object: true, regex: "a" },
      { json: SCHEMA, json_object: true },
      { regex: "a", choice: ["b"] },
      { choice: [""] },
      { json: SCHEMA, whitespace_pattern: "x" },
      { json: SCHEMA, disable_additional_properties: true },
      { jsno: SCHEMA },
    ];
    for (const structured_outputs of refused) {
      const response = await server.ask(CHAT, { ...HELLO, structured_outputs });
      const { error } = await response.json();
      assert.equal(response.status, 400, JSON.stringify(structured_outputs));
      assert.match(error.param, /^structured_outputs/);
    }
    const defaults = { disable_any_whitespace: true, json: null, regex: null, grammar: null };
    await server.json(CHAT, { ...HELLO, structured_outputs: { ...defaults, choice: ["a", "b"] } });
    assert.deepEqual(engine.requests.at(-1)?.grammar, { kind: "regex", pattern: "a|b" });
  });

  await t.step("two names of the same with different values are refused", async () => {
    const body = { ...HELLO, max_tokens: 5, n_predict: 6 };
    const { error } = await server.json(CHAT, body);
    assert.equal(
      error.message,
      'Cannot use "n_predict" with "max_tokens": they say the same thing',
    );
  });

  await t.step("an error names the field that the client sent", async () => {
    for (
      const [path, body, param] of [
        [CHAT, { ...HELLO, max_new_tokens: 0 }, "max_new_tokens"],
        [CHAT, { ...HELLO, repeat_penalty: 0 }, "repeat_penalty"],
        ["/v1/responses", {
          input: "x",
          tools: [F, { ...F, name: "g", parameters: { type: "string" } }],
        }, "tools[1].parameters"],
        [
          "/v1/responses",
          { input: "x", tools: [F], tool_choice: { type: "function", name: "g" } },
          "tool_choice.name",
        ],
        [
          "/v1/responses",
          { input: [{ role: "user", content: [IMAGE] }] },
          "input[0].content[0].type",
        ],
        ["/v1/responses", {
          input: [{ type: "function_call_output", call_id: "1", output: [IMAGE] }],
        }, "input[0].output[0].type"],
        [CHAT, { ...HELLO, guided_regex: "a", grammar: "root ::= x" }, "guided_regex"],
        [COMPLETION, { prompt: "x ".repeat(1001) }, "prompt"],
        ["/v1/responses", { input: "x ".repeat(1001) }, "input"],
      ] as const
    ) {
      const response = await server.ask(path, body);
      const { error } = await response.json();
      assert.equal(response.status, 400, param);
      assert.equal(error.param, param);
    }
  });

  await t.step("an error does not rename a tool that is called like a field", async () => {
    const tool = (name: string, type = "object") => (
      { name, input_schema: { type }, description: "x" }
    );
    const ask = async (fields: Record<string, unknown>) => {
      const { error } = await server.json("/v1/messages", { ...HELLO, max_tokens: 9, ...fields });
      return error.message;
    };
    assert.equal(
      await ask({ tools: [tool("f")], tool_choice: { type: "tool", name: "stop" } }),
      'there is no tool "stop"',
    );
    assert.match(
      await ask({ tools: [tool("response_format", "string")] }),
      /^Cannot use the tool "response_format": its parameters exclude objects/,
    );
    assert.equal(
      await ask({ tools: [tool("stop"), tool("stop")] }),
      'two tools have the name "stop"',
    );
    const json = { type: "json_schema", schema: { type: "object" } };
    assert.equal(
      await ask({
        tools: [tool("f")],
        tool_choice: { type: "any" },
        output_config: { format: json },
      }),
      'Cannot use "tool_choice" with "output_config.format": the output has one grammar',
    );
  });

  await t.step("unknown fields, at any depth, are named in a header", async () => {
    const response = await server.ask(CHAT, {
      messages: [{ role: "user", content: "x", colour: "red" }, {
        role: "user",
        content: "y",
        colour: "blue",
      }],
      'fréd\r\nx: "y"': 1,
      stream_options: { include_usage: true, include_colour: true },
      stream: true,
    });
    assert.equal(response.status, 200);
    await response.body?.cancel();
    assert.equal(
      response.headers.get("eyrie-ignored"),
      "messages[].colour, fr?d??x???y?, stream_options.include_colour",
    );
  });

  await t.step("many unknown fields make neither a long header nor a long log", async () => {
    const before = lines.length;
    for (let i = 0; i < 5; i++) {
      const many = Object.fromEntries(
        Array.from({ length: 500 }, (_, j) => [`field_${i}_${j}`, 1]),
      );
      const response = await server.ask(CHAT, { ...HELLO, ...many });
      await response.body?.cancel();
      const header = response.headers.get("eyrie-ignored") ?? "";
      assert.ok(header.length < 1000 && header.endsWith("470 more"), header);
    }
    assert.ok(lines.length - before <= 1010, String(lines.length - before));
  });

  await t.step("null is as left out, everywhere", async () => {
    const response = await server.ask(CHAT, {
      messages: [
        { role: "user", content: "x", name: null, tool_calls: null },
        { role: "assistant", content: null, tool_calls: null, colour: null },
        { role: "user", content: [{ type: "text", text: "y", cache_control: null }] },
      ],
      tools: [{ type: "function", function: { name: "f", description: null, parameters: null } }],
      stream_options: { include_usage: null },
      stream: true,
      response_format: null,
      chat_template: null,
      stop_token_ids: null,
      colour: null,
      lora_path: null,
    });
    assert.equal(response.status, 200, await response.clone().text());
    assert.equal(response.headers.get("eyrie-ignored"), null);
  });
});

Deno.test("with --strict unknown fields are refused, hints are not", async () => {
  await using server = await fakeServer({ strict: true });
  for (
    const [path, body, name] of [
      [CHAT, { ...HELLO, colour: "red" }, "colour"],
      [CHAT, { messages: [{ role: "user", content: "x", colour: 1 }] }, "messages[].colour"],
      [CHAT, { ...HELLO, plugins: [] }, "plugins"],
      ["/v1/messages", { ...HELLO, max_tokens: 5, colour: 1 }, "colour"],
      // Fields of a chat that this API calls otherwise.
      ["/v1/messages", { ...HELLO, max_tokens: 5, stop: "x" }, "stop"],
      ["/v1/responses", { input: "x", colour: 1 }, "colour"],
      ["/api/chat", { model: "fledgling", ...HELLO, colour: 1 }, "colour"],
    ] as const
  ) {
    const response = await server.ask(path, body);
    assert.equal(response.status, 400, path);
    assert.match(
      await response.text(),
      new RegExp(`"${name.replaceAll(/[[\]]/g, ".")}.*is unknown`),
    );
  }
  const fields = { cache_prompt: true, user: "u", repeat_penalty: 1 };
  assert.equal((await server.ask(CHAT, { ...HELLO, ...fields })).status, 200);
});

Deno.test("a model without a switch for thinking answers all the same, and says so", async () => {
  await using server = await fakeServer({}, fakeEngine({ unswitchable: true }));
  for (
    const [path, body] of [
      [CHAT, { ...HELLO, reasoning_effort: "high" }],
      [CHAT, { ...HELLO, reasoning: { effort: "high" } }],
      ["/v1/messages", { ...HELLO, max_tokens: 9, thinking: { type: "adaptive" } }],
      ["/v1/messages", { ...HELLO, max_tokens: 9, output_config: { effort: "max" } }],
      ["/v1/responses", { input: "x", reasoning: { effort: "high", summary: "detailed" } }],
    ] as const
  ) {
    const response = await server.ask(path, body);
    assert.equal(response.status, 200, await response.clone().text());
    await response.body?.cancel();
    const ignored = response.headers.get("eyrie-ignored");
    const adaptive = JSON.stringify(body).includes("adaptive");
    assert.equal(ignored, adaptive ? null : "reasoning_effort", JSON.stringify(body));
  }
});

Deno.test("thoughts are left out, or left in the text, where a request says so", async () => {
  const answer = () => "<think> hm </think> yes";
  await using server = await fakeServer({}, fakeEngine({ answer }));
  const ask = async (fields: Json) =>
    (await server.json(CHAT, { ...user("a <think>"), ...fields })).choices[0].message;
  assert.ok((await ask({})).reasoning_content);
  assert.equal((await ask({ include_reasoning: false })).reasoning_content, undefined);
  assert.equal((await ask({ reasoning: { exclude: true } })).reasoning_content, undefined);
  for (const fields of [{ reasoning_format: "none" }, { separate_reasoning: false }]) {
    const message = await ask(fields);
    assert.equal(message.reasoning_content, undefined);
    assert.match(message.content, /hm/);
  }
});

Deno.test("nulls stay where they are values", () => {
  const schema = { enum: [null, 1], default: null };
  for (
    const kept of [
      { tools: [{ function: { parameters: schema } }] },
      { response_format: { json_schema: { schema } } },
      { text: { format: { schema } } },
      { guided_json: schema },
      { messages: [{ content: [{ type: "tool_use", input: { a: null } }] }] },
      { chat_template_kwargs: { a: null } },
      { a: [null] },
    ]
  ) {
    assert.deepEqual(withoutNulls(kept), kept);
  }
  assert.deepEqual(
    withoutNulls({ a: null, input: [{ b: null }], response_format: { json_schema: { c: null } } }),
    { input: [{}], response_format: { json_schema: {} } },
  );
});

Deno.test("unknown fields are what the kept value does not have", () => {
  const sent = { a: 1, b: { c: 1, d: [{ e: 1, f: 2 }, { f: 3 }] }, __proto__: 1 };
  const kept = { a: 1, b: { d: [{ e: 1 }, {}] } };
  assert.deepEqual(unknownFields(sent, kept), ["b.c", "b.d[].f"]);
});

import assert from "node:assert/strict";
import { generated, generatedAlone } from "./cli_lines.ts";
import { type Json, user } from "./server.ts";
import { serve } from "./shared.ts";

const CHAT = "/v1/chat/completions";

/** Requests with fields that `eyrie generate` also has, under the names that a batch's lines use. */
const LINES: readonly Record<string, unknown>[] = [
  { ...user("Count from 3 to 20."), temperature: 0, max_tokens: 24 },
  { ...user("Tell me a story about a fox."), temperature: 0.9, seed: 7, max_tokens: 20 },
  {
    ...user("Spell the word amber."),
    temperature: 0.7,
    top_k: 20,
    top_p: 0.9,
    seed: 1,
    max_tokens: 12,
  },
  { ...user("Count from 3 to 20."), temperature: 1.2, min_p: 0.1, seed: 5, max_tokens: 16 },
  { ...user("Count from 3 to 20."), temperature: 0, max_tokens: 24, stop: ["7,"] },
  {
    ...user("Tell me a story about a fox."),
    temperature: 0.8,
    seed: 3,
    max_tokens: 16,
    repetition_penalty: 1.3,
    frequency_penalty: 0.5,
    presence_penalty: -0.5,
    logit_bias: { "10": 5 },
  },
  {
    messages: [{ role: "system", content: "Be brief." }, ...user("Hello!").messages],
    temperature: 0,
    max_tokens: 9,
  },
];

Deno.test("chat completions", async (t) => {
  await using server = await serve();
  const expected = await generated(LINES);

  await t.step("each answer is that of eyrie generate, alone, together and streamed", async () => {
    const whole = await Promise.all(LINES.map((line) => server.json(CHAT, line)));
    for (const [i, answer] of whole.entries()) {
      const { text, usage, finish_reason } = expected[i];
      const [choice] = answer.choices;
      assert.equal(choice.message.content, text, JSON.stringify(LINES[i]));
      assert.equal(choice.finish_reason, finish_reason);
      assert.equal(answer.usage.prompt_tokens, usage.prompt_tokens);
      assert.equal(answer.usage.completion_tokens, usage.completion_tokens);
    }
    for (const [i, line] of LINES.entries()) {
      const events = await server.stream(CHAT, { ...line, stream: true });
      assert.equal(textOf(events), expected[i].text);
    }
  });

  await t.step("usage and acceptance of each request are those of eyrie generate", async () => {
    const asked = LINES.map((line) => ({ ...line, return_rounds: true }));
    const answers = await Promise.all(asked.map((line) => server.json(CHAT, line)));
    for (const [i, { choices: [{ rounds }], usage, timings }] of answers.entries()) {
      const told = expected[i];
      const { prompt_tokens, completion_tokens } = told.usage;
      assert.equal(usage.prompt_tokens, prompt_tokens);
      assert.equal(usage.completion_tokens, completion_tokens);
      assert.equal(usage.total_tokens, prompt_tokens + completion_tokens);
      const sum = (of: (round: Json) => number) =>
        rounds.reduce((all: number, round: Json) => all + of(round), 0);
      const details = usage.completion_tokens_details;
      assert.equal(details.accepted_prediction_tokens, sum((round) => round.accepted));
      assert.equal(timings.draft_n_accepted, details.accepted_prediction_tokens);
      assert.equal(timings.draft_n, sum((round) => round.drafted));
      assert.equal(timings.draft_n - timings.draft_n_accepted, details.rejected_prediction_tokens);
      // The first token comes from the prompt.
      assert.equal(sum((round) => round.tokens), completion_tokens);
      const drafted = rounds.length - 1;
      assert.equal((completion_tokens - 1) / drafted, told.mean_accept_length, `${LINES[i]}`);
      assert.equal(timings.cache_n, usage.prompt_tokens_details.cached_tokens);
      assert.equal(timings.cache_n + timings.prompt_n, prompt_tokens);
    }
    assert.ok(answers[0].timings.cache_n >= 16, "the prompt was asked before");
  });

  await t.step("drafts of one request, alone and without", async () => {
    const [, line] = LINES as [Json, Json];
    const flags = ["-n", "20", "--seed", "7", "--temperature", "0.9"];
    const alone = await generatedAlone(line.messages[0].content, ...flags);
    const { timings } = await server.json(CHAT, line);
    assert.equal(timings.draft_n, alone.speculative.draft_tokens);
    assert.equal(timings.draft_n_accepted, alone.speculative.accepted_tokens);
    assert.ok(timings.draft_n > 0);
    const plain = await server.json(CHAT, { ...LINES[0], num_steps: 0 });
    assert.equal(plain.choices[0].message.content, expected[0].text);
    assert.equal(plain.timings.draft_n, 0);
  });

  await t.step(
    "a prediction: the same answer in fewer rounds, and its own tokens are counted",
    async () => {
      for (const [i, line] of LINES.entries()) {
        const { text } = expected[i];
        const half = Math.floor(text.length / 2);
        const parts = [{ type: "text", text: text.slice(0, half) }, {
          type: "text",
          text: text.slice(half),
        }];
        // Predictions that are refused or unused are treated alike for every line, so the first line is enough.
        const others = i === 0 ? [parts, "", []] : [];
        for (const content of [text, "No, nothing of the kind.", ...others]) {
          const body = { ...line, prediction: { type: "content", content }, return_rounds: true };
          const { choices, usage, timings } = await server.json(CHAT, body);
          assert.equal(choices[0].message.content, text, JSON.stringify(body));
          const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } =
            usage.completion_tokens_details;
          assert.ok(accepted + rejected <= timings.draft_n && accepted <= timings.draft_n_accepted);
          if (content === text || content === parts) assert.ok(accepted > 0, `${accepted}`);
          if (content.length === 0) assert.deepEqual([accepted, rejected], [0, 0]);
        }
      }
      const [line] = LINES;
      const prediction = { type: "content", content: expected[0].text };
      const [plain, predicted] = await Promise.all(
        [{}, { prediction }].map((more) =>
          server.json(CHAT, { ...line, ...more, return_rounds: true })
        ),
      );
      const roundsOf = ({ choices: [{ rounds }] }: Json) => rounds.length;
      assert.ok(roundsOf(predicted) < roundsOf(plain), `${roundsOf(predicted)}`);
      const events = await server.stream(CHAT, { ...line, prediction, stream: true });
      assert.equal(textOf(events), expected[0].text);
      const [last] = events.slice(-2);
      assert.deepEqual(last.usage, {
        ...predicted.usage,
        prompt_tokens_details: last.usage.prompt_tokens_details,
      });
      const none = await server.json(CHAT, { ...line, prediction, num_steps: 0 });
      assert.equal(none.timings.draft_n, 0);
    },
  );

  await t.step("a stream: role, deltas, finish_reason, usage, [DONE]", async () => {
    const body = { ...LINES[0], stream: true };
    const asked = { ...body, stream_options: { include_usage: true } };
    const events = await server.stream(CHAT, asked);
    assert.equal(events.at(-1), "[DONE]");
    const chunks = events.slice(0, -1);
    assert.deepEqual(chunks[0].choices[0].delta, { role: "assistant", content: "" });
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
    assert.ok(chunks.every(({ object }) => object === "chat.completion.chunk"));
    const [finish, usage] = chunks.slice(-2);
    assert.deepEqual(finish.choices[0].delta, {});
    assert.equal(finish.choices[0].finish_reason, "length");
    assert.equal(finish.usage, null);
    assert.deepEqual(usage.choices, []);
    assert.equal(usage.usage.completion_tokens, 24);
    assert.equal(usage.timings.predicted_n, 24);
    const [last] = (await server.stream(CHAT, body)).slice(-2);
    assert.equal(last.usage.completion_tokens, 24, "on the chunk with finish_reason");
  });

  await t.step("log-probabilities, whole and streamed alike", async () => {
    const body = { ...LINES[0], max_tokens: 6, logprobs: true, top_logprobs: 2 };
    const { choices: [{ message, logprobs }] } = await server.json(CHAT, body);
    const { content } = logprobs;
    assert.equal(content.length, 6);
    assert.equal(content.map(({ token }: Json) => token).join(""), message.content);
    for (const { token, logprob, bytes, top_logprobs: top } of content) {
      assert.ok(logprob <= 0 && Number.isFinite(logprob));
      assert.deepEqual(bytes, [...new TextEncoder().encode(token)]);
      assert.deepEqual([top.length, top[0].token, top[0].logprob], [2, token, logprob], "greedy");
    }
    const events = await server.stream(CHAT, { ...body, stream: true });
    const streamed = events.slice(0, -1).flatMap(({ choices }) =>
      choices[0]?.logprobs?.content ?? []
    );
    assert.deepEqual(streamed, content);
  });

  await t.step("n answers: the first is that of one, seeds count up", async () => {
    const body = { ...LINES[1], n: 3 };
    const { choices, usage } = await server.json(CHAT, body);
    assert.deepEqual(choices.map(({ index }: Json) => index), [0, 1, 2]);
    assert.equal(choices[0].message.content, expected[1].text);
    const alone = await Promise.all(
      [7, 8, 9].map((seed) => server.json(CHAT, { ...LINES[1], seed })),
    );
    const texts = alone.map((answer) => answer.choices[0].message.content);
    assert.deepEqual(choices.map(({ message }: Json) => message.content), texts);
    assert.equal(new Set(texts).size, 3);
    const tokens = alone.reduce((sum, answer) => sum + answer.usage.completion_tokens, 0);
    assert.equal(usage.completion_tokens, tokens);
    const events = await server.stream(CHAT, { ...body, stream: true });
    for (const { index, message } of choices) {
      assert.equal(textOf(events, index), message.content);
    }
  });

  await t.step("response_format: what a grammar allows, and eyrie generate's", async () => {
    const schema = {
      type: "object",
      properties: { name: { type: "string", maxLength: 4 }, age: { type: "integer", maximum: 99 } },
      required: ["name", "age"],
      additionalProperties: false,
    };
    const line = { ...user("Who?"), temperature: 0, max_tokens: 40 };
    const [bySchema, byObject] = await generated([
      { ...line, json_schema: schema },
      { ...line, json_object: true, max_tokens: 12 },
    ]);
    const response_format = {
      type: "json_schema",
      json_schema: { name: "who", schema, strict: true },
    };
    const { choices: [choice] } = await server.json(CHAT, { ...line, response_format });
    assert.equal(choice.message.content, bySchema.text);
    assert.deepEqual(Object.keys(JSON.parse(choice.message.content)), ["name", "age"]);
    assert.equal(choice.finish_reason, "stop");
    const object = { ...line, max_tokens: 12, response_format: { type: "json_object" } };
    const answer = await server.json(CHAT, object);
    assert.equal(answer.choices[0].message.content, byObject.text);
    const text = { ...LINES[0], response_format: { type: "text" } };
    assert.equal((await server.json(CHAT, text)).choices[0].message.content, expected[0].text);
  });

  await t.step("the prompt is told where it does not fit", async () => {
    const response = await server.ask(CHAT, user("word ".repeat(2000)));
    assert.equal(response.status, 400);
    const { error } = await response.json();
    assert.equal(error.type, "exceed_context_size_error");
    assert.equal(error.code, 400);
    assert.equal(error.n_ctx, 1024);
    assert.ok(error.n_prompt_tokens > 1024);
    const huge = await server.json(CHAT, user("x".repeat(1_000_000)));
    assert.equal(huge.error.type, "exceed_context_size_error");
  });

  await t.step("max_completion_tokens, developer messages, parts of text", async () => {
    const { temperature } = { temperature: 0 };
    const parts = [{ type: "text", text: "Count from " }, { type: "text", text: "3 to 20." }];
    const answer = await server.json(CHAT, {
      messages: [{ role: "user", content: parts }],
      temperature,
      max_completion_tokens: 24,
      max_tokens: 500,
      user: "me",
      metadata: { a: "b" },
      stop: null,
      seed: null,
    });
    assert.equal(answer.choices[0].message.content, expected[0].text);
    const [system] = [LINES.at(-1) as { messages: Json[] }];
    const developer = {
      ...system,
      messages: [{ ...system.messages[0], role: "developer" }, system.messages[1]],
    };
    assert.equal(
      (await server.json(CHAT, developer)).choices[0].message.content,
      expected.at(-1).text,
    );
  });
});

/** The text of one answer of a stream. */
function textOf(events: readonly Json[], index = 0): string {
  return events.filter((event) => event !== "[DONE]")
    .flatMap(({ choices }) => choices.filter((choice: Json) => choice.index === index))
    .map(({ delta }: Json) => delta.content ?? "").join("");
}

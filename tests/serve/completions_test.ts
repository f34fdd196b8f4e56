import assert from "node:assert/strict";
import { generated } from "./cli_lines.ts";
import { type Json } from "./server.ts";
import { serve } from "./shared.ts";

const COMPLETE = "/v1/completions";

Deno.test("completions", async (t) => {
  await using server = await serve();
  const body = {
    prompt: "<|im_start|>user\nCount from 3 to 9.<|im_end|>\n<|im_start|>assistant\n",
  };
  const fields = { ...body, temperature: 0, max_tokens: 12 };
  const messages = [{ role: "user", content: "Count from 3 to 9." }];
  const [line] = await generated([{ messages, temperature: 0, max_tokens: 12 }]);

  await t.step("a prompt as it is: what eyrie generate makes of the same tokens", async () => {
    const answer = await server.json(COMPLETE, fields);
    assert.equal(answer.object, "text_completion");
    assert.equal(answer.choices[0].text, line.text);
    assert.equal(answer.usage.prompt_tokens, line.usage.prompt_tokens);
    const { tokens } = await server.json("/tokenize", { content: body.prompt });
    const ofIds = await server.json(COMPLETE, { ...fields, prompt: tokens });
    assert.equal(ofIds.choices[0].text, line.text);
  });

  await t.step("sixteen tokens where none are asked for, as OpenAI has it", async () => {
    const answer = await server.json(COMPLETE, { ...body, temperature: 0, ignore_eos: true });
    assert.equal(answer.usage.completion_tokens, 16);
  });

  await t.step("several prompts, several answers each, in their order", async () => {
    const prompts = [body.prompt, "Once upon a time"];
    const answer = await server.json(COMPLETE, { ...fields, prompt: prompts, n: 2, max_tokens: 5 });
    assert.deepEqual(answer.choices.map(({ index }: Json) => index), [0, 1, 2, 3]);
    const texts = answer.choices.map(({ text }: Json) => text);
    assert.equal(texts[0], texts[1]);
    assert.equal(texts[2], texts[3]);
    assert.ok(line.text.startsWith(texts[0]));
    const alone = await server.json(COMPLETE, { ...fields, prompt: prompts[1], max_tokens: 5 });
    assert.equal(alone.choices[0].text, texts[2]);
    const promptTokens = line.usage.prompt_tokens + alone.usage.prompt_tokens;
    assert.equal(answer.usage.prompt_tokens, promptTokens, "each prompt once");
  });

  await t.step("streamed with log-probabilities", async () => {
    const asked = { ...fields, logprobs: 1, max_tokens: 6 };
    const { choices: [whole] } = await server.json(COMPLETE, asked);
    assert.equal(whole.logprobs.tokens.join(""), whole.text);
    assert.deepEqual(whole.logprobs.text_offset[1], whole.logprobs.tokens[0].length);
    for (const [i, token] of whole.logprobs.tokens.entries()) {
      const top = whole.logprobs.top_logprobs[i];
      assert.equal(top[token], whole.logprobs.token_logprobs[i], "the chosen token is there");
    }
    const events = await server.stream(COMPLETE, {
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = events.slice(0, -2);
    assert.equal(chunks.map(({ choices }) => choices[0].text).join(""), whole.text);
    const told = (key: string) => chunks.flatMap(({ choices }) => choices[0].logprobs?.[key] ?? []);
    for (const key of ["tokens", "token_logprobs", "top_logprobs", "text_offset"]) {
      assert.deepEqual(told(key), whole.logprobs[key], key);
    }
    assert.deepEqual(events.at(-2).choices, []);
    assert.equal(events.at(-2).usage.completion_tokens, 6);
    assert.equal(events.at(-1), "[DONE]");
  });

  await t.step("a character of several tokens counts once in the offsets", async () => {
    const asked = { ...fields, regex: "😀ok", logprobs: 0 };
    const { choices: [{ text, logprobs }] } = await server.json(COMPLETE, asked);
    assert.equal(text, "😀ok");
    const { tokens, text_offset: offsets } = logprobs;
    assert.equal(offsets[tokens.indexOf("o")], text.indexOf("o"));
    assert.equal(offsets[tokens.indexOf("k")], text.indexOf("k"));
  });
});

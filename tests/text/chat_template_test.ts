import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { type ChatMessage, chatTemplate, renderChat } from "../../src/text/chat_template.ts";
import { fledglingText, fledglingTokenizer, goldenCases } from "./tokenizers.ts";

const ASK: readonly ChatMessage[] = [{ role: "user", content: "Hi" }];
const OPEN = { addGenerationPrompt: true };

Deno.test("chat template: every golden prompt renders and encodes to its ids", () => {
  const tokenizer = fledglingTokenizer();
  const template = fledglingText("chat_template.jinja");
  const { bosToken, eosToken } = tokenizer;
  const cases = goldenCases();
  assert.equal(cases.length, 22);
  for (const { prompt, prompt_ids } of cases) {
    const messages: ChatMessage[] = [{ role: "user", content: prompt }];
    const text = renderChat(template, messages, { ...OPEN, bosToken, eosToken });
    assert.deepEqual(tokenizer.encode(text, { addSpecialTokens: false }), prompt_ids);
  }
});

Deno.test("chat template: the file comes before the config, which may hold a list", () => {
  const list = [{ name: "tool_use", template: "T" }, { name: "default", template: "D" }];
  assert.equal(chatTemplate("file", { chat_template: "config" }), "file");
  assert.equal(chatTemplate(undefined, { chat_template: "config" }), "config");
  assert.equal(chatTemplate(undefined, { chat_template: list }), "D");
  assert.equal(chatTemplate(undefined, { chat_template: list.slice(0, 1) }), undefined);
  assert.equal(chatTemplate(undefined, {}), undefined);
  assert.equal(chatTemplate(undefined, {}, { chat_template: "json" }), "json");
  assert.equal(chatTemplate(undefined, { chat_template: "a" }, { chat_template: "json" }), "a");
  assert.equal(chatTemplate(undefined, undefined), undefined);
});

Deno.test("chat template: has the variables that transformers gives", () => {
  const seen = "{{ bos_token }}|{{ eos_token }}|{{ tools is none }}|{{ documents is none }}|" +
    "{{ add_generation_prompt }}|{{ range(1, 4) | join(',') }}|{{ pad_token is defined }}";
  const given = { ...OPEN, bosToken: "<s>", eosToken: "</s>" };
  assert.equal(renderChat(seen, ASK, given), "<s>|</s>|true|true|true|1,2,3|false");
  assert.equal(renderChat("{{ bos_token }}{{ messages[0].content }}", ASK, OPEN), "Hi");
  assert.equal(renderChat("{{ bos_token is defined }}", ASK, OPEN), "false");
});

Deno.test("chat template: a conversation keeps its order and ends as asked", () => {
  const template = fledglingText("chat_template.jinja");
  const messages: ChatMessage[] = [
    { role: "system", content: " Be brief. " },
    ...ASK,
    { role: "assistant", content: "Hello" },
  ];
  const text = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n" +
    "<|im_start|>assistant\nHello<|im_end|>\n";
  assert.equal(renderChat(template, messages, { addGenerationPrompt: false }), text);
  assert.equal(renderChat(template, messages, OPEN), `${text}<|im_start|>assistant\n`);
});

Deno.test("chat template: line ends of Windows are line ends", () => {
  const template = "{% if true %}\r\na\r\n{% endif %}\r\n{{ 'b\r\n' }}{{ messages[0].content }}";
  const messages: ChatMessage[] = [{ role: "user", content: "c\r\n" }];
  assert.equal(renderChat(template, messages, OPEN), "a\nb\nc\r\n");
});

Deno.test("chat template: the day is told in English", () => {
  const now = new Date(2026, 2, 5, 14, 7, 9);
  const render = (format: string) =>
    renderChat(`{{ strftime_now("${format}") }}`, ASK, { ...OPEN, now });
  assert.equal(render("%d %b %Y"), "05 Mar 2026");
  assert.equal(render("%d %B %Y, %Y-%m-%d %H:%M"), "05 March 2026, 2026-03-05 14:07");
  assert.equal(render("%A, %B %-d, %y"), "Thursday, March 5, 26");
  assert.equal(render("%H:%M:%S %I %p %j %e|%a %m %% %q"), "14:07:09 02 PM 064  5|Thu 03 % %q");
});

Deno.test("chat template: what fails in a template is the user's to mend", () => {
  const refuses = (template: string, message: RegExp) =>
    assert.throws(
      () => renderChat(template, ASK, OPEN),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  refuses("{{ raise_exception('Roles must alternate') }}", /Roles must alternate/);
  refuses("{% if %}", /^Cannot render the chat/);
  refuses("{{ messages[0].content.nothing() }}", /^Cannot render the chat/);
});

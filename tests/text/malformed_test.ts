/** Broken tokenizer files and chat templates must give a UsageError, or text and ids. */
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { UsageError } from "../../src/errors.ts";
import { chatTemplate, renderChat } from "../../src/text/chat_template.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";
import { absurd, always, holds, some, spoiled } from "../fuzz.ts";

/** A byte-pair tokenizer with few tokens that has every part of the real ones. */
const TOKENIZER = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [{
    id: 7,
    content: "<s>",
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }],
  normalizer: null,
  pre_tokenizer: {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  },
  post_processor: {
    type: "ByteLevel",
    add_prefix_space: true,
    trim_offsets: false,
    use_regex: true,
  },
  decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
  model: {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: false,
    vocab: { h: 0, e: 1, l: 2, o: 3, he: 4, "Ġ": 5, "Ġh": 6 },
    merges: ["h e", "Ġ h"],
  },
};
const CONFIG = { bos_token: "<s>", eos_token: { content: "<s>" }, chat_template: "x" };

/** Loads the tokenizer, encodes once and decodes once. */
function use(json: unknown, config: unknown): boolean {
  return holds(() => {
    const tokenizer = loadTokenizer("absurd", json, config);
    const ids = tokenizer.encode("hello <s> hé");
    assert.ok(ids.every((id) => Number.isSafeInteger(id)), String(ids));
    tokenizer.decode([...ids, 0, 1e6], { skipSpecialTokens: true });
    const template = chatTemplate(undefined, config);
    if (template !== undefined) render(template);
  });
}

function render(template: string): boolean {
  return holds(() =>
    renderChat(template, [{ role: "user", content: "hi" }], { addGenerationPrompt: true })
  );
}

Deno.test("tokenizers with absurd files", () => {
  const model = spoiled(TOKENIZER.model).map((model) => ({ ...TOKENIZER, model }));
  const added = spoiled(TOKENIZER.added_tokens[0] ?? {}).map((token) => ({
    ...TOKENIZER,
    added_tokens: [token],
  }));
  const json = fc.oneof(spoiled(TOKENIZER), model, added, absurd);
  const config = fc.oneof(fc.constant(CONFIG), spoiled(CONFIG, ["added_tokens_decoder"]), absurd);
  some(always(fc.tuple(json, config), ([json, config]) => use(json, config), 1500));
});

for (
  const [what, change, message] of [
    ["an id that is none", { id: null }, /token "<s>" has id null/],
    ["an id of a billion, which kept the package busy", { id: 1e9 }, /"<s>" has id 1000000000/],
    ["an empty token", { content: "" }, /an added token is empty/],
  ] as const
) {
  Deno.test(`a tokenizer with ${what} is refused`, () => {
    const json = { ...TOKENIZER, added_tokens: [{ ...TOKENIZER.added_tokens[0], ...change }] };
    assert.throws(() => loadTokenizer("absurd", json, CONFIG), message);
  });
}

Deno.test("a text that a vocabulary has no tokens for is told, not sent as no number", () => {
  const json = { ...TOKENIZER, model: { ...TOKENIZER.model, unk_token: "gone" } };
  const tokenizer = loadTokenizer("absurd", json, CONFIG);
  assert.deepEqual(tokenizer.encode("hello"), [4, 2, 2, 3]);
  assert.throws(() => tokenizer.encode("hé"), /no token for a part of the text/);
});

Deno.test("chat templates of nonsense", () => {
  const piece = fc.constantFrom(
    "{{ messages[0].content }}",
    "{% for m in messages %}",
    "{% endfor %}",
    "{% if true %}",
    "{% endif %}",
    "{{ raise_exception('no') }}",
    "{{ messages | tojson }}",
    "{{ range(3) }}",
    "{% set a = messages %}",
    "{{ a.b.c }}",
    "{{ 1 / 0 }}",
    "{{ x() }}",
    "{%- macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "{{",
    "%}",
    "text",
  );
  const template = fc.oneof(
    fc.array(piece, { maxLength: 6 }).map((all) => all.join("")),
    fc.string(),
  );
  some(always(template, render, 1500));
});

Deno.test("a template that counts without end is refused before it takes the memory", () => {
  for (const call of ["range(1e15)", "range(0, 1e12)", "range(-1e9, 1e9)", "range(10000000)"]) {
    const template = `{% for i in ${
      call.replaceAll(/1e(\d+)/g, (_, n) => String(10 ** n))
    } %}x{% endfor %}`;
    assert.throws(
      () => renderChat(template, [], { addGenerationPrompt: false }),
      (error: unknown) =>
        error instanceof UsageError && /range\(\) is too long/.test(error.message),
    );
  }
});

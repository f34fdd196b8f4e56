// Templates that would use up the machine end with an error, in bounded memory.
import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { type ChatMessage, renderChat } from "../../src/text/chat_template.ts";

const ASK: readonly ChatMessage[] = [{ role: "user", content: "Hi, there" }];

function render(template: string, content = "Hi, there"): string {
  return renderChat(template, [{ role: "user", content }], { addGenerationPrompt: true });
}

const DOUBLE = "{% set ns = namespace(x='0123456789') %}{% for i in range(40) %}";

/** Templates that each took all memory or did not end. */
const HUNGRY: Readonly<Record<string, string>> = {
  "a text doubled": `${DOUBLE}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}`,
  "a text doubled by +": `${DOUBLE}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x | length }}`,
  "a text replaced": `${DOUBLE}{% set ns.x = ns.x.replace('0', ns.x) %}{% endfor %}`,
  "a text replaced by a filter": `${DOUBLE}{% set ns.x = ns.x | replace('0', ns.x) %}{% endfor %}`,
  "a text joined": `${DOUBLE}{% set ns.x = ns.x | join(ns.x) %}{% endfor %}`,
  "a list doubled": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}" +
    "{% set ns.x = ns.x + ns.x %}{% endfor %}",
  "lists of lists":
    "{% set ns = namespace(x=['a']) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}" +
    "{% endfor %}{{ ns.x | tojson }}",
  "namespaces of namespaces": "{% set ns = namespace(x='a') %}{% for i in range(40) %}" +
    "{% set ns = namespace(x=[ns, ns]) %}{{ [ns] | tojson }}{% endfor %}",
  "a namespace in itself": "{% set ns = namespace(x=1) %}{% set ns.x = ns %}{{ [ns] | tojson }}",
  "texts kept": "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}" +
    "{% set ns.x = ns.x + [(' ' ~ messages[0].content) | upper] %}{% endfor %}",
  "ranges kept": "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}" +
    "{% set ns.x = [range(1000000), ns.x] %}{% endfor %}",
  "loops in loops":
    "{% for i in range(1000000) %}{% for j in range(1000000) %}{% endfor %}{% endfor %}",
  "output": "{% for i in range(1000000) %}{{ messages }}{{ messages }}{% endfor %}",
  "a macro in itself": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
  "wide lines": "{{ messages | tojson(indent=100000000) }}",
  "wide lines of a text": "{{ ('a\n' ~ messages[0].content) | indent(400000000) }}",
  "a long error": `${DOUBLE}{% set ns.x = ns.x ~ ns.x %}{% if i == 18 %}` +
    "{{ raise_exception(ns.x) }}{% endif %}{% endfor %}",
};

for (const [what, template] of Object.entries(HUNGRY)) {
  Deno.test(`a template is bounded: ${what}`, () => {
    assert.throws(() => render(template, "Hi, there. ".repeat(2000)), (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, /^Cannot render the chat of 1 message: the template /);
      assert.ok(error.message.length < 400);
      return true;
    });
  });
}

Deno.test("a template's error is one line without control characters", () => {
  assert.throws(
    () =>
      render(
        "{{ raise_exception('a\\n\\u001b[2Jb' ~ messages[0].content) }}",
        "\x1b[31m\x07\x9b\n",
      ),
    (error) => {
      assert.ok(error instanceof UsageError);
      // deno-lint-ignore no-control-regex
      assert.doesNotMatch(error.message, /[\u0000-\u001f\u007f-\u009f]/);
      assert.match(error.message, /\\u001b\[31m\\u0007\\u009b\\n/);
      return true;
    },
  );
});

Deno.test("a long conversation is far within the budget of a template", () => {
  const template = Deno.readTextFileSync(
    new URL("../golden/templates/qwen3.jinja", import.meta.url),
  );
  const messages = Array.from({ length: 2000 }, (_, i): ChatMessage => ({
    role: i % 2 ? "assistant" : "user",
    content: `<think>\nabout ${i}\n</think>\n\n${"a word of it ".repeat(50)}`,
  }));
  const text = renderChat(template, [...messages, ...ASK], { addGenerationPrompt: true });
  assert.ok(text.length > 1_000_000);
  const long = render("{{ messages[0].content | trim | upper }}", "x".repeat(5_000_000));
  assert.equal(long.length, 5_000_000);
});

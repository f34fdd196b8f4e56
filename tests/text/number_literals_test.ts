import assert from "node:assert/strict";
import { parseWithLiterals, textWithLiterals } from "../../src/text/number_literals.ts";
import { renderChat } from "../../src/text/chat_template.ts";
import { pythonText } from "../../src/serve/tools/python.ts";

const JSON_TEXT = '{"a":9007199254740993,"b":[1.0,-0,1e400],"c":{"d":0.10},"e":7,"f":"1.0"}';

Deno.test("numbers keep their literals through another thread", () => {
  const value = structuredClone(parseWithLiterals(JSON_TEXT));
  assert.equal(textWithLiterals(value), JSON_TEXT);
  assert.equal(
    pythonText("f", value),
    'f(a=9007199254740993, b=[1.0, -0, 1e400], c={"d": 0.10}, e=7, f="1.0")',
  );
});

Deno.test("a text that begins with the mark of a literal stays a text", () => {
  assert.equal(textWithLiterals({ name: "\ufdd2f" }), '{"name":"\ufdd2f"}');
  assert.equal(textWithLiterals(parseWithLiterals('{"a":"\ufdd2\ufdd21"}')), '{"a":"1"}');
});

Deno.test("templates calculate with numbers and write their literals", () => {
  const tool_calls = [parseWithLiterals('{"i":9007199254740993,"x":2.50,"zero":0.0}')];
  const render = (template: string) =>
    renderChat(
      `{% set call = messages[0].tool_calls[0] %}${template}`,
      [{ role: "assistant", content: "", tool_calls }],
      { addGenerationPrompt: false },
    );
  for (
    const [template, text] of [
      ["{{ call.i }} {{ call.x }} {{ call.zero }}", "9007199254740993 2.50 0.0"],
      ["{{ call | tojson }}", '{"i": 9007199254740993, "x": 2.50, "zero": 0.0}'],
      ["{{ call.x | string }} {{ [call.i] | string }}", "2.50 [9007199254740993]"],
      [
        "{{ call.x ~ '' }} {{ [call.x] | join }} {{ 'a' + (call.i | string) }}",
        "2.50 2.50 a9007199254740993",
      ],
      ["{{ call.x + 1 }} {{ 1 if call.x == 2.5 else 2 }} {{ 1 if call.x > 2 else 2 }}", "3.5 1 1"],
      ["{{ 1 if call.zero else 2 }} {{ 1 if call.x else 2 }}", "2 1"],
      ["{{ 1 if call.i is number and call.i is not string else 2 }}", "1"],
      ["{{ 1 if call.i is integer and call.x is not integer else 2 }}", "1"],
    ] as const
  ) assert.equal(render(template), text, template);
});

import assert from "node:assert/strict";
import { renderChat } from "../../src/text/chat_template.ts";

const render = (template: string) =>
  renderChat(template, [], { addGenerationPrompt: false, templateArguments: { given: GIVEN } });

const GIVEN = {
  items: { type: "array", get: 1 },
  keys: ["a"],
  mixed: ["a'b", 'c"', `d'"`, "\n\t\\\u00a0é\u0007\u200b", null, true, 1, 1.5, {
    "x y": [],
  }],
};

/** Templates and the texts that Jinja2 3.1.6 makes of them. */
const CASES: readonly (readonly [string, string])[] = [
  ["{% for key, value in given.items() %}{{ key }},{% endfor %}", "items,keys,mixed,"],
  ["{{ given.keys() | join(',') }} {{ given.values() | length }}", "items,keys,mixed 3"],
  ["{{ given.get('keys')[0] }} {{ given['items'].get('get') }}", "a 1"],
  ["{{ given['items'].type }} {{ given['items']['get'] }}", "array 1"],
  [
    "{{ 1 if given['items'].missing is defined else 2 }} {{ 1 if given.values is callable }}",
    "2 1",
  ],
  ["[{{ missing | upper }}{{ missing | lower }}{{ missing | string }}]", "[]"],
  ["{{ ['string', none] | upper }} {{ {'A': 1} | lower }}", "['STRING', NONE] {'a': 1}"],
  ["{{ none | lower }} {{ 'Ab' | upper }} {{ true | upper }}", "none AB TRUE"],
  ["{{ ['a', 1] | map('upper') | join('|') }}", "A|1"],
  ["{{ given['keys'] | map('upper') | list | string }}", "['A']"],
  ["{{ [{'a': 1}] | map(attribute='a') | list }}", "[1]"],
  [
    "{{ given.mixed | string }}",
    `["a'b", 'c"', 'd\\'"', '\\n\\t\\\\\\xa0é\\x07\\u200b', None, True, 1, 1.5, {'x y': []}]`,
  ],
  ["{{ given['items'] | string }} {{ ('a', 1) | string }}", "{'type': 'array', 'get': 1} ('a', 1)"],
  ["{{ [missing] | string }} {{ 'a' | string }} {{ none | string }}", "[Undefined] a None"],
  ["[{{ '\\n\\n  a \\n'.lstrip('\\n') }}]", "[  a \n]"],
  ["[{{ ' \\n a \\n'.rstrip('\\n') }}|{{ ' \\n a\\n\\n'.strip('\\n') }}]", "[ \n a | \n a]"],
  ["[{{ ' \\n a \\n'.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip(none) }}]", "[a|a | a]"],
  ["[{{ '\ufeff a\x1f\x85'.strip() }}|{{ '\u3000\x1c\ufeff' | trim }}]", "[\ufeff a|\ufeff]"],
  ["[{{ missing | trim }}|{{ 12 | trim }}|{{ ' a\\n' | trim }}]", "[|12|a]"],
  ["[{{ '🦊xa🦊x'.strip('x🦊') }}|{{ 'xx'.strip('x') }}|{{ ' a'.strip('') }}]", "[a|| a]"],
  ["{{ 1 if missing in ('a', 'b') else 2 }}", "2"],
  ["{{ 1 if missing not in ['a'] else 2 }} {{ 1 if missing in {'a': 1} else 2 }}", "1 2"],
  ["{{ 1 if {'a': [1]} == {'a': [1]} }} {{ 1 if {'a': 1} == {} else 2 }}", "1 2"],
  ["{{ 1 if {'a': 1} != {'a': 1} else 2 }} {{ 1 if ['a'] != ['b'] }}", "2 1"],
  ["{{ 1 if ['a', none] == ['a', none] }} {{ 1 if ['a'] == 'a' else 2 }}", "1 2"],
  ["{{ 1 if none == none }} {{ 1 if 1 == 1 }} {{ 1 if 'a' != 'a' else 2 }}", "1 1 2"],
  ["{{ 1 if none in [none] else 2 }} {{ 1 if none in {'a': 1} else 2 }}", "1 2"],
  [
    "{{ 1 if ['a', none] in (['a', none], 'b') else 2 }} {{ 1 if ['a'] in ('a', 1) else 2 }}",
    "1 2",
  ],
  ["{{ 1 if {'a': [1]} in [{'a': [1]}] else 2 }} {{ 1 if {'a': 1} in [{}] else 2 }}", "1 2"],
  [
    "{{ 1 if 'a' in ['a'] else 2 }} {{ 1 if 'a' in 'ba' else 2 }} {{ 1 if 1 in missing else 2 }}",
    "1 1 2",
  ],
];

for (const [template, text] of CASES) {
  Deno.test(`template as in Jinja2: ${template}`, () => assert.equal(render(template), text));
}

Deno.test("template: a mark in a text, as user_text.ts sets it, stays in the list's text", () => {
  assert.equal(render("{{ ['<\ufdd0|im_end|>'] | string }}"), "['<\ufdd0|im_end|>']");
});

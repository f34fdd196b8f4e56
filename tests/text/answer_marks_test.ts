import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  joinedPieces,
  partReasoning,
  REASONING_MARKS,
  reasoningOf,
  reasoningStream,
} from "../../src/text/reasoning.ts";

const [marks] = REASONING_MARKS;
const answer = { open: "<answer>", close: "</answer>" };
const PARTS = { marks, openings: [[7]], answer };

const CASES: readonly (readonly [string, string, string, string])[] = [
  ["around the answer", "<think>\na\n</think>\n<answer>\nb c\n</answer>", "a", "b c"],
  ["and white space behind", "<think>a</think><answer>b</answer>\n \n", "a", "b"],
  ["without reasoning", "\n<answer>b</answer>", "", "b"],
  ["none", "<think>a</think>\n\nb </answer>", "a", "b </answer>"],
  ["never closed", "<think>a</think><answer>b\n\n", "a", "b\n\n"],
  ["closed in part", "<think>a</think><answer>b\n</answ", "a", "b\n</answ"],
  ["further on", "<answer>a <answer>b</answer> c</answer>", "", "a <answer>b</answer> c"],
  ["closed before more text", "<answer>a\n</answer>\nb", "", "a\n</answer>\nb"],
  ["closed before a call", "<answer>a \n</answer>\n\n<tool_call>\n{}", "", "a\n\n<tool_call>\n{}"],
  ["in a call", '<answer>a</answer><tool_calls>"</answer>"', "", 'a<tool_calls>"</answer>"'],
  ["closed before no call", "<answer>a</answer>\n<tool b", "", "a</answer>\n<tool b"],
  ["closed before the beginning of a call", "<answer>a</answer>\n<tool", "", "a</answer>\n<tool"],
  ["empty before a call", "<answer>\n</answer>\n<tool_call>", "", "\n<tool_call>"],
  ["empty", "<think>a</think><answer>\n</answer>", "a", ""],
  ["a beginning alone", "<think>a</think><ans", "a", "<ans"],
  ["only in the reasoning", "<think>an <answer></think>b", "an <answer>", "b"],
];

for (const [name, output, reasoning, text] of CASES) {
  Deno.test(`marks of answers: ${name}, however it is cut`, () => {
    assert.deepEqual(partReasoning(output, PARTS, []), { reasoning, text });
    const cuts = fc.array(fc.integer({ min: 0, max: output.length }), { maxLength: 6 });
    fc.assert(fc.property(cuts, (at) => {
      const ends = [0, ...at.toSorted((a, b) => a - b), output.length];
      const stream = reasoningStream(PARTS, []);
      const pieces = ends.slice(1).flatMap((end, i) => stream.push(output.slice(ends[i], end)));
      assert.deepEqual(joinedPieces([...pieces, ...stream.end()]), { reasoning, text });
    }));
  });
}

Deno.test("marks of answers: what is sure is not held back", () => {
  const stream = reasoningStream(PARTS, []);
  assert.deepEqual(stream.push("<answer>\nb \n</an"), [{ kind: "text", text: "b" }]);
  assert.deepEqual(stream.push("d"), [{ kind: "text", text: " \n</and" }]);
  assert.equal(stream.over, true);
});

Deno.test("marks of answers: known by a template of Hunyuan or ERNIE, or by ERNIE's tokens", () => {
  const known = (template: string, tokens: readonly string[] = []) =>
    reasoningOf({
      encode: () => [7],
      idOf: (token) => tokens.includes(token) ? 9 : undefined,
    }, `${template}<think></think>`).answer;
  assert.deepEqual(known("content.split('<answer>')"), answer);
  assert.deepEqual(known("<｜hy_User｜>{{ x }}<｜hy_Assistant｜>"), answer);
  const response = { open: "<response>", close: "</response>" };
  assert.deepEqual(known("", ["<response>", "</response>"]), response);
  assert.deepEqual(known("<response>"), response);
  assert.equal(known("<tool_response>{{ x }}</tool_response>"), undefined);
});

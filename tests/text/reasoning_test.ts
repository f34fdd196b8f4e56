import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  joinedPieces,
  partReasoning,
  type Reasoning,
  REASONING_MARKS,
  reasoningCounter,
  reasoningOf,
  reasoningStream,
  thinkArguments,
  withBudget,
} from "../../src/text/reasoning.ts";
import { loadTokenizer } from "../../src/text/tokenizer.ts";

const [marks] = REASONING_MARKS;
const THINK = { marks, openings: [[7], [7, 8]], closing: [9] };
const ASKED = [1, 2];
const OPENED = [1, 7, 8];
const CLOSED = [1, 9];

const CASES: readonly (readonly [string, string, readonly number[], string, string])[] = [
  ["a block in front", "<think>\nI see.\n</think>\n\nHi", ASKED, "I see.", "Hi"],
  ["opened by the prompt", "I see.\n</think>\n\nHi", OPENED, "I see.", "Hi"],
  ["opened twice", "<think>I see.</think>Hi", OPENED, "I see.", "Hi"],
  ["none", "Hi", ASKED, "", "Hi"],
  ["white space stays without a block", " \n Hi \n", ASKED, "", " \n Hi \n"],
  ["an empty block", "<think>\n\n</think>\n\nHi", ASKED, "", "Hi"],
  ["after empty lines", "\n<think>a</think>b", ASKED, "a", "b"],
  ["paragraphs stay", "<think>a\n\nb\n</think>\n\n  c\n\nd\n", ASKED, "a\n\nb", "  c\n\nd\n"],
  ["never closed", "<think>a <b", ASKED, "a <b", ""],
  ["never closed, opened by the prompt", "a\n", OPENED, "a", ""],
  ["closed in part", "<think>a</thin", ASKED, "a</thin", ""],
  ["marks further on are text", "a <think>b</think>", ASKED, "", "a <think>b</think>"],
  ["a second block is text", "<think>a</think>b<think>c</think>", ASKED, "a", "b<think>c</think>"],
  ["a beginning of a mark", "<thi", ASKED, "", "<thi"],
  ["closed by the prompt", "\n\n  Hi\n", CLOSED, "", "  Hi\n"],
  ["closed by the prompt, and none", "Hi", CLOSED, "", "Hi"],
  ["closed by the prompt, and a block", "\n<think>a</think>\nHi", CLOSED, "a", "Hi"],
  ["nothing", "", ASKED, "", ""],
];

for (const [name, output, promptIds, reasoning, text] of CASES) {
  Deno.test(`reasoning: ${name}, however it is cut`, () => {
    assert.deepEqual(partReasoning(output, THINK, promptIds), { reasoning, text });
    const cuts = fc.array(fc.integer({ min: 0, max: output.length }), { maxLength: 6 });
    fc.assert(fc.property(cuts, (at) => {
      const ends = [0, ...at.toSorted((a, b) => a - b), output.length];
      const stream = reasoningStream(THINK, promptIds);
      const pieces = ends.slice(1).flatMap((end, i) => stream.push(output.slice(ends[i], end)));
      assert.deepEqual(joinedPieces([...pieces, ...stream.end()]), { reasoning, text });
    }));
  });
}

/** Templates with calls, reasoning that mentions a call, and the beginning of a call. */
const UNCLOSED: readonly (readonly [string, string, string])[] = [
  ["qwen38", "I say <tool_call>f</tool_call> now.", "<tool_call>\n<function=f>"],
  ["seed_oss", "I say <seed:tool_call> now.", "<seed:tool_call>\n<function=f>"],
  ["glm47", "I say <tool_call> and <tool_call>a b</tool_call>.", "<tool_call>f</tool_call>"],
  ["glm47", "I say <tool_call></tool_call>.", "<tool_call>f\n<arg_key>a</arg_key>"],
  ["laguna", "I say <tool_call></tool_call>.", "<tool_call>f<arg_key>a</arg_key>"],
  ["laguna_xs2", "I say <tool_call></tool_call>.", "<tool_call>f\n<arg_key>a</arg_key>"],
  ["ministral3", "I say [TOOL_CALL now.", '[TOOL_CALLS]f[ARGS]{"a": 1}'],
  ["gemma4", "I say <|tool_call>f now.", "<|tool_call>call:f{}<tool_call|>"],
  ["deepseek_v31", "I say <｜tool▁calls▁ now.", "<｜tool▁calls▁begin｜>"],
];

for (const [name, thought, call] of UNCLOSED) {
  Deno.test(`reasoning: a call of ${name} ends it where it was not closed, however it is cut: ${call}`, () => {
    const template = Deno.readTextFileSync(
      new URL(`../golden/templates/${name}.jinja`, import.meta.url),
    );
    const known = reasoningOf(
      { encode: () => [7], idOf: () => undefined },
      `${template}<think></think>`,
    );
    const parts = { ...THINK, ...known.break && { break: known.break } };
    const output = `${thought}\n${call}`;
    const expected = { reasoning: thought, text: call };
    assert.deepEqual(partReasoning(output, parts, OPENED), expected);
    assert.deepEqual(partReasoning(`a</think>${output}`, parts, OPENED).text, output);
    assert.deepEqual(partReasoning(thought, parts, OPENED), { reasoning: thought, text: "" });
    for (let at = 0; at < output.length; at++) {
      for (const pieces of [[output.slice(0, at), output.slice(at)], [...output]]) {
        const stream = reasoningStream(parts, OPENED);
        const made = pieces.flatMap((piece) => stream.push(piece));
        assert.deepEqual(joinedPieces([...made, ...stream.end()]), expected);
      }
    }
  });
}

Deno.test("reasoning tokens: up to the one that completes the closing mark", () => {
  const counted = (promptIds: readonly number[], ...tokens: readonly string[]) => {
    const counter = reasoningCounter(THINK, promptIds);
    for (const token of tokens) counter.push(token);
    return counter.tokens;
  };
  assert.equal(counted(ASKED, "<think>", "a", "b", "</think>", "\n\n", "Hi", "<think>", "c"), 4);
  assert.equal(counted(ASKED, "<thi", "nk>a", "</", "think>Hi", " there"), 4);
  assert.equal(counted(ASKED, "", "\n", "<think>", "a", "</think>"), 5);
  assert.equal(counted(ASKED, "<think>", "\n\n", "</think>", "Hi"), 3);
  assert.equal(counted(ASKED, "<think>a</think>Hi", "you"), 1);
  assert.equal(counted(OPENED, "a", "b", "</think>", "Hi"), 3);
  assert.equal(counted(OPENED, "a", "b"), 2, "it has not ended");
  assert.equal(counted(ASKED, "<think>", "a", "</thi"), 3);
  assert.equal(counted(ASKED, "Hi", "<think>", "a", "</think>"), 0);
  assert.equal(counted(ASKED), 0);
});

Deno.test("reasoning: what is sure is not held back", () => {
  const stream = reasoningStream(THINK, ASKED);
  assert.deepEqual(stream.push("<think>ab </"), [{ kind: "reasoning", text: "ab" }]);
  assert.deepEqual(stream.push("b"), [{ kind: "reasoning", text: " </b" }]);
  assert.deepEqual(stream.push("</think>x"), [{ kind: "text", text: "x" }]);
});

Deno.test("reasoning: a model without marks has text only", () => {
  const none = { marks: undefined, openings: [] };
  const output = "<think>a</think>";
  assert.deepEqual(partReasoning(output, none, OPENED), { reasoning: "", text: output });
});

/** A tokenizer of single letters that has these special tokens. */
function letters(special: readonly string[]) {
  const vocab = Object.fromEntries(
    [..." \nabcdefghijklmnopqrstuvwxyz<>/[]THINKse:"].map((each, i) => [each, i]),
  );
  const size = Object.keys(vocab).length;
  const added_tokens = special.map((content, i) => ({
    id: size + i,
    content,
    special: true,
    normalized: false,
    single_word: false,
    lstrip: false,
    rstrip: false,
  }));
  const decoder = { type: "Fuse" };
  const model = { type: "BPE", vocab, merges: [] };
  return loadTokenizer("letters", {
    model,
    added_tokens,
    decoder,
    pre_tokenizer: null,
    normalizer: null,
    post_processor: null,
  }, {});
}

const KNOWN: readonly (readonly [string, string[], string | undefined, Partial<Reasoning>])[] = [
  ["Qwen3's tokens", ["<think>", "</think>"], "{{ enable_thinking }}", { marks, switchable: true }],
  ["Magistral's tokens", ["[THINK]", "[/THINK]"], "", { marks: REASONING_MARKS[1] }],
  ["a template's marks", [], "<think></think>{% if thinking %}", { marks, switchable: true }],
  ["neither", ["<s>"], "{{ rethinking }}", { marks: undefined, openings: [], switchable: false }],
  ["Gemma 4's tokens", ["<|channel>", "<channel|>"], "<|channel>thought\n{{ x }}<channel|>", {
    marks: REASONING_MARKS[3],
    switchable: false,
  }],
  ["Granite's switch", [], "<think></think>{%- elif thinking %}", { marks, switchable: true }],
  ["a message's field", [], "<think></think>{% if message.thinking is defined %}", {
    switchable: false,
  }],
  ["a base model", [], undefined, { marks: undefined, switchable: false }],
];

for (const [name, special, template, expected] of KNOWN) {
  Deno.test(`reasoning: known by ${name}`, () => {
    const tokenizer = letters(special);
    const reasoning = reasoningOf(tokenizer, template);
    assert.partialDeepStrictEqual(reasoning, expected);
    if (reasoning.marks === undefined) return;
    const { open, close } = reasoning.marks;
    const opened = tokenizer.encode(`hi${open}\n`, { addSpecialTokens: false });
    assert.equal(partReasoning("a", reasoning, opened).reasoning, "a");
    const closed = tokenizer.encode(`hi${open}\n\n${close}\n\n`, { addSpecialTokens: false });
    assert.equal(partReasoning("a", reasoning, closed).text, "a");
    const turn = tokenizer.encode(`hi${close}`, { addSpecialTokens: false });
    assert.equal(partReasoning("\na", reasoning, turn).text, "a");
    const decoded = tokenizer.decode([...opened, ...closed], { skipSpecialTokens: true });
    assert.equal(decoded, `hi${open}\nhi${open}\n\n${close}\n\n`, "marks are decoded");
  });
}

Deno.test("reasoning: on and off set every family's variable", () => {
  assert.deepEqual(thinkArguments("auto"), {});
  assert.deepEqual(thinkArguments("on"), { enable_thinking: true, thinking: true });
  assert.deepEqual(thinkArguments("off"), { enable_thinking: false, thinking: false });
  assert.equal(withBudget(thinkArguments("off"))["thinking_budget"], 0);
  assert.deepEqual(withBudget(thinkArguments("on")), thinkArguments("on"));
  const budget = { enable_thinking: false, thinking_budget: 512 };
  assert.deepEqual(withBudget(budget), budget);
});

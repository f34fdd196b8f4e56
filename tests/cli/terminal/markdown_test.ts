import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import stringWidth from "string-width";
import {
  markdownWriter,
  terminalText,
  type TextStyle,
} from "../../../src/cli/terminal/markdown.ts";
import { fakeIo } from "../fake.ts";

/** Everything that is written for a text that comes in these pieces. */
function shown(pieces: Iterable<string>, look: Partial<TextStyle> = {}): string {
  const text = terminalText({ columns: () => 20, colour: false, ...look });
  return Array.from(pieces, (piece) => text.write(piece)).join("") + text.end();
}

const WRAPPED: readonly (readonly [name: string, text: string, lines: string[]])[] = [
  ["words", "one two three four five", ["one two three four", "five"]],
  ["an exact fit", "0123456789 123456789 x", ["0123456789 123456789", "x"]],
  ["a paragraph each", "one\n\n\ntwo\n", ["one", "", "", "two", ""]],
  ["a long word", `see https://example.org/long/path now`, [
    "see",
    "https://example.org/long/path now",
  ]],
  ["Chinese", "这是一个没有空格的句子，它很长。", ["这是一个没有空格的句", "子，它很长。"]],
  ["no mark at a line's begin", "这是一个没有空格的一，它很长。", [
    "这是一个没有空格的",
    "一，它很长。",
  ]],
  ["emoji", "🎉🎉🎉🎉🎉 👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦", [
    "🎉🎉🎉🎉🎉 👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦",
    "👨‍👩‍👧‍👦",
  ]],
  ["combining marks", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301 0123456789 x", [
    "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301 0123456789",
    "x",
  ]],
  ["a list hangs", "- one two three four five\n12. one two three four", [
    "- one two three four",
    "  five",
    "12. one two three",
    "    four",
  ]],
  ["a fence", "```ts\nconst a = 'left as it is, all of it';\n  b\n```\none two three four five", [
    "```ts",
    "const a = 'left as it is, all of it';",
    "  b",
    "```",
    "one two three four",
    "five",
  ]],
  ["a fence in a longer one", "````\n```\na b c d e f g h i j k l m\n````\na b c d e f g h i j k", [
    "````",
    "```",
    "a b c d e f g h i j k l m",
    "````",
    "a b c d e f g h i j",
    "k",
  ]],
  ["no fence: backticks follow", "```a``` b c d e f g h i j", ["```a``` b c d e f g", "h i j"]],
  ["indented code", "so:\n\n    left as it is, all of it\n\n    and this of it as well", [
    "so:",
    "",
    "    left as it is, all of it",
    "",
    "    and this of it as well",
  ]],
  ["an indented paragraph of a list", "- a\n\n    one two three four", [
    "- a",
    "",
    "    one two three",
    "    four",
  ]],
  ["a table", "| one | two | three | four |\n|--|--|--|--|", [
    "| one | two | three | four |",
    "|--|--|--|--|",
  ]],
  ["blanks that are no breaks", "one two three four\u00a0five", [
    "one two three",
    "four\u00a0five",
  ]],
  ["control characters", "a\x1b[31mb\x07\r\nc", ["a\uFFFD[31mb\uFFFD", "c"]],
];

for (const [name, text, lines] of WRAPPED) {
  Deno.test(`wrapped: ${name}`, () => {
    assert.deepEqual(shown([text]).split("\n"), lines);
    assert.deepEqual(shown(text).split("\n"), lines, "a character at a time");
  });
}

// deno-lint-ignore no-control-regex
const withoutColour = (text: string) => text.replace(/\x1b\[[\d;]*m/g, "");

Deno.test("wrapped: any text in any pieces, nothing lost, no line too long", () => {
  const word = fc.constantFrom(
    ..."a bc **d** _e `f` ``` # - 1. 中文， 🎉 | > \u3000x \u00a0 2\u00a0a \u00a0\n 3年 \t \n \n\n"
      .split(" "),
  );
  const texts = fc.array(word, { maxLength: 40 }).map((words) => words.join(" "));
  fc.assert(fc.property(texts, fc.integer({ min: 1, max: 7 }), (text, size) => {
    const pieces = text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
    const whole = shown([text]);
    assert.equal(shown(pieces), whole);
    const dense = (of: string) => of.replace(/\s/g, "");
    assert.equal(dense(whole), dense(text));
    const coloured = shown(pieces, { colour: true });
    assert.equal(withoutColour(coloured), whole, "colour changes no text");
  }));
  const plain = fc.array(fc.constantFrom("a", "bcd", "efghijkl", "中文字", "🎉")).map((words) =>
    `x${words.join(" ")}`
  );
  fc.assert(fc.property(plain, (text) => {
    for (const line of shown([text]).split("\n")) assert.ok(stringWidth(line) <= 20, line);
  }));
});

Deno.test("wrapped: what is held back is a word at most", () => {
  const text = terminalText({ columns: () => 80, colour: true });
  assert.equal(text.write("Hello wor"), "Hello");
  assert.equal(text.write("ld and"), " world");
  assert.equal(text.write(" "), " and");
  assert.equal(text.write("中文字"), " 中文");
  assert.equal(text.write("\n```js\nlet"), "字\n\x1b[2m```js\x1b[0m\n\x1b[36mlet\x1b[0m");
  assert.equal(text.end(), "");
  const chinese = terminalText({ columns: () => 80, colour: false });
  assert.equal(chinese.write("2024年是"), "2024年");
  for (const begun of ["`", "12.", "##", "-", "~~"]) {
    assert.equal(terminalText({ columns: () => 80, colour: false }).write(begun), "", begun);
  }
});

Deno.test("wrapped: a new width holds from the next word on", () => {
  let columns = 20;
  const text = terminalText({ columns: () => columns, colour: false });
  let out = text.write("one two three four five ");
  columns = 9;
  out += text.write("six seven ") + text.end();
  assert.equal(out, "one two three four\nfive six\nseven");
});

const COLOURED: readonly (readonly [text: string, shown: string])[] = [
  ["a **b c** d", "a [2]**[0][1]b[0] [1]c[0][2]**[0] d"],
  ["*a*, __b__!", "[2]*[0][3]a[0][2]*[0], [2]__[0][1]b[0][2]__[0]!"],
  ["***a***", "[2]***[0][1;3]a[0][2]***[0]"],
  ["`a*b*` c", "[2]`[0][36]a[0][36]*[0][36]b[0][36]*[0][2]`[0] c"],
  ["snake_case_name 2 * 3 a*b*c \\*d*", "snake_case_name 2 * 3 a*b*c \\*d*"],
  ["**a\nb", "[2]**[0][1]a[0]\nb"],
  ["## a b", "[1]##[0] [1]a[0] [1]b[0]"],
  ["#hash", "#hash"],
  ["这**重要**的", "这[2]**[0][1]重[0][1]要[0][2]**[0]的"],
  ["```\na\n```\nb", "[2]```[0]\n[36]a[0]\n[2]```[0]\nb"],
];

for (const [text, wanted] of COLOURED) {
  Deno.test(`coloured: ${JSON.stringify(text)}`, () => {
    const written = shown([text], { colour: true, columns: () => 80 });
    // deno-lint-ignore no-control-regex
    assert.equal(written.replace(/\x1b(\[[\d;]*)m/g, "$1]"), wanted);
  });
}

Deno.test("dim text is dim throughout", () => {
  assert.equal(
    shown(["a **b**"], { colour: true, dim: true }),
    "\x1b[2ma\x1b[0m \x1b[2m**\x1b[0m\x1b[2;1mb\x1b[0m\x1b[2m**\x1b[0m",
  );
});

Deno.test("to a pipe a text goes as it is, at once", () => {
  const text = markdownWriter(fakeIo().stdout, { colour: true });
  for (const piece of ["**a\x1b[1m", "b\r\n``", "`"]) assert.equal(text.write(piece), piece);
  assert.equal(text.end(), "");
});

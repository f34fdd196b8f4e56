import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { draw, length, lines, type Take } from "../../tools/recording.ts";

const plain: Take = {
  command: ["$ eyrie generate", "  'a prompt'"],
  pieces: [{ text: "One", at: 0 }, { text: " <two", at: 500 }, { text: ">\n", at: 1000 }],
  tokens: 3,
  device: "a device",
};
const drafted: Take = {
  ...plain,
  pieces: [{ text: "One <two>", at: 0 }, { text: "\n", at: 250 }],
  rounds: 1,
};

Deno.test("a line ends before the word that does not fit", () => {
  const text = "three little words unbreakable";
  deepEqual(
    lines(text, 12).map(({ start, end }) => text.slice(start, end)),
    ["three little", "words", "unbreakable"],
  );
  deepEqual(lines("abcdef", 4), [{ start: 0, end: 4 }, { start: 4, end: 6 }]);
});

Deno.test("what came out is shown when it came, slowed down alike", () => {
  const svg = draw([plain, drafted], 2, "a caption");
  equal(length(plain), 1000);
  // A loop is the longest take, 1 s at half the speed, and 3 s to read it.
  ok(!/dur="(?!5\.00s)/.test(svg));
  ok(svg.includes(">&lt;two<animate"), "its blank is not drawn");
  deepEqual([...svg.matchAll(/keyTimes="0;([\d.]+)"/g)].map(([, at]) => Number(at)), [
    1e-4,
    0.2,
    0.4,
    0.4,
    1e-4,
    0.1,
  ]);
  ok(svg.includes("3 tokens in 1.00 s<") && svg.includes("3 tokens in 0.25 s, 1 rounds of"));
});

Deno.test("takes with different texts are not drawn", () => {
  throws(() => draw([plain, { ...plain, pieces: [{ text: "Two", at: 0 }] }], 2, ""), /differ/);
});

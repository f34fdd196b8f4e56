import assert from "node:assert/strict";
import {
  REASONING_MARKS,
  type ReasoningParts,
  reasoningStream,
  type SeparatedPiece,
} from "../../src/text/reasoning.ts";
import { scanned } from "../scanned.ts";

const [marks] = REASONING_MARKS;
const THINK: ReasoningParts = { marks, openings: [] };
const ANSWER = { ...THINK, answer: { open: "<answer>", close: "</answer>" } };
const CHANNELS = { marks: undefined, openings: [] };
const HARMONY: ReasoningParts = {
  ...CHANNELS,
  channels: { name: "harmony", start: 1, message: 2 },
};
const GLIMMER: ReasoningParts = {
  ...CHANNELS,
  channels: { name: "glimmer", start: 1, message: 2 },
};

/** Places of an output at which empty lines are held back. */
const PLACES: readonly (readonly [string, ReasoningParts, string])[] = [
  ["before reasoning", THINK, ""],
  ["in reasoning", THINK, "<think>a"],
  ["behind reasoning", THINK, "<think>a</think>"],
  ["before an answer's mark", ANSWER, ""],
  ["in an answer", ANSWER, "<answer>a"],
  ["behind an answer", ANSWER, "<answer>a</answer>"],
  ["before a header", HARMONY, ""],
  ["at the beginning of a body that may be a call", GLIMMER, " to=user<|message|>"],
];

for (const [place, parts, before] of PLACES) {
  Deno.test(`a model that writes empty lines only is read in linear time, ${place}`, () => {
    const read = (lines: number) => {
      const pieces: SeparatedPiece[] = [];
      const count = scanned(() => {
        const stream = reasoningStream(parts, []);
        pieces.push(...stream.push(before));
        for (let n = 0; n < lines; n++) pieces.push(...stream.push("\n"));
        pieces.push(...stream.push("b"), ...stream.end());
      });
      return { count, text: pieces.map(({ text }) => text).join("") };
    };
    const [few, many] = [read(2000), read(4000)];
    assert.ok(many.count < 2.5 * few.count, `${few.count}, then ${many.count} characters`);
    const whole = reasoningStream(parts, []);
    const pieces = [...whole.push(`${before}${"\n".repeat(2000)}b`), ...whole.end()];
    assert.equal(few.text, pieces.map(({ text }) => text).join(""));
  });
}

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { channelsOf } from "../../src/text/channels.ts";
import {
  bodyStopScanner,
  joinedPieces,
  partReasoning,
  reasoningCounter,
  type ReasoningParts,
  reasoningStream,
  type SeparatedPiece,
} from "../../src/text/reasoning.ts";

const [START, MESSAGE] = [6, 8];
const NO_MARKS = { marks: undefined, openings: [] };
const HARMONY: ReasoningParts = {
  ...NO_MARKS,
  channels: { name: "harmony", start: START, message: MESSAGE },
};
const GLIMMER: ReasoningParts = {
  ...NO_MARKS,
  channels: { name: "glimmer", start: START, message: MESSAGE },
};

/** The prompt ends with the role of an answer, and with an answer's header. */
const ASKED = [START, 1, MESSAGE, 2, START, 1];
const ANSWERED = [...ASKED, 3, MESSAGE, 4];

const CALL = "<|channel|>commentary to=functions.get_weather";

/** Outputs with their reasoning and text. The first ones are from harmony's documentation. */
const CASES: readonly (readonly [string, ReasoningParts, string, string, string])[] = [
  [
    "analysis, then the answer",
    HARMONY,
    "<|channel|>analysis<|message|>2+2 is 4.<|end|>" +
    "<|start|>assistant<|channel|>final<|message|>2 + 2 = 4.<|return|>",
    "2+2 is 4.",
    "2 + 2 = 4.",
  ],
  [
    "what decoding leaves of it",
    HARMONY,
    "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b",
    "a",
    "b",
  ],
  [
    "a call, its recipient behind the channel",
    HARMONY,
    "<|channel|>analysis<|message|>Need to use function get_weather.<|end|><|start|>assistant" +
    `${CALL} <|constrain|>json<|message|>{"location":"San Francisco"}<|call|>`,
    "Need to use function get_weather.",
    `${CALL}<|message|>{"location":"San Francisco"}<|call|>`,
  ],
  [
    "a call, its recipient before the channel",
    HARMONY,
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant to=functions.get_weather" +
    '<|channel|>commentary json<|message|>{"location":"San Francisco"}<|call|>',
    "a",
    `${CALL}<|message|>{"location":"San Francisco"}<|call|>`,
  ],
  [
    "a call at once",
    HARMONY,
    " to=functions.get_weather<|channel|>analysis<|message|>{}<|call|>",
    "",
    `${CALL}<|message|>{}<|call|>`,
  ],
  [
    "a recipient without its name space",
    HARMONY,
    "<|channel|>commentary to=get_weather json<|message|>{}",
    "",
    `${CALL}<|message|>{}`,
  ],
  [
    "a message to the user",
    HARMONY,
    "<|channel|>final to=user<|message|>Hi<|return|>",
    "",
    "Hi",
  ],
  [
    "a preamble is text",
    HARMONY,
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>" +
    "**Action plan**:\n1. look<|end|><|start|>assistant" +
    `${CALL}<|constrain|>json<|message|>{}<|call|>`,
    "a",
    `**Action plan**:\n1. look\n\n${CALL}<|message|>{}<|call|>`,
  ],
  [
    "two of each",
    HARMONY,
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>" +
    "<|start|>assistant<|channel|>commentary<|message|>c<|end|>" +
    "<|start|>assistant<|channel|>final<|message|>d<|return|>",
    "a\n\nb",
    "c\n\nd",
  ],
  ["without a header", HARMONY, "Hi <|there|>", "", "Hi <|there|>"],
  ["a mark in text", HARMONY, "<|channel|>final<|message|>a <|start|>user", "", "a <|start|>user"],
  [
    "a call without a body",
    HARMONY,
    `<|channel|>analysis<|message|>a<|start|>assistant${CALL}<|message|>`,
    "a",
    `${CALL}<|message|>`,
  ],
  ["a cut header", HARMONY, "<|channel|>ana", "", ""],
  ["a cut mark", HARMONY, "<|channel|>analysis<|message|>a<|en", "a<|en", ""],
  ["an empty message", HARMONY, "<|channel|>final<|message|><|return|>", "", ""],
  ["nothing", HARMONY, "", "", ""],
  [
    "to itself, to the user",
    GLIMMER,
    " to=self<|message|>I think.<|eom|><|start|>assistant to=user<|message|>Hello!<|eot|>",
    "I think.",
    "Hello!",
  ],
  ["no recipient", GLIMMER, "<|message|>Hello!<|eot|>", "", "Hello!"],
  [
    "to a function",
    GLIMMER,
    ' to=self<|message|>a<|eom|><|start|>assistant to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n' +
    "</atem:invoke>\n</atem:function_calls><|eot|>",
    "a",
    '<|message|><atem:function_calls>\n<atem:invoke name="f">\n</atem:invoke>\n</atem:function_calls>',
  ],
  [
    "ends within a call's arguments are text, and its recipient may be wrong",
    GLIMMER,
    " to=user<|message|>\n<atem:function_calls>a <|eot|> b <|start|>assistant to=user" +
    "</atem:function_calls><|eom|><|start|>assistant to=user<|message|>Done.<|eot|>",
    "",
    "<|message|><atem:function_calls>a <|eot|> b <|start|>assistant to=user</atem:function_calls>" +
    "\n\nDone.",
  ],
  [
    "calls that an answer quotes",
    GLIMMER,
    " to=user<|message|>Write <atem:function_calls> <|eot|>",
    "",
    "Write <atem:function_calls> ",
  ],
  ["the beginning of a call", GLIMMER, " to=user<|message|><atem:", "", "<atem:"],
];

for (const [name, parts, output, reasoning, text] of CASES) {
  Deno.test(`channels of ${parts.channels?.name}: ${name}, however it is cut`, () => {
    assert.deepEqual(partReasoning(output, parts, ASKED), { reasoning, text });
    const read = (pieces: readonly string[]) => {
      const stream = reasoningStream(parts, ASKED);
      return joinedPieces([...pieces.flatMap((piece) => stream.push(piece)), ...stream.end()]);
    };
    assert.deepEqual(read([...output]), { reasoning, text });
    for (let at = 1; at < output.length; at++) {
      assert.deepEqual(read([output.slice(0, at), output.slice(at)]), { reasoning, text });
    }
  });
}

/** Pieces with neighbours of the same kind joined. */
function inOrder(pieces: readonly SeparatedPiece[]): SeparatedPiece[] {
  const joined: SeparatedPiece[] = [];
  for (const { kind, text } of pieces) {
    const last = joined.at(-1);
    if (last?.kind === kind) joined[joined.length - 1] = { kind, text: last.text + text };
    else joined.push({ kind, text });
  }
  return joined;
}

Deno.test("channels: messages within one piece keep their order", () => {
  const message = (header: string, body: string) => `<|channel|>${header}<|message|>${body}`;
  const output = [message("commentary", "a"), message("analysis", "b"), message("final", "c")]
    .join("<|start|>assistant");
  assert.deepEqual(inOrder(reasoningStream(HARMONY, ASKED).push(output)), [
    { kind: "text", text: "a" },
    { kind: "reasoning", text: "b" },
    { kind: "text", text: "\n\nc" },
  ]);
});

Deno.test("channels: what the prompt has begun to answer goes on as text", () => {
  const output = "and more.<|return|>";
  assert.deepEqual(partReasoning(output, HARMONY, ANSWERED), { reasoning: "", text: "and more." });
});

Deno.test("channels: stop texts are found in bodies, not in headers, however the output is cut", () => {
  const analysis = "<|channel|>analysis<|message|>";
  const final = "<|start|>assistant<|channel|>final<|message|>";
  const think = " to=self<|message|>";
  const say = "<|start|>assistant to=user<|message|>";
  const cases = [
    [
      HARMONY,
      `${analysis}a${final}b a final c`,
      ["final", "assistant"],
      `${analysis}a${final}b a `,
    ],
    [HARMONY, `${analysis}the analysis${final}b`, ["analysis"], `${analysis}the `],
    // Neither across messages.
    [HARMONY, `${analysis}a${final}b`, ["ab", "a<|start|>"], `${analysis}a${final}b`],
    [HARMONY, "no channel", ["channel"], "no "],
    [HARMONY, `${CALL}<|message|>{}`, ["get_weather", "}"], `${CALL}<|message|>{`],
    [GLIMMER, `${think}a${say}Hello, user`, ["user", "self"], `${think}a${say}Hello, `],
    [
      GLIMMER,
      `${think}a${say}<atem:function_calls>user`,
      ["user"],
      `${think}a${say}<atem:function_calls>`,
    ],
    [GLIMMER, `${think}a${say}b`, ["user", "self"], `${think}a${say}b`],
    [
      GLIMMER,
      `${think}a<|start|>assistant to=us`,
      ["assistant"],
      `${think}a<|start|>assistant to=us`,
    ],
  ] as const;
  for (const [parts, output, stops, text] of cases) {
    const read = (...pieces: readonly string[]) => {
      const scanner = bodyStopScanner(stops, parts, ASKED);
      return pieces.map((piece) => scanner.push(piece).text).join("") + scanner.end();
    };
    assert.equal(read(output), text);
    assert.equal(read(...output), text);
    for (let at = 1; at < output.length; at++) {
      assert.equal(read(output.slice(0, at), output.slice(at)), text);
    }
    const { stop } = bodyStopScanner(stops, parts, ASKED).push(output);
    assert.equal(stop !== undefined, text !== output);
  }
});

Deno.test("channels: the tokens of reasoning are counted, headers included", () => {
  const count = (...tokens: readonly string[]) => {
    const counter = reasoningCounter(HARMONY, ASKED);
    for (const token of tokens) counter.push(token);
    return counter.tokens;
  };
  const analysis = ["<|channel|>", "analysis", "<|message|>", "a", "b"];
  const final = ["<|start|>", "assistant", "<|channel|>", "final", "<|message|>", "c", "d"];
  assert.equal(count(...analysis), 5);
  // The reasoning ends at the two tokens that begin the next message.
  assert.equal(count(...analysis, ...final), 7);
  assert.equal(count(...final.slice(2)), 0);
  assert.equal(count(...analysis, ...final, "<|start|>", "assistant", ...analysis), 7 + 6);
});

Deno.test("channels: a template is known by its headers", () => {
  assert.equal(channelsOf("<|start|>assistant<|channel|>final<|message|>"), "harmony");
  assert.equal(channelsOf("'<|start|>assistant to=self<|message|>'"), "glimmer");
  assert.equal(channelsOf("<|im_start|>assistant"), undefined);
});

const PARTS = [
  ...["<|start|>", "<|start|>assistant", "<|channel|>", "<|message|>", "<|end|>", "<|call|>"],
  ...[
    "analysis",
    "final",
    "commentary",
    " to=",
    "functions.f",
    "self",
    "user",
    "json",
    "assistant",
  ],
  ...["<|eom|>", "<|eot|>", "<atem:function_calls>", "</atem:function_calls>", "<", "|", " ", "a"],
];

Deno.test("channels: whatever an output is, it does not matter how it is cut", () => {
  const outputs = fc.array(fc.constantFrom(...PARTS), { maxLength: 25 });
  fc.assert(
    fc.property(fc.constantFrom(HARMONY, GLIMMER), outputs, fc.nat(), (parts, said, at) => {
      const output = said.join("");
      // No stop text is there, so that all of the output comes through.
      const scanner = bodyStopScanner(["none"], parts, ASKED);
      assert.equal(scanner.push(output).text + scanner.end(), output);
      const read = (...pieces: readonly string[]) => {
        const stream = reasoningStream(parts, ASKED);
        return inOrder([...pieces.flatMap((piece) => stream.push(piece)), ...stream.end()]);
      };
      const whole = read(output);
      const cut = at % (output.length + 1);
      assert.deepEqual(read(...output), whole);
      assert.deepEqual(read(output.slice(0, cut), output.slice(cut)), whole);
    }),
    { numRuns: 300 },
  );
});

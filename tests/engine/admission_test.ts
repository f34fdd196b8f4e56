import assert from "node:assert/strict";
import { checkRequest } from "../../src/engine/schedule/admission.ts";
import { cellsAtEnd } from "../../src/engine/schedule/sequence_pages.ts";
import type { EngineSizes } from "../../src/engine/device/buffers.ts";
import type { GenerateRequest } from "../../src/engine/schedule/events.ts";
import { UsageError } from "../../src/errors.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";

/** Rounds of at most 4 tokens; 6 pages of 16 cells. */
const CAPACITY: EngineSizes = {
  batch: 2,
  shapes: chains([0, 1, 3]),
  prefillRows: 256,
  contextLength: 100,
  pages: 6,
};
const OUTPUTS = { name: "toy", contextLength: 100, vocabSize: 2048 };
const REQUEST: GenerateRequest = {
  promptIds: [5, 6, 7],
  sampling: GREEDY,
  maxTokens: 20,
  stop: [],
  ignoreEos: false,
  numSteps: 3,
};

function check(request: Partial<GenerateRequest>, capacity: Partial<EngineSizes> = {}): void {
  checkRequest({ ...CAPACITY, ...capacity }, OUTPUTS, { ...REQUEST, ...request });
}

/** A prompt of zeros with `id` at `position`. */
function prompt(length: number, position = 0, id = 0): number[] {
  return Array.from({ length }, (_, i) => i === position ? id : 0);
}

type Row = readonly [what: string, request: Partial<GenerateRequest>, why: string];

function noToken(id: number, position: number): Row {
  return [
    `token id ${id} at position ${position}`,
    { promptIds: prompt(9, position, id) },
    `the prompt has token id ${id} at position ${position}, "toy" has ids 0 to 2047`,
  ];
}

const REFUSED: readonly Row[] = [
  ["no prompt", { promptIds: [] }, "the prompt is empty"],
  [
    "a prompt that fills the context",
    { promptIds: prompt(100) },
    'the prompt has 100 tokens, the context of "toy" holds 100',
  ],
  noToken(2048, 0),
  noToken(2048, 8),
  noToken(-1, 3),
  noToken(1.5, 1),
  noToken(NaN, 2),
  noToken(Infinity, 2),
  noToken(2 ** 32, 4),
  noToken(2 ** 32 + 5, 4),
  [
    "the first of several ids",
    { promptIds: [1, 3000, 2, -7] },
    'the prompt has token id 3000 at position 1, "toy" has ids 0 to 2047',
  ],
  ["no token to come", { maxTokens: 0 }, "max tokens is 0, it is 1 or more"],
  ["max tokens that are no number", { maxTokens: NaN }, "max tokens is NaN, it is 1 or more"],
  ["half a token", { maxTokens: 1.5 }, "max tokens is 1.5, it is 1 or more"],
  ["endless tokens", { maxTokens: Infinity }, "max tokens is Infinity, it is 1 or more"],
  ...([
    ["temperature", NaN, "temperature is NaN, it is 0 to 100"],
    ["temperature", -1, "temperature is -1, it is 0 to 100"],
    ["temperature", Infinity, "temperature is Infinity, it is 0 to 100"],
    ["temperature", "1", 'temperature is "1", it is 0 to 100'],
    ["temperature", undefined, "temperature is undefined, it is 0 to 100"],
    ["topK", 2.5, "top-k is 2.5, it is a whole number, 0 to 1000000"],
    ["topK", -1, "top-k is -1, it is 0 to 1000000"],
    ["topP", 0, "top-p is 0, it is more than 0 and at most 1"],
    ["topP", NaN, "top-p is NaN, it is more than 0 and at most 1"],
    ["minP", 1.1, "min-p is 1.1, it is 0 to 1"],
    ["seed", -1, "seed is -1, it is 0 to 4294967295"],
    ["seed", 0.5, "seed is 0.5, it is a whole number, 0 to 4294967295"],
    ["seed", 2 ** 32, "seed is 4294967296, it is 0 to 4294967295"],
    [
      "repetitionPenalty",
      0,
      "the repetition penalty is 0, it is more than 0 and at most 10",
    ],
    [
      "repetitionPenalty",
      1e30,
      "the repetition penalty is 1e+30, it is more than 0 and at most 10",
    ],
    ["frequencyPenalty", 3, "the frequency penalty is 3, it is -2 to 2"],
    ["presencePenalty", NaN, "the presence penalty is NaN, it is -2 to 2"],
    ["logitBias", { 5: NaN }, "the bias of token id 5 is NaN, it is -100 to 100"],
    ["logitBias", { 5: "abc" }, 'the bias of token id 5 is "abc", it is -100 to 100'],
  ] as const).map(([key, value, why]): Row => [
    `${key} ${JSON.stringify(value)} ${why.length}`,
    { sampling: { ...GREEDY, [key]: value } },
    why,
  ]),
  ["logprobs that are no number", { logprobs: NaN }, "logprobs is NaN, it is 0 to 20"],
  [
    "more cells than there are pages for",
    { promptIds: prompt(60), maxTokens: 40 },
    "prompt and output may take 108 tokens of keys and values, --max-kv-tokens is 96",
  ],
];

for (const [what, request, why] of REFUSED) {
  Deno.test(`admission: refuses ${what}`, () => {
    assert.throws(() => check(request), { name: "UsageError", message: `Cannot generate: ${why}` });
  });
}

Deno.test("admission: refuses more draft steps than rounds have", () => {
  assert.throws(
    () => check({ numSteps: 4 }),
    { name: "UsageError", message: "Cannot generate with 4 draft steps: rounds have at most 3" },
  );
});

Deno.test("admission: refuses steps that are no number, and any but 0 where there are trees alone", () => {
  const refused = (numSteps: number, capacity: Partial<EngineSizes> = {}) =>
    assert.throws(() => check({ numSteps }, capacity), (error) => {
      assert.ok(error instanceof UsageError);
      return error.message.startsWith(`Cannot generate with ${numSteps} draft steps: `);
    });
  for (const numSteps of [NaN, -1, 0.5, Infinity]) refused(numSteps);
  const trees = { shapes: [{ depth: 4, width: 2, rows: 8 }] };
  check({ numSteps: 0 }, trees);
  refused(4, trees);
});

Deno.test("admission: refuses biases of what is no token, and stop texts without a character", () => {
  const biased = (id: string) => check({ sampling: { ...GREEDY, logitBias: { [id]: 1 } } });
  for (const id of ["abc", "-1", "1.5", "2048", ""]) {
    assert.throws(
      () => biased(id),
      { name: "UsageError", message: `Cannot bias token id ${id}: "toy" has ids 0 to 2047` },
    );
  }
  biased("2047");
  assert.throws(() => check({ stop: ["a", ""] }), {
    message: 'Cannot stop at "": a stop text has one character or more',
  });
});

Deno.test("admission: takes what lies on the edges", () => {
  check({ promptIds: [0, 2047] });
  check({ maxTokens: 1, numSteps: 0 });
  check({ promptIds: prompt(68), maxTokens: 20 }); // 88 tokens and twice 4 cells: all 96
  assert.throws(() => check({ promptIds: prompt(69), maxTokens: 20 }), /may take 97 tokens/);
  check({ promptIds: prompt(99), maxTokens: 1000 }, { pages: 7 }); // the context bounds it
});

Deno.test("admission: cells at the end are those of prompt and output within the context", () => {
  assert.equal(cellsAtEnd(CAPACITY, REQUEST), 23 + 2 * 4);
  assert.equal(cellsAtEnd({ ...CAPACITY, shapes: chains([0]) }, REQUEST), 23 + 2);
  assert.equal(cellsAtEnd(CAPACITY, { ...REQUEST, maxTokens: 5000 }), 100 + 2 * 4);
});

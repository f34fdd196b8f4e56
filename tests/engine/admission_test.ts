import assert from "node:assert/strict";
import { checkRequest } from "../../src/engine/schedule/admission.ts";
import { cellsAtEnd } from "../../src/engine/schedule/sequence_pages.ts";
import type { Capacity } from "../../src/engine/device/buffers.ts";
import type { GenerateRequest } from "../../src/engine/schedule/events.ts";
import { UsageError } from "../../src/errors.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";

/** Rounds of at most 4 tokens; 6 pages of 16 cells. */
const CAPACITY: Capacity = {
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

function check(request: Partial<GenerateRequest>, capacity: Partial<Capacity> = {}): void {
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
  ["no token to come", { maxTokens: 0 }, "max tokens is 0"],
  [
    "more cells than there are pages for",
    { promptIds: prompt(60), maxTokens: 40 },
    "prompt and output may take 108 tokens of keys and values, --max-kv-tokens is 96",
  ],
];

for (const [what, request, why] of REFUSED) {
  Deno.test(`admission: refuses ${what}`, () => {
    assert.throws(() => check(request), new UsageError(`Cannot generate: ${why}`));
  });
}

Deno.test("admission: refuses more draft steps than the deepest tier has", () => {
  assert.throws(
    () => check({ numSteps: 4 }),
    new UsageError("Cannot generate with 4 draft steps: the deepest tier has 3"),
  );
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

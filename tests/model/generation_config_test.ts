import assert from "node:assert/strict";
import {
  type GenerationDefaults,
  generationDefaults,
  generationText,
} from "../../src/model/config/generation_config.ts";

const CASES: readonly (readonly [string, unknown, GenerationDefaults, string?])[] = [
  ["no file", undefined, {}],
  ["nothing of sampling", { eos_token_id: 1, use_cache: true }, {}],
  [
    "Qwen3",
    { do_sample: true, temperature: 0.6, top_k: 20, top_p: 0.95 },
    { temperature: 0.6, topK: 20, topP: 0.95 },
    "temperature 0.6, top_k 20, top_p 0.95",
  ],
  ["Gemma 3: no temperature is 1", { do_sample: true, top_k: 64, top_p: 0.95 }, {
    temperature: 1,
    topK: 64,
    topP: 0.95,
  }],
  ["sampling without do_sample", { top_p: 0.9 }, { temperature: 1, topP: 0.9 }],
  ["greedy", { do_sample: false, temperature: 0.6 }, { temperature: 0 }, "temperature 0"],
  ["null is absent", { temperature: null, min_p: null }, {}],
  ["all tokens", { temperature: 0.5, top_k: -1, min_p: 0.1 }, {
    temperature: 0.5,
    topK: 0,
    minP: 0.1,
  }],
  ["a penalty", { repetition_penalty: 1.05 }, { repetitionPenalty: 1.05 }],
];

for (const [name, json, expected, text] of CASES) {
  Deno.test(`generation_config.json: ${name}`, () => {
    const defaults = generationDefaults(json, assert.fail);
    assert.deepEqual(defaults, expected);
    if (text !== undefined) assert.equal(generationText(defaults), text);
  });
}

Deno.test("generation_config.json: what cannot be is told and not used", () => {
  const warnings: string[] = [];
  const json = { temperature: "hot", top_p: 0, top_k: 1.5, min_p: 0.1 };
  const defaults = generationDefaults(json, (line) => warnings.push(line));
  assert.deepEqual(defaults, { temperature: 1, minP: 0.1 });
  assert.deepEqual(warnings, [
    'generation_config.json has temperature "hot"; it is not used',
    "generation_config.json has top_k 1.5; it is not used",
    "generation_config.json has top_p 0; it is not used",
  ]);
});

Deno.test("generation_config.json: one that says nothing has no text", () => {
  assert.equal(generationText({}), undefined);
});

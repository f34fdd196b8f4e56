import assert from "node:assert/strict";
import pairs from "../../presets/drafts.json" with { type: "json" };
import { knownDraft, unknownDraft } from "../../src/cli/open/drafts.ts";
import { parsePlace } from "../../src/hub/names.ts";

Deno.test("the table holds names of the hub, a source each, no pair twice", () => {
  const seen = new Set<string>();
  for (const { target, draft, algorithm, source } of pairs) {
    for (const name of [target, draft]) assert.equal(parsePlace(name, () => false).kind, "hub");
    assert.match(algorithm, /^EAGLE3?$/);
    assert.notEqual(source, "");
    assert.ok(!seen.has(`${target} ${draft}`), `${target} ${draft}`);
    seen.add(`${target} ${draft}`);
  }
});

Deno.test("auto picks the first draft of the model, in any case of its name", () => {
  const model = "Qwen/Qwen3-8B";
  const draft = "AngelSlim/Qwen3-8B_eagle3";
  assert.deepEqual(knownDraft(model, { model }), { draft });
  assert.deepEqual(knownDraft("qwen/qwen3-8b", { model }), { draft });
  const llama = "meta-llama/Llama-3.1-8B-Instruct";
  assert.deepEqual(
    knownDraft(llama, { model: llama, algorithm: "EAGLE" }),
    { draft: "yuhuili/EAGLE-LLaMA3.1-Instruct-8B" },
  );
});

Deno.test("auto without a match says how to name a draft", () => {
  const end = "; name one with --draft org/name or --draft FOLDER, or go without by --draft none " +
    "(presets/drafts.json lists the known ones)";
  const cases: [string | undefined, { model: string; algorithm?: string }, string][] = [
    ["org/new", { model: "org/new" }, 'no draft for "org/new" is known'],
    [undefined, { model: "./x" }, 'the folder "./x" does not say which model it is'],
    [
      "Qwen/Qwen3-8B",
      { model: "Qwen/Qwen3-8B", algorithm: "EAGLE" },
      'no EAGLE draft for "Qwen/Qwen3-8B" is known',
    ],
  ];
  for (const [target, choice, why] of cases) {
    assert.deepEqual(knownDraft(target, choice), { why });
    assert.equal(unknownDraft(why).message, `Cannot use "--draft auto": ${why}${end}`);
  }
});

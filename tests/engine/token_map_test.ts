// FR-Spec: an EAGLE-1 draft that scores some tokens only.
import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { type LocalOptions, openEngine } from "./open.ts";
import { type GenerateResult, resultOf } from "../../src/engine/schedule/events.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";

const CONTENT = "Count from 1 to 20.";

async function generated(options: LocalOptions): Promise<GenerateResult & { warnings: string[] }> {
  const warnings: string[] = [];
  using engine = await openEngine({
    ...options,
    hooks: { plan: statically(3), onWarning: (line) => void warnings.push(line), ...options.hooks },
  });
  const promptIds = engine.text.encodePrompt({ messages: [{ role: "user", content: CONTENT }] });
  const request = { promptIds, sampling: GREEDY, maxTokens: 60, stop: [], ignoreEos: false };
  return { ...await resultOf(engine.submit(request)), warnings };
}

async function withMap<T>(
  ids: readonly number[],
  use: (tokenMap: string) => Promise<T>,
): Promise<T> {
  const tokenMap = await Deno.makeTempFile({ prefix: "eyrie-test-", suffix: ".json" });
  try {
    await Deno.writeTextFile(tokenMap, JSON.stringify(ids));
    return await use(tokenMap);
  } finally {
    await Deno.remove(tokenMap);
  }
}

Deno.test("token map: all tokens in another order draft what the whole head drafts", async () => {
  const whole = await generated({ model: { algorithm: "EAGLE" } });
  const ids = Array.from({ length: 2048 }, (_, i) => (i * 5 + 3) % 2048);
  await withMap(ids, async (tokenMap) => {
    const mapped = await generated({ model: { algorithm: "EAGLE", tokenMap } });
    assert.deepEqual(mapped.drafts, whole.drafts);
    assert.equal(mapped.text, whole.text);
    assert.deepEqual(mapped.warnings, []);
  });
});

Deno.test("token map: only its tokens are drafted, and the text stays; trees too", async () => {
  const whole = await generated({ model: { algorithm: "EAGLE" } });
  // Every second token of the text, and some others.
  const ids = [
    ...new Set([
      ...whole.outputIds.filter((_, i) => i % 2 === 0),
      ...Array.from({ length: 400 }, (_, i) => 3 * i + 7),
    ]),
  ];
  await withMap(ids, async (tokenMap) => {
    for (const tier of [3, treeNamed("3:4:12")]) {
      const mapped = await generated({
        model: { algorithm: "EAGLE", tokenMap },
        hooks: { plan: statically(tier) },
      });
      assert.equal(mapped.text, whole.text);
      const { accepted_tokens } = mapped.speculative;
      assert.ok(accepted_tokens > 0);
      assert.ok(mapped.drafts.flat().every((id) => ids.includes(id)));
    }
  });
});

Deno.test("token map: EAGLE-3 has its own, so it is not used, with a warning", async () => {
  await withMap([1, 2, 3], async (tokenMap) => {
    const { warnings } = await generated({ model: { algorithm: "EAGLE3", tokenMap } });
    assert.match(
      warnings[0] ?? "",
      /^the token map ".*" is not used: it is for EAGLE, and the draft is EAGLE3$/,
    );
  });
});

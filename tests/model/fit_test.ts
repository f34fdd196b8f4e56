import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import { checkFit, misfit } from "../../src/model/config/fit.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { draft, EAGLE1, EAGLE3, target } from "./drafts.ts";

Deno.test("a draft made for the target fits", () => {
  for (const shapes of [EAGLE1, EAGLE3]) {
    assert.equal(misfit(parseDraftConfig(draft(shapes), target()), target()), undefined);
  }
});

for (
  const [what, change, message] of [
    ["hidden size", { hidden_size: 32 }, /hidden states of 16, the target has 32/],
    ["vocabulary", { vocab_size: 48 }, /vocabulary has 40 tokens, the target's 48/],
    ["layers", { num_hidden_layers: 2 }, /input of layer 2, the target has 2 layers/],
  ] as const
) {
  Deno.test(`a draft for another ${what} does not fit, and both are named`, () => {
    const other = target(change);
    const config = parseDraftConfig(draft(EAGLE3), other);
    const check = (): void => checkFit({ name: "toy", config }, { name: "big", config: other });
    assert.throws(check, (error: unknown) => {
      assert.ok(error instanceof UsageError);
      assert.ok(error.message.startsWith('Cannot use draft "toy" with target "big": '));
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("a draft narrower than the target cannot share its embedding", () => {
  const shapes = { ...EAGLE3, "fc.weight": [16, 96] };
  const wide = target({ hidden_size: 32, head_dim: 16 });
  const shared = parseDraftConfig(draft(shapes, { target_hidden_size: 32 }), wide);
  assert.match(misfit(shared, wide) ?? "", /shares the target's embedding, but its hidden size/);
  const own = { ...shapes, "embed_tokens.weight": [40, 16] };
  const config = parseDraftConfig(draft(own, { target_hidden_size: 32 }), wide);
  assert.equal(misfit(config, wide), undefined);
});

Deno.test("layers with a state are no standalone draft's", () => {
  const path = new URL("../golden/lfm2/config.json", import.meta.url);
  const config = parseModelConfig("lfm", JSON.parse(Deno.readTextFileSync(path)), undefined);
  const algorithm = "STANDALONE";
  const alone = { algorithm, layer: config, draftVocabSize: config.vocabSize } as const;
  assert.match(misfit(alone, target()) ?? "", /state of fixed size/);
});

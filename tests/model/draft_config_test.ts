import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import { checkTensors, draftTensors } from "../../src/model/weights/tensors.ts";
import { draft, EAGLE1, EAGLE3, renamed, target, without } from "./drafts.ts";
import { denseLayer } from "./dense_layer.ts";

Deno.test("an EAGLE-3 head as its authors publish it, under a Llama's name", () => {
  const checkpoint = draft(EAGLE3, { num_hidden_layers: 40, draft_vocab_size: 12 });
  const { layer, ...config } = parseDraftConfig(checkpoint, target());
  assert.deepEqual(config, {
    algorithm: "EAGLE3",
    targetHiddenSize: 16,
    draftVocabSize: 12,
    fcBias: false,
    auxLayers: [2, 3, 3],
    ownEmbedding: false,
    ownHead: true,
    reducedVocab: true,
    normBeforeResidual: false,
    inputNorms: "none",
    normOutput: false,
    prefix: "",
    fc: "fc",
    layerPrefix: "midlayer",
  });
  assert.equal(layer.layers.length, 1);
  assert.deepEqual(layer.ropes, [{ theta: 10000, width: 8, scaling: { kind: "default" } }]);
  assert.deepEqual(checkTensors(checkpoint, draftTensors({ layer, ...config })), []);
});

Deno.test("a draft layer has biases of q, k and v where there are tensors of them", () => {
  const shapes = {
    ...EAGLE1,
    "layers.0.self_attn.q_proj.bias": [16],
    "layers.0.self_attn.k_proj.bias": [8],
    "layers.0.self_attn.v_proj.bias": [8],
  };
  const checkpoint = draft(shapes);
  const config = parseDraftConfig(checkpoint, target());
  assert.equal(denseLayer(config.layer.layers[0]).attention.bias, true);
  assert.deepEqual(checkTensors(checkpoint, draftTensors(config)), []);
});

Deno.test("an EAGLE-1 head, with and without the bias of fc", () => {
  for (const [shapes, fcBias] of [[EAGLE1, true], [without(EAGLE1, "fc.bias"), false]] as const) {
    const checkpoint = draft(shapes, { bias: true });
    const config = parseDraftConfig(checkpoint, target());
    assert.equal(config.algorithm, "EAGLE");
    assert.equal(config.fcBias, fcBias);
    assert.deepEqual(config.auxLayers, []);
    assert.equal(config.layerPrefix, "layers.0");
    assert.deepEqual([config.ownHead, config.draftVocabSize], [false, 40]);
    assert.deepEqual(checkTensors(checkpoint, draftTensors(config)), []);
  }
});

Deno.test("other names of the same tensors: layers.0, a prefix, an own embedding", () => {
  const layers0 = renamed(EAGLE3, (name) => name.replace("midlayer", "layers.0"));
  const prefixed = renamed(
    { ...EAGLE3, "embed_tokens.weight": [40, 16] },
    (name) => /^(lm_head|d2t|t2d)/.test(name) ? name : `model.${name}`,
  );
  for (
    const [shapes, prefix, layerPrefix] of [
      [layers0, "", "layers.0"],
      [prefixed, "model.", "midlayer"],
    ] as const
  ) {
    const checkpoint = draft(shapes);
    const config = parseDraftConfig(checkpoint, target());
    assert.deepEqual([config.prefix, config.layerPrefix], [prefix, layerPrefix]);
    assert.equal(config.ownEmbedding, prefix !== "");
    assert.deepEqual(checkTensors(checkpoint, draftTensors(config)), []);
  }
});

Deno.test("a full vocabulary needs no d2t, and may share the target's head", () => {
  const shapes = without(without(EAGLE3, "d2t"), "t2d");
  const own = parseDraftConfig(draft({ ...shapes, "lm_head.weight": [40, 16] }), target());
  assert.deepEqual([own.ownHead, own.reducedVocab, own.draftVocabSize], [true, false, 40]);
  const shared = parseDraftConfig(draft(without(shapes, "lm_head.weight")), target());
  assert.deepEqual([shared.ownHead, shared.draftVocabSize], [false, 40]);
});

Deno.test("a tied head is the target's only when embedding and head are one there", () => {
  const checkpoint = draft(without(without(EAGLE3, "d2t"), "lm_head.weight"), {
    tie_word_embeddings: true,
  });
  const tied = parseDraftConfig(checkpoint, target({ tie_word_embeddings: true }));
  assert.equal(tied.ownHead, false);
  assert.throws(() => parseDraftConfig(checkpoint, target()), /no tensor lm_head.weight/);
});

Deno.test("auxiliary layers: SGLang's ids name outputs, speculators' ids inputs", () => {
  const key = "eagle_aux_hidden_state_layer_ids";
  const sglang = draft(EAGLE3, { eagle_config: { [key]: [0, 2, 4] } });
  assert.deepEqual(parseDraftConfig(sglang, target()).auxLayers, [1, 3, 5]);
  const given = draft(EAGLE3, { [key]: [1, 3, 5] });
  assert.deepEqual(parseDraftConfig(given, target()).auxLayers, [1, 3, 5]);
  const big = parseDraftConfig(draft(EAGLE3), target({ num_hidden_layers: 32 }));
  assert.deepEqual(big.auxLayers, [2, 16, 29]);
});

Deno.test("a rope base that is given stands for the config's", () => {
  const checkpoint = draft(EAGLE3, { rope_theta: 1e6 });
  const theta = (given?: number) =>
    parseDraftConfig(checkpoint, target(), given).layer.ropes[0]?.theta;
  assert.deepEqual([theta(), theta(10_000)], [1e6, 10_000]);
});

Deno.test("a speculators config holds the layer inside", () => {
  const config = {
    architectures: ["Eagle3Speculator"],
    model_type: undefined,
    hidden_size: undefined,
    transformer_layer_config: {
      model_type: "llama",
      hidden_size: 16,
      intermediate_size: 24,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      vocab_size: 40,
    },
    draft_vocab_size: 12,
  };
  const parsed = parseDraftConfig(
    draft(EAGLE3, { ...config, norm_before_residual: true }),
    target(),
  );
  assert.equal(parsed.normBeforeResidual, true);
  assert.throws(
    () => parseDraftConfig(draft(EAGLE3, config), target()),
    /has no norm_before_residual/,
  );
});

for (
  const [what, shapes, config, message] of [
    ["no fc", without(EAGLE3, "fc.weight"), {}, /not an EAGLE draft.*no tensor fc.weight/],
    ["no layer", { "fc.weight": [16, 48] }, {}, /no tensor midlayer.self_attn.q_proj.weight or/],
    ["an odd fc", { ...EAGLE3, "fc.weight": [16, 40] }, {}, /\[16,40\], expected \[16, 32\] for/],
    ["a name against its fc", EAGLE1, { architectures: ["LlamaForCausalLMEagle3"] }, /for EAGLE3/],
    ["an unknown name", EAGLE3, { architectures: ["MedusaModel"] }, /"MedusaModel", known are/],
    ["two layers", { ...EAGLE1, "layers.1.x": [8] }, {}, /more than one layer/],
    ["fc_norm only said", EAGLE3, { fc_norm: true }, /fc_norm true, but there is no fc_norm\.0/],
    [
      "norms that are denied",
      { ...EAGLE3, "input_norm.weight": [48] },
      { norm_before_fc: false },
      /norm_before_fc false, but there is a input_norm/,
    ],
    [
      "both kinds of norms",
      { ...EAGLE3, "input_norm.weight": [48], "fc_norm.0.weight": [16] },
      {},
      /has norm_before_fc and fc_norm, which no EAGLE3 head/,
    ],
    [
      "another kind's norms",
      { ...EAGLE1, "input_norm.weight": [48] },
      {},
      /has norm_before_fc, which no EAGLE head/,
    ],
    ["a norm before the head", { ...EAGLE1, "pre_lm_head_layernorm.weight": [16] }, {}, /pre_lm_h/],
    ["speculators' layernorms", EAGLE1, { layernorms: true }, /layernorms true, expected false/],
    [
      "biases and norms of q and k",
      {
        ...EAGLE1,
        "layers.0.self_attn.q_proj.bias": [16],
        "layers.0.self_attn.q_norm.weight": [8],
      },
      {},
      /has both a bias and norms of q and k/,
    ],
    ["no aux states", EAGLE3, { eagle_config: { use_aux_hidden_state: false } }, /use_aux/],
    ["no d2t", without(EAGLE3, "d2t"), {}, /draft_vocab_size 12 of 40, but .* no tensor d2t/],
    ["no head", without(EAGLE3, "lm_head.weight"), { draft_vocab_size: 12 }, /no tensor lm_head/],
    ["two aux layers", EAGLE3, { eagle_aux_hidden_state_layer_ids: [1, 2] }, /has 2 eagle_aux/],
    ["a bad draft size", EAGLE3, { draft_vocab_size: 41 }, /draft_vocab_size 41/],
  ] as const
) {
  Deno.test(`a draft with ${what} is refused`, () => {
    assert.throws(() => parseDraftConfig(draft(shapes, config), target()), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.ok(error.message.startsWith('Cannot use "toy": '), error.message);
      assert.match(error.message, message);
      return true;
    });
  });
}

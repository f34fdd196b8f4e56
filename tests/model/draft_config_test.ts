import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { checkDraft, checkTensors, draftTensors } from "../../src/model/weights/tensors.ts";
import { safetensorsFiles } from "./draft_formats.ts";
import { draft, EAGLE1, EAGLE3, renamed, target, TARGET_JSON, without } from "./drafts.ts";
import { denseLayer } from "./dense_layer.ts";
import { toyCheckpoint } from "./folders.ts";

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

// Zjcxy-SmartAI/Eagle-Qwen2.5-14B-Instruct names the second.
for (const name of ["LlamaForCausalLMEagle", "Qwen2ForCausalLMEagle"]) {
  Deno.test(`an EAGLE-1 head under the name of SGLang's ${name}`, () => {
    const { algorithm } = parseDraftConfig(draft(EAGLE1, { architectures: [name] }), target());
    assert.equal(algorithm, "EAGLE");
    assert.throws(() => parseDraftConfig(draft(EAGLE3, { architectures: [name] }), target()), {
      message: /expected \[16, 32\] for EAGLE$/,
    });
  });
}

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

Deno.test("auxiliary layers: lists that begin with 1 in eagle_config name outputs, others inputs", () => {
  const key = "eagle_aux_hidden_state_layer_ids";
  const of = (config: Readonly<Record<string, unknown>>) =>
    parseDraftConfig(draft(EAGLE3, config), target()).auxLayers;
  assert.deepEqual(of({ eagle_config: { [key]: [1, 2, 4] } }), [2, 3, 5]);
  assert.deepEqual(of({ eagle_config: { [key]: [2, 3, 5] } }), [2, 3, 5]);
  assert.deepEqual(of({ eagle_config: { [key]: [] } }), [2, 3, 3]);
  assert.deepEqual(of({ eagle_config: { [key]: null }, [key]: [1, 3, 5] }), [1, 3, 5]);
  assert.deepEqual(of({ [key]: [1, 3, 5] }), [1, 3, 5]);
  assert.deepEqual(of({ [key]: [] }), [2, 3, 3]);
  const big = parseDraftConfig(draft(EAGLE3), target({ num_hidden_layers: 32 }));
  assert.deepEqual(big.auxLayers, [2, 16, 29]);
});

Deno.test("with norms of q and k, the rows that a partial rope turns are reordered", () => {
  const half = { head_dim: 8, partial_rotary_factor: 0.5 };
  const shapes: typeof EAGLE3 = {
    ...EAGLE3,
    "midlayer.self_attn.q_norm.weight": [8],
    "midlayer.self_attn.k_norm.weight": [8],
  };
  const attention = (config: Readonly<Record<string, unknown>>, tensors = shapes) => {
    const checkpoint = draft(tensors, config);
    const parsed = parseDraftConfig(checkpoint, target());
    checkTensors(checkpoint, draftTensors(parsed));
    return denseLayer(parsed.layer.layers[0]).attention;
  };
  assert.deepEqual([attention(half).qkNorm, attention(half).turned], ["head", 4]);
  assert.equal(attention({ head_dim: 8 }).turned, undefined);
  assert.equal(attention(half, EAGLE3).turned, undefined);
});

Deno.test("a head's window is the one of its first layer type", () => {
  const window = (config: Readonly<Record<string, unknown>>) =>
    denseLayer(parseDraftConfig(draft(EAGLE3, config), target()).layer.layers[0]).attention.window;
  const sliding = { layer_types: ["sliding_attention"], sliding_window: 64 };
  assert.equal(window(sliding), 64);
  assert.equal(window({ ...sliding, use_sliding_window: true }), 64);
  assert.equal(window({ ...sliding, layer_types: ["full_attention"] }), undefined);
  // The target's list.
  assert.equal(window({ ...sliding, layer_types: ["full_attention", "x"] }), undefined);
  assert.equal(window({ sliding_window: 64, use_sliding_window: false }), undefined);
  assert.throws(() => window({ ...sliding, sliding_window: null }), /but no sliding_window for it/);
  assert.throws(() => window({ layer_types: ["linear_attention"] }), /"linear_attention"/);
  assert.throws(() => window({ use_sliding_window: true }), /use_sliding_window true/);
});

Deno.test("what is outside the layer may have the prefix or not", () => {
  const outside = /^(embed_tokens|lm_head|d2t|t2d)/;
  const shapes = { ...EAGLE3, "embed_tokens.weight": [40, 16] };
  const all = renamed(shapes, (name) => `model.${name}`);
  const none = renamed(shapes, (name) => outside.test(name) ? name : `model.${name}`);
  const only = renamed(shapes, (name) => outside.test(name) ? `model.${name}` : name);
  for (const tensors of [all, none, only]) {
    const checkpoint = draft(tensors);
    const config = parseDraftConfig(checkpoint, target());
    const { ownEmbedding, ownHead, reducedVocab, draftVocabSize } = config;
    assert.deepEqual([ownEmbedding, ownHead, reducedVocab, draftVocabSize], [true, true, true, 12]);
    assert.deepEqual(checkTensors(checkpoint, draftTensors(config)), []);
  }
});

for (
  const [what, shapes, tensor] of [
    ["an input norm", EAGLE1, "layers.0.input_layernorm.weight"],
    ["a final norm", EAGLE1, "norm.weight"],
    ["norms as MTP has them", EAGLE1, "enorm.weight"],
    ["norms as MTP has them, after a prefix", EAGLE1, "model.hnorm.weight"],
    ["a norm of k alone", EAGLE3, "midlayer.self_attn.k_norm.weight"],
    ["sinks", EAGLE3, "midlayer.self_attn.sinks"],
    ["a gate", EAGLE3, "midlayer.self_attn.g_proj.weight"],
    ["a further layer", EAGLE3, "layers.0.mlp.up_proj.weight"],
    ["a row for masks (P-EAGLE)", EAGLE3, "mask_hidden"],
  ] as const
) {
  Deno.test(`a head with ${what}, which would be left out, is refused`, () => {
    const checkpoint = draft({ ...shapes, [tensor]: [16] });
    const config = parseDraftConfig(checkpoint, target());
    assert.throws(() => checkDraft(checkpoint, config), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      const path = 'Cannot use "toy/model.safetensors": tensor';
      const why = "belongs to a kind of draft that is not supported";
      assert.equal(error.message, `${path} "${tensor}" ${why}`);
      return true;
    });
  });
}

Deno.test("tensors of a head that change nothing are read past", () => {
  const shapes = {
    ...EAGLE3,
    "verifier_norm.weight": [16],
    "midlayer.self_attn.rotary_emb.inv_freq": [4],
    "midlayer.self_attn.k_scale": [1],
  };
  const checkpoint = draft(shapes);
  const [warning, ...more] = checkDraft(checkpoint, parseDraftConfig(checkpoint, target()));
  assert.match(warning ?? "", /"(verifier_norm.weight|midlayer.self_attn.k_scale)" and 1 more are/);
  assert.match(more.join(), /d2t names 12 tokens/);
});

Deno.test("d2t and t2d name the same tokens, or there is a warning", () => {
  const ids = [1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31];
  const offsets = ids.map((id, i) => id - i);
  const marked = (id: number) => ids.includes(id);
  const check = (numbers: readonly number[], mark: (id: number) => boolean) => {
    const checkpoint = vocabularies(numbers, mark);
    return checkDraft(checkpoint, parseDraftConfig(checkpoint, target()));
  };
  assert.deepEqual(check(offsets, marked), []);
  // Never filled in.
  assert.deepEqual(check(offsets, () => false), []);
  const zeros = ids.map(() => 0);
  const [warning] = check(zeros, () => true);
  assert.match(
    warning ?? "",
    /^toy\/model.safetensors: d2t names 12 tokens, of which 0 are .*which has 40: few/,
  );
  assert.match(check(zeros, marked)[0] ?? "", /of which 6 are not in t2d, which has 12/);
  assert.throws(() => check(ids, marked), /"d2t" holds ids of the target's tokens, expected their/);
});

/** An EAGLE-3 head with these tensors d2t and t2d. */
function vocabularies(d2t: readonly number[], mark: (id: number) => boolean): Checkpoint {
  const shapes = without(without(EAGLE3, "d2t"), "t2d");
  const zeros = Object.entries(shapes).map(([name, shape]) => {
    const bytes = new Uint8Array(2 * shape.reduce((product, n) => product * n, 1));
    return [name, { dtype: "BF16", shape, bytes }] as const;
  });
  const offsets = new Uint8Array(BigInt64Array.from(d2t, BigInt).buffer);
  const marks = Uint8Array.from({ length: 40 }, (_, id) => Number(mark(id)));
  const tensors = {
    ...Object.fromEntries(zeros),
    d2t: { dtype: "I64", shape: [d2t.length], bytes: offsets },
    t2d: { dtype: "BOOL", shape: [40], bytes: marks },
  };
  return toyCheckpoint(
    safetensorsFiles({ config: { ...TARGET_JSON, num_hidden_layers: 1 }, tensors }),
  );
}

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
    [
      "aux layers out of order",
      EAGLE3,
      { eagle_aux_hidden_state_layer_ids: [4, 2, 3] },
      /\[4,2,3\], expected them in ascending order/,
    ],
    [
      "a partial rope and biases",
      { ...EAGLE1, "layers.0.self_attn.q_proj.bias": [16] },
      { partial_rotary_factor: 0.5 },
      /has a partial rope together with a bias of q and k/,
    ],
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

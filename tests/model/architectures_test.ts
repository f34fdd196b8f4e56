import { kvBytesPerToken } from "../../src/engine/load/paper.ts";
import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { TARGET_JSON } from "./drafts.ts";
import { denseLayer } from "./dense_layer.ts";
import { FAMILIES } from "../../src/model/config/architectures.ts";
import { goldensWith } from "../golden_models.ts";

const FOLDERS = new URL("../golden/", import.meta.url);

function golden(name: string, file: string): ModelConfig {
  const text = Deno.readTextFileSync(new URL(`${name}/${file}`, FOLDERS));
  return parseModelConfig(name, JSON.parse(text), undefined);
}

for (const name of goldensWith("config.v5.json")) {
  Deno.test(`${name}: transformers 4 and 5 write the same config`, () => {
    assert.deepEqual(golden(name, "config.v5.json"), golden(name, "config.json"));
  });
}

Deno.test("every architecture has a golden and a row on the page of models, and no other has a row", async () => {
  const tested = goldensWith("config.json").flatMap((name) => {
    const config = Deno.readTextFileSync(new URL(`${name}/config.json`, FOLDERS));
    return JSON.parse(config).architectures as string[];
  });
  // Muse-Glimmer's golden names the model with images around it. tests/model/wrapped_test.ts reads gemma4_dense as the
  // other.
  tested.push("MuseGlimmerForCausalLM", "Gemma4UnifiedForCausalLM");
  const lacking = FAMILIES.filter(({ architecture }) => !tested.includes(architecture));
  assert.deepEqual(lacking.map(({ architecture }) => architecture), []);
  const page = await Deno.readTextFile(new URL("../../docs/models.md", import.meta.url));
  const names = FAMILIES.flatMap(({ architecture, wrappers = [] }) => [
    architecture,
    ...wrappers.map(({ architecture }) => architecture),
  ]);
  assert.deepEqual(names.filter((name) => !page.includes(`\`${name}\``)), []);
  const onPage = page.matchAll(/`(\w+For(?:CausalLM|ConditionalGeneration))`/g);
  const gone = [...onPage].map(([, name = ""]) => name).filter((name) => !names.includes(name));
  assert.deepEqual(gone, []);
});

type Change = Readonly<Record<string, unknown>>;

/** @param change fields that differ; those that are undefined are not in the file. */
function parse(modelType: string, architecture: string, change: Change = {}): ModelConfig {
  const json = { ...TARGET_JSON, model_type: modelType, architectures: [architecture], ...change };
  return parseModelConfig("big", JSON.parse(JSON.stringify(json)), undefined);
}

const windows = ({ layers }: ModelConfig) => layers.map(({ attention: { window } }) => window);
const NONE = Array(6).fill(undefined);

const GEMMA4_HEADS = {
  num_hidden_layers: 6,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 256,
};

Deno.test("gemma 4: published keys and per_layer_config give the same layers", () => {
  const change = {
    ...GEMMA4_HEADS,
    hidden_size_per_layer_input: null,
    attention_k_eq_v: true,
    rope_parameters: undefined,
  };
  const gemma4 = (own: Change) => parse("gemma4_text", "Gemma4ForCausalLM", { ...change, ...own });
  const published = gemma4({ num_global_key_value_heads: 1 });
  const own = { head_dim: 512, num_key_value_heads: 1 };
  assert.deepEqual(published, gemma4({ per_layer_config: { 5: own } }));
  // As transformers saves a model of more than ten layers.
  const deep = (change: Change) => gemma4({ num_hidden_layers: 12, ...change });
  assert.deepEqual(
    deep({ num_global_key_value_heads: 1 }),
    deep({ per_layer_config: { "05": own, "11": own } }),
  );
  const heads = published.layers.map(({ attention }) => {
    assert.ok(attention.kind === "heads");
    const { numKvHeads, headDim, scale, values, window, rope } = attention;
    return [numKvHeads, headDim, scale, values, window, rope];
  });
  assert.deepEqual(heads[0], [4, 256, 1, "normed", 512, 1]);
  assert.deepEqual(heads[5], [1, 512, 1, "keys", undefined, 0]);
  const [full] = published.ropes;
  const scaling = { kind: "proportional", pairs: 64, factor: 1 };
  assert.deepEqual(full, { theta: 1e6, width: 512, scaling });
  assert.equal(published.perLayer, undefined);
  assert.throws(
    () => gemma4({ per_layer_config: { 5: { sliding_window: 8 } } }),
    /has "sliding_window", known are head_dim, num_key_value_heads/,
  );
  assert.throws(
    () => gemma4({ per_layer_config: { 5: { num_key_value_heads: 3 } } }),
    /8 attention/,
  );
  assert.throws(() => gemma4({ num_kv_shared_layers: 6 }), /no layer to share with/);
});

Deno.test("gemma 4: shared layers read the last of their kind, and embeddings of layers are 256 wide unless said", () => {
  const config = parse("gemma4_text", "Gemma4ForCausalLM", {
    hidden_size: 1536,
    num_hidden_layers: 35,
    num_key_value_heads: 1,
    num_attention_heads: 8,
    head_dim: 256,
    intermediate_size: 6144,
    vocab_size: 262_144,
    layer_types: Array.from(
      { length: 35 },
      (_, i) => i % 5 === 4 ? "full_attention" : "sliding_attention",
    ),
    num_kv_shared_layers: 20,
    use_double_wide_mlp: true,
    rope_parameters: undefined,
  });
  const shared = config.layers.map(({ attention }) =>
    attention.kind === "heads" ? attention.sharedKv : NaN
  );
  assert.deepEqual(shared.slice(0, 15), Array(15).fill(undefined));
  assert.deepEqual(shared.slice(15, 20), [13, 13, 13, 13, 14]);
  const widths = config.layers.map(({ mlp }) => mlp.intermediateSize);
  assert.deepEqual([widths[14], widths[15]], [6144, 12_288]);
  assert.deepEqual(config.perLayer, { width: 256, vocabSize: 262_144, scale: 16 });
  assert.equal(config.embedScale, Math.fround(Math.sqrt(1536)));
  assert.equal(kvBytesPerToken(config), 4 * 2 * (12 * 256 + 3 * 512));
});

Deno.test("gemma 4 unified: defaults of its own, no embeddings of layers and no experts", () => {
  const change = {
    ...GEMMA4_HEADS,
    max_position_embeddings: undefined,
    rope_parameters: undefined,
  };
  const unified = (own: Change) =>
    parse("gemma4_unified_text", "Gemma4UnifiedForCausalLM", { ...change, ...own });
  const config = unified({});
  assert.deepEqual([config.modelType, config.maxPositions, config.perLayer], [
    "gemma4_unified_text",
    262_144,
    undefined,
  ]);
  assert.deepEqual(windows(config), [...Array(5).fill(1024), undefined]);
  assert.deepEqual(
    unified({ hidden_size_per_layer_input: 256, enable_moe_block: true }),
    config,
  );
  assert.equal(unified({ tie_word_embeddings: undefined }).tied, true);
});

Deno.test("gemma 4: the last layer is full whatever layer_types says, and needs no rope of sliding layers", () => {
  const gemma4 = (types: readonly string[], own: Change = {}) =>
    parse("gemma4_text", "Gemma4ForCausalLM", {
      num_hidden_layers: types.length,
      layer_types: types,
      num_attention_heads: 8,
      num_key_value_heads: 4,
      hidden_size_per_layer_input: 0,
      rope_parameters: undefined,
      ...own,
    });
  const [full, sliding] = ["full_attention", "sliding_attention"] as const;
  assert.deepEqual(windows(gemma4([full, sliding, sliding])), [undefined, 512, undefined]);
  assert.deepEqual(gemma4([full, sliding, sliding]), gemma4([full, sliding, full]));
  const rope = { [full]: { rope_type: "default", rope_theta: 1e5 } };
  const { ropes } = gemma4([full, sliding], { rope_parameters: rope });
  assert.deepEqual(ropes, [{ theta: 1e5, width: 512, scaling: { kind: "default" } }]);
  assert.throws(
    () => gemma4([sliding, full], { rope_parameters: rope }),
    /no rope_parameters for "sliding_attention"/,
  );
});

Deno.test("gemma 4: embeddings of layers are gated by gelu alone", () => {
  const gemma4 = (change: Change) =>
    parse("gemma4_text", "Gemma4ForCausalLM", {
      hidden_activation: "silu",
      rope_parameters: undefined,
      ...change,
    });
  assert.throws(
    () => gemma4({ vocab_size_per_layer_input: undefined }),
    /hidden_activation "silu" with embeddings of layers, expected "gelu_pytorch_tanh"/,
  );
  const [layer] = gemma4({ hidden_size_per_layer_input: 0 }).layers;
  assert.equal(layer?.mlp.kind === "dense" && layer.mlp.activation, "silu");
});

Deno.test("mistral: a window of 4096 where unsaid, none where null", () => {
  const mistral = (change: Change) => windows(parse("mistral", "MistralForCausalLM", change));
  assert.deepEqual(mistral({}), Array(6).fill(4096));
  assert.deepEqual(mistral({ sliding_window: null }), NONE);
});

Deno.test("qwen2: biases; a window from max_window_layers on, where it is switched on", () => {
  const qwen2 = (change: Change) => parse("qwen2", "Qwen2ForCausalLM", change);
  assert.ok(qwen2({}).layers.every((layer) => denseLayer(layer).attention.bias));
  const window = { sliding_window: 64, max_window_layers: 4 };
  assert.deepEqual(windows(qwen2(window)), NONE);
  const on = { ...window, use_sliding_window: true };
  assert.deepEqual(windows(qwen2(on)), [...Array(4).fill(undefined), 64, 64]);
  const specs = targetTensors(qwen2({}));
  const bias = specs.find(({ role }) => role === "layers.5.kBias");
  assert.equal(bias?.name, "model.layers.5.self_attn.k_proj.bias");
  assert.deepEqual(bias.shape, [8]);
});

Deno.test("qwen2: attention_bias is not read, there is a bias of q, k and v alone", () => {
  for (const attention_bias of [true, false]) {
    const { layers: [layer] } = parse("qwen2", "Qwen2ForCausalLM", { attention_bias });
    const { bias, outBias } = denseLayer(layer).attention;
    assert.deepEqual([bias, outBias], [true, undefined]);
  }
});

Deno.test("qwen3_moe: a window is that of all layers, whatever layer_types says", () => {
  const config = parse("qwen3_moe", "Qwen3MoeForCausalLM", {
    use_sliding_window: true,
    sliding_window: 64,
    layer_types: Array(6).fill("full_attention"),
  });
  assert.deepEqual(windows(config), Array(6).fill(64));
});

Deno.test("phi3: q, k and v, gate and up are rows of one matrix", () => {
  const specs = new Map(
    targetTensors(parse("phi3", "Phi3ForCausalLM")).map((spec) => [spec.role, spec]),
  );
  const parts = ["q", "k", "v"].map((role) => specs.get(`layers.1.${role}`));
  for (const spec of parts) assert.equal(spec?.name, "model.layers.1.self_attn.qkv_proj.weight");
  assert.deepEqual(parts.map((spec) => spec?.part), [
    { first: 0, of: 32 },
    { first: 16, of: 32 },
    { first: 24, of: 32 },
  ]);
  assert.deepEqual(specs.get("layers.0.up")?.part, { first: 24, of: 48 });
  assert.equal(specs.get("layers.0.down")?.part, undefined);
});

Deno.test("phi3: su and yarn with factors are old names of longrope", () => {
  const factors = { short_factor: [1, 1, 1, 2], long_factor: [1, 2, 3, 4] };
  for (const type of ["longrope", "su", "yarn"]) {
    const [rope] = parse("phi3", "Phi3ForCausalLM", {
      original_max_position_embeddings: 1024,
      max_position_embeddings: 4096,
      rope_scaling: { type, ...factors },
    }).ropes;
    assert.deepEqual(rope?.scaling, {
      kind: "longrope",
      originalMaxPositions: 1024,
      shortFactors: factors.short_factor,
      longFactors: factors.long_factor,
      attentionFactor: Math.sqrt(1 + Math.log(4) / Math.log(1024)),
    });
  }
});

Deno.test("phi3: longrope was trained for 4096 positions where the top level does not say less", () => {
  const rope_scaling = {
    type: "longrope",
    short_factor: [1, 1, 1, 2],
    long_factor: [1, 2, 3, 4],
    original_max_position_embeddings: 1024,
  };
  const change = { max_position_embeddings: 16384, rope_scaling };
  const [rope] = parse("phi3", "Phi3ForCausalLM", change).ropes;
  assert.ok(rope?.scaling.kind === "longrope" && rope.scaling.originalMaxPositions === 4096);
});

Deno.test("olmo2: norms after, q and k over their whole width", () => {
  const roles = targetTensors(parse("olmo2", "Olmo2ForCausalLM"))
    .filter(({ role }) => /^layers\.0\..*Norm$/.test(role))
    .map(({ role, name, shape }) => [role, name.replace("model.layers.0.", ""), ...shape]);
  assert.deepEqual(roles, [
    ["layers.0.qNorm", "self_attn.q_norm.weight", 16],
    ["layers.0.kNorm", "self_attn.k_norm.weight", 8],
    ["layers.0.attentionNorm", "post_attention_layernorm.weight", 16],
    ["layers.0.mlpNorm", "post_feedforward_layernorm.weight", 16],
  ]);
});

Deno.test("gemma2: windows on every other layer, soft caps, hidden_act is not read", () => {
  const config = parse("gemma2", "Gemma2ForCausalLM", { hidden_act: "gelu", head_dim: 8 });
  const { attention, mlp } = denseLayer(config.layers[0]);
  assert.deepEqual(windows(config), [4096, undefined, 4096, undefined, 4096, undefined]);
  assert.deepEqual([attention.cap, config.logitCap], [50, 30]);
  assert.equal(attention.scale, 256 ** -0.5);
  assert.equal(mlp.activation, "gelu_tanh");
  assert.deepEqual([config.normOffset, config.embedScale, config.tied], [1, 4, true]);
  const none = { attn_logit_softcapping: null, final_logit_softcapping: null };
  const plain = parse("gemma2", "Gemma2ForCausalLM", none);
  assert.deepEqual([denseLayer(plain.layers[0]).attention.cap, plain.logitCap], [
    undefined,
    undefined,
  ]);
});

Deno.test("gemma3 with images: the text model, with the defaults its config leaves out", () => {
  const config = parseModelConfig("sees", {
    architectures: ["Gemma3ForConditionalGeneration"],
    model_type: "gemma3",
    eos_token_id: [1, 106],
    vision_config: { hidden_size: 1152 },
    text_config: {
      model_type: "gemma3_text",
      hidden_size: 2560,
      intermediate_size: 10240,
      num_hidden_layers: 34,
      rope_scaling: { factor: 8, rope_type: "linear" },
      sliding_window: 1024,
    },
  }, undefined);
  const { layers, ropes, eosTokenIds, vocabSize, maxPositions } = config;
  assert.deepEqual({ eosTokenIds, vocabSize, maxPositions }, {
    eosTokenIds: [1, 106],
    vocabSize: 262208,
    maxPositions: 131072,
  });
  assert.deepEqual(ropes, [
    { theta: 1e6, width: 256, scaling: { kind: "linear", factor: 8 } },
    { theta: 1e4, width: 256, scaling: { kind: "default" } },
  ]);
  const attention = layers.map((layer) => denseLayer(layer).attention);
  assert.deepEqual(attention.slice(4, 7).map(({ window, rope }) => [window, rope]), [
    [1024, 1],
    [undefined, 0],
    [1024, 1],
  ]);
  assert.deepEqual([attention[0]?.numHeads, attention[0]?.numKvHeads], [8, 4]);
  const [embed] = targetTensors(config);
  assert.deepEqual([embed?.name, ...embed?.aliases ?? []], [
    "model.embed_tokens.weight",
    "language_model.model.embed_tokens.weight",
    "model.language_model.embed_tokens.weight",
  ]);
});

Deno.test("gemma3: the rope of local layers has their own base where rope_parameters do not say one", () => {
  const rope_parameters = {
    full_attention: { rope_type: "default", rope_theta: 5e5 },
    sliding_attention: { rope_type: "default" },
  };
  const thetas = (change: Change) =>
    parse("gemma3_text", "Gemma3ForCausalLM", { rope_parameters, ...change }).ropes
      .map(({ theta }) => theta);
  assert.deepEqual(thetas({}), [5e5, 1e4]);
  assert.deepEqual(thetas({ rope_local_base_freq: 2e4, rope_theta: 3e5 }), [5e5, 2e4]);
});

Deno.test("deepseek_v3: mscale_all_dim sharpens attention of scaled ropes alone", () => {
  const scale = (rope_scaling: unknown) => {
    const change = { first_k_dense_replace: 6, rope_scaling };
    const [layer] = parse("deepseek_v3", "DeepseekV3ForCausalLM", change).layers;
    return layer?.attention.kind === "latent" ? layer.attention.scale : assert.fail();
  };
  const rope = { factor: 4, mscale_all_dim: 1 };
  for (const type of [{ rope_type: "default" }, {}]) {
    assert.equal(scale({ ...rope, ...type }), 1 / Math.sqrt(192));
  }
  assert.equal(scale({ ...rope, type: "yarn" }), (0.1 * Math.log(4) + 1) ** 2 / Math.sqrt(192));
});

Deno.test("a wrapper's text_config decides what the decoder is; the outer config has the rest", () => {
  const sees = (change: Change, text: Change) =>
    parseModelConfig("sees", {
      architectures: ["Gemma3ForConditionalGeneration"],
      model_type: "gemma3",
      tie_word_embeddings: false,
      ...change,
      text_config: { model_type: "gemma3_text", eos_token_id: 7, ...text },
    }, undefined);
  const { tied, eosTokenIds, architecture } = sees({}, {});
  assert.deepEqual({ tied, eosTokenIds, architecture }, {
    tied: false,
    eosTokenIds: [7],
    architecture: "Gemma3ForConditionalGeneration",
  });
  // Before there are files, text_config is read for what the outer config does not say.
  const [tie, untie] = [{ tie_word_embeddings: true }, { tie_word_embeddings: false }];
  const unsaid = { tie_word_embeddings: undefined };
  assert.deepEqual(
    [sees(untie, tie), sees(tie, untie), sees(unsaid, untie), sees(unsaid, {})].map(({ tied }) =>
      tied
    ),
    [false, true, false, true],
  );
  assert.deepEqual(sees({ eos_token_id: [8] }, {}).eosTokenIds, [8, 7]);
  // Neither has to have names.
  assert.equal(
    sees({ architectures: undefined }, { model_type: undefined }).modelType,
    "gemma3_text",
  );
  const head = targetTensors(sees({}, {})).at(-1);
  assert.deepEqual([head?.name, head?.aliases], ["lm_head.weight", [
    "language_model.lm_head.weight",
  ]]);
  assert.throws(
    () => sees({}, { model_type: "gemma2" }),
    /config\.json text_config has model_type "gemma2", known are gemma3_text/,
  );
});

Deno.test("glm4_moe_lite: which layers are dense, and the layer after the last as a draft", () => {
  const kinds = (change: Change) => {
    const json = JSON.parse(Deno.readTextFileSync(new URL("glm4_moe_lite/config.json", FOLDERS)));
    const { layers } = parseModelConfig("glm", { ...json, ...change }, undefined);
    return layers.map(({ mlp }) => mlp.kind);
  };
  assert.deepEqual(kinds({}), ["dense", "mixture", "mixture"]);
  const types = ["sparse", "dense", "sparse"];
  assert.deepEqual(kinds({ mlp_layer_types: types }), ["mixture", "dense", "mixture"]);
  // Published files have the key too, but transformers does not read it.
  const first = { mlp_layer_types: undefined, first_k_dense_replace: 2 };
  assert.deepEqual(kinds(first), ["dense", "mixture", "mixture"]);
  assert.throws(
    () => kinds({ mlp_layer_types: ["dense"] }),
    /mlp_layer_types \["dense"\], expected/,
  );
});

Deno.test("laguna: the published layers, which are those that transformers assumes where it can", () => {
  const path = new URL("../../lab/shapes/laguna_xs.json", import.meta.url);
  const json = JSON.parse(Deno.readTextFileSync(path));
  const laguna = (change: Change) =>
    parseModelConfig("laguna", JSON.parse(JSON.stringify({ ...json, ...change })), undefined);
  const config = laguna({});
  const heads = config.layers.slice(3, 5).map(({ attention, mlp }) => {
    assert.ok(attention.kind === "heads" && mlp.kind === "mixture");
    const { numHeads, numKvHeads, window, turned, rope, outputGate } = attention;
    return [numHeads, numKvHeads, window, turned, config.ropes[rope]?.theta, outputGate?.per];
  });
  assert.deepEqual(heads, [
    [64, 8, 512, undefined, 1e4, "head"],
    [48, 8, undefined, 64, 5e5, "head"],
  ]);
  assert.deepEqual(config.ropes.map(({ width, scaling }) => [width, scaling.kind]), [
    [64, "yarn"],
    [128, "default"],
  ]);
  assert.equal(config.maxPositions, 262_144);
  const [dense, sparse] = config.layers;
  assert.deepEqual([dense?.mlp.kind, sparse?.mlp.kind], ["dense", "mixture"]);
  assert.ok(sparse?.mlp.kind === "mixture");
  const { routing: { scale, scores, normalize }, shared, logitCap } = sparse.mlp;
  assert.deepEqual([scale, scores, normalize], [2.5, "sigmoid", true]);
  assert.deepEqual([shared?.intermediateSize, logitCap], [512, undefined]);
  const specs = new Map(targetTensors(config).map(({ role, ...spec }) => [role, spec]));
  const gate = specs.get("layers.0.outputGate");
  assert.deepEqual([gate?.name, gate?.shape], ["model.layers.0.self_attn.g_proj.weight", [
    48,
    2048,
  ]]);
  assert.equal(
    specs.get("layers.1.routerBias")?.name,
    "model.layers.1.mlp.experts.e_score_correction_bias",
  );
  // M.1: no windows, gates of numbers, heads as many in every layer, and one rope.
  const { full_attention } = json.rope_parameters;
  const even = laguna({
    num_attention_heads_per_layer: null,
    layer_types: undefined,
    sliding_window: 0,
    gating: "per-element",
    rope_parameters: { full_attention: { ...full_attention, partial_rotary_factor: 1 } },
  });
  assert.deepEqual(windows(even), Array(40).fill(undefined));
  const wide = targetTensors(even).find(({ role }) => role === "layers.39.outputGate");
  assert.deepEqual(wide?.shape, [48 * 128, 2048]);
  const silent = { architectures: ["LagunaForCausalLM"], model_type: "laguna" };
  const assumed = parseModelConfig("laguna", silent, undefined);
  assert.deepEqual(
    assumed,
    laguna({
      max_position_embeddings: undefined,
      num_attention_heads_per_layer: undefined,
      layer_types: undefined,
      mlp_layer_types: undefined,
      moe_routed_scaling_factor: undefined,
      rope_parameters: undefined,
      gating: true,
    }),
  );
});

Deno.test("olmo3: windows on three of four layers, the rope of others alone is scaled", () => {
  const olmo3 = (change: Change) =>
    parse("olmo3", "Olmo3ForCausalLM", { num_hidden_layers: 8, ...change });
  const old = {
    rope_theta: 5e5,
    rope_scaling: { rope_type: "linear", factor: 8 },
    sliding_window: 64,
  };
  const { layers, ropes } = olmo3(old);
  assert.deepEqual(layers.map(({ attention: { window } }) => window), [
    ...[64, 64, 64, undefined],
    ...[64, 64, 64, undefined],
  ]);
  const scaled = { theta: 5e5, width: 8, scaling: { kind: "linear", factor: 8 } };
  const plain = { theta: 5e5, width: 8, scaling: { kind: "default" } };
  assert.deepEqual(layers.slice(2, 4).map((layer) => ropes[denseLayer(layer).attention.rope]), [
    plain,
    scaled,
  ]);
  const keyed = olmo3({
    rope_parameters: {
      full_attention: { rope_type: "linear", factor: 8, rope_theta: 5e5 },
      sliding_attention: { rope_type: "default", rope_theta: 5e5 },
    },
    sliding_window: 64,
  });
  assert.deepEqual(keyed, olmo3(old));
});

Deno.test("the original context of a rope of one kind of layers is not read at the top level", () => {
  const original = (change: Change) => {
    const full_attention = { rope_type: "yarn", factor: 8, rope_theta: 5e5, ...change };
    const [rope] = parse("olmo3", "Olmo3ForCausalLM", {
      max_position_embeddings: 512,
      original_max_position_embeddings: 64,
      rope_parameters: { full_attention },
    }).ropes;
    return rope?.scaling.kind === "yarn" ? rope.scaling.originalMaxPositions : assert.fail();
  };
  assert.equal(original({ original_max_position_embeddings: 128 }), 128);
  assert.equal(original({}), 512);
});

Deno.test("olmo3: rope_theta is that of full layers alone", () => {
  const thetas = (change: Change) =>
    parse("olmo3", "Olmo3ForCausalLM", { rope_parameters: undefined, ...change }).ropes
      .map(({ theta, scaling: { kind } }) => [theta, kind]);
  assert.deepEqual(thetas({ rope_theta: 1e4 }), [[1e4, "default"], [5e5, "default"]]);
  assert.deepEqual(thetas({ rope_theta: undefined }), [[5e5, "default"], [5e5, "default"]]);
  const linear = { rope_type: "linear", factor: 8 };
  const full_attention = { ...linear, rope_theta: 2e4 };
  for (
    const change of [
      { rope_parameters: { full_attention }, rope_theta: 1e4 },
      { rope_scaling: linear, rope_theta: 2e4 },
    ]
  ) assert.deepEqual(thetas(change), [[2e4, "linear"], [5e5, "default"]]);
  assert.throws(
    () => thetas({ rope_parameters: { rope_type: "default", rope_theta: 1e4 } }),
    /rope_parameters has rope_type "default", expected an object/,
  );
});

Deno.test("muse_glimmer: layer_rope_theta says which layers turn, else their place does", () => {
  const turned = (change: Change) => {
    const { layers, ropes } = parse("muse_glimmer_text", "MuseGlimmerForCausalLM", {
      rope_parameters: { rope_type: "default", rope_theta: 1e4 },
      ...change,
    });
    return layers.map((layer) => {
      const { theta, scaling } = ropes[denseLayer(layer).attention.rope] ?? assert.fail();
      return scaling.kind === "none" ? 0 : theta;
    });
  };
  const byPlace = [1e4, 0, 1e4, 1e4, 1e4, 0];
  assert.deepEqual(turned({}), byPlace);
  assert.deepEqual(turned({ layer_types: Array(6).fill("full_attention") }), byPlace);
  assert.deepEqual(turned({ layer_rope_theta: [0, 5e5, 1, 1e4, 0, 0] }), [0, 1e4, 1e4, 1e4, 0, 0]);
  assert.throws(() => turned({ layer_rope_theta: [0] }), /layer_rope_theta \[0\], expected a num/);
});

Deno.test("gpt_oss: yarn where the config has no rope, and no clamp but 7", () => {
  const oss = (change: Change) =>
    parse("gpt_oss", "GptOssForCausalLM", {
      rope_parameters: undefined,
      rope_scaling: null,
      rope_theta: undefined,
      num_local_experts: 8,
      ...change,
    });
  const [rope] = oss({}).ropes;
  assert.equal(rope?.theta, 150_000);
  assert.deepEqual(rope.scaling, {
    kind: "yarn",
    factor: 32,
    originalMaxPositions: 4096,
    betaFast: 32,
    betaSlow: 1,
    truncate: false,
    attentionFactor: 0.1 * Math.log(32) + 1,
  });
  assert.deepEqual(oss({ rope_theta: 1e4 }).ropes, [{ ...rope, theta: 1e4 }]);
  const own = { rope_type: "default", rope_theta: 1e4 };
  assert.equal(oss({ rope_parameters: own }).ropes[0]?.scaling.kind, "default");
  assert.deepEqual(oss({ swiglu_limit: 7 }), oss({}));
  assert.throws(() => oss({ swiglu_limit: 1 }), /swiglu_limit 1, expected 7/);
});

for (
  const [type, architecture, heads] of [
    ["seed_oss", "SeedOssForCausalLM", 8],
    ["smollm3", "SmolLM3ForCausalLM", 4],
    ["lfm2", "Lfm2ForCausalLM", 8],
    ["lfm2_moe", "Lfm2MoeForCausalLM", 8],
    ["exaone4", "Exaone4ForCausalLM", 32],
    ["qwen3_5_text", "Qwen3_5ForCausalLM", 4],
    ["qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", 2],
    ["qwen3_next", "Qwen3NextForCausalLM", 2],
  ] as const
) {
  Deno.test(`${type}: ${heads} heads of keys and values where unsaid`, () => {
    const { layers } = parse(type, architecture, {
      num_attention_heads: 64,
      num_key_value_heads: undefined,
      head_dim: 8,
      partial_rotary_factor: 1,
    });
    const found = layers.flatMap(({ attention }) =>
      attention.kind === "heads" ? attention.numKvHeads : []
    );
    assert.equal(found[0], heads);
  });
}

Deno.test("exaone4: with windows, layers without one do not rotate; without windows all do", () => {
  const exaone4 = (change: Change) => {
    const { layers, ropes } = parse("exaone4", "Exaone4ForCausalLM", change);
    return layers.map((layer) => {
      const { window, rope } = denseLayer(layer).attention;
      return [window, ropes[rope]?.scaling.kind];
    });
  };
  const [local, global] = [[64, "default"], [undefined, "none"]];
  for (const sliding_window_pattern of ["LLLG", 4, undefined]) {
    assert.deepEqual(exaone4({ sliding_window: 64, sliding_window_pattern }), [
      ...[local, local, local, global],
      ...[local, local],
    ]);
  }
  const layer_types = Array(6).fill("sliding_attention");
  const unread = { sliding_window: 64, sliding_window_pattern: "LGLL", layer_types };
  assert.deepEqual(exaone4(unread), Array(6).fill(local));
  assert.deepEqual(exaone4({ sliding_window: null }), Array(6).fill([undefined, "default"]));
  assert.deepEqual(exaone4({})[0], [4096, "default"]);
});

Deno.test("mistral3: the text model's own type decides between Mistral and Ministral 3", () => {
  const { architectures: _, ...text } = TARGET_JSON as Record<string, unknown>;
  const mistral3 = (change: Change) =>
    parseModelConfig("sees", {
      architectures: ["Mistral3ForConditionalGeneration"],
      model_type: "mistral3",
      text_config: { ...text, sliding_window: null, ...change },
    }, undefined);
  const rope_parameters = {
    rope_type: "yarn",
    rope_theta: 1e6,
    factor: 16,
    original_max_position_embeddings: 16384,
    mscale: 1,
    mscale_all_dim: 1,
    llama_4_scaling_beta: 0.1,
  };
  const said = { model_type: "ministral3", rope_parameters, head_dim: 128 };
  const { layers, ropes, maxPositions, modelType } = mistral3(said);
  assert.deepEqual([modelType, maxPositions, windows({ layers } as ModelConfig)], [
    "ministral3",
    262_144,
    NONE,
  ]);
  assert.deepEqual(denseLayer(layers[0]).attention.queryScale, { beta: 0.1, length: 16384 });
  const [{ scaling }] = ropes as [ModelConfig["ropes"][number]];
  assert.ok(scaling.kind === "yarn" && scaling.attentionFactor === 1);
  // A config that leaves fields out has the values that transformers assumes.
  const silent = mistral3({ model_type: "ministral3" });
  assert.deepEqual([silent.ropes, silent.maxPositions], [ropes, maxPositions]);
  const { rope_theta, ...rope_scaling } = rope_parameters;
  const old = mistral3({ ...said, rope_parameters: undefined, rope_theta, rope_scaling });
  assert.deepEqual([old.ropes, old.layers], [ropes, layers]);
  assert.equal(mistral3({ model_type: "mistral" }).modelType, "mistral");
  assert.equal(mistral3({ model_type: undefined }).modelType, "mistral");
});

const LAGUNA_HEADS = { num_hidden_layers: 2, num_attention_heads_per_layer: [4, 0] };
/** As configs had it before ropes of kinds of layers. */
const FLAT_ROPE = { rope_parameters: { rope_type: "default", rope_theta: 5e5 } };

for (
  const [type, architecture, change, message] of [
    ["gemma3", "Gemma3ForConditionalGeneration", {}, /has no text_config/],
    [
      "gemma2",
      "Gemma2ForCausalLM",
      { hidden_activation: "gelu" },
      /hidden_activation "gelu", known/,
    ],
    ["gemma2", "Gemma2ForCausalLM", { query_pre_attn_scalar: 0 }, /query_pre_attn_scalar 0/],
    ...[
      ["gemma2", "Gemma2ForCausalLM"] as const,
      ["gemma3_text", "Gemma3ForCausalLM"] as const,
    ].map(([type, name]) =>
      [
        type,
        name,
        { use_bidirectional_attention: true },
        /use_bidirectional_attention true, expected false/,
      ] as const
    ),
    ["gemma2", "Gemma2ForCausalLM", { final_logit_softcapping: -1 }, /final_logit_softcapping -1/],
    [
      "mistral",
      "MistralForCausalLM",
      { sliding_window: 0 },
      /sliding_window 0, expected an integer/,
    ],
    [
      "qwen3",
      "Qwen3ForCausalLM",
      { partial_rotary_factor: 0.5, rope_scaling: { type: "linear", factor: 2 } },
      /a partial rope together with/,
    ],
    ["phi3", "Phi3ForCausalLM", { rope_scaling: { type: "longrope" } }, /no short_factor of 4/],
    ["lfm2", "Lfm2ForCausalLM", { layer_types: Array(6).fill("conv") }, /no layer with attention/],
    ["qwen3_next", "Qwen3NextForCausalLM", { full_attention_interval: 8 }, /no layer with attent/],
    [
      "smollm3",
      "SmolLM3ForCausalLM",
      { no_rope_layers: [1, 0] },
      /no_rope_layers \[1,0\], expected one for each of its 6 layers/,
    ],
    [
      "laguna",
      "LagunaForCausalLM",
      LAGUNA_HEADS,
      /num_attention_heads_per_layer \[4,0\], expected/,
    ],
    ["laguna", "LagunaForCausalLM", { gating: false }, /gating false, known are true, "per-head"/],
    ["laguna", "LagunaForCausalLM", { norm_topk_prob: false }, /norm_topk_prob false, expected/],
    ["laguna", "LagunaForCausalLM", FLAT_ROPE, /no rope_parameters for "full_attention"/],
  ] as const
) {
  Deno.test(`${type} with ${JSON.stringify(change)} is refused`, () => {
    assert.throws(() => parse(type, architecture, change), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("lfm2: the width of MLPs is adjusted, layers are named by type or by number, old keys", () => {
  const lfm2 = (change: Change) => parse("lfm2", "Lfm2ForCausalLM", { norm_eps: 1e-3, ...change });
  const kinds = ({ layers }: ModelConfig) => layers.map(({ attention: { kind } }) => kind);
  const indexed = lfm2({ full_attn_idxs: [2, 5], intermediate_size: 640 });
  assert.deepEqual(kinds(indexed), ["conv", "conv", "heads", "conv", "conv", "heads"]);
  assert.equal(indexed.rmsNormEps, 1e-3);
  const width = ({ layers: [layer] }: ModelConfig) =>
    layer?.mlp.kind === "dense" ? layer.mlp.intermediateSize : undefined;
  // int(2 * 640 / 3) = 426, rounded up to a multiple of 256.
  assert.equal(width(indexed), 512);
  assert.equal(width(lfm2({ block_ff_dim: 6656 })), 4608);
  assert.equal(width(lfm2({ intermediate_size: 96, block_auto_adjust_ff_dim: false })), 96);
  // It is the adjusted width that kernels read: int(1.4 * 100) = 140, rounded up to 144; int(1.4 * 101) to 150.
  const scaled = (intermediate_size: number, block_multiple_of: number) =>
    lfm2({ block_ffn_dim_multiplier: 1.4, intermediate_size, block_multiple_of });
  assert.equal(width(scaled(150, 24)), 144);
  assert.throws(() => scaled(152, 10), /MLPs that are 150 wide, expected a multiple of 8/);
  const plain = { intermediate_size: 100, block_auto_adjust_ff_dim: false };
  assert.throws(() => lfm2(plain), /intermediate_size 100, expected a multiple of 8/);
  assert.throws(() => lfm2({ intermediate_size: 1 }), /MLPs that are 0 wide/);
  assert.throws(() => lfm2({ layer_types: Array(6).fill("mamba") }), /layer of type "mamba"/);
  assert.throws(() => lfm2({ conv_bias: true }), UsageError);
});

Deno.test("granite 4.0: with Mamba layers or experts it is refused, rope only where it is said", () => {
  const layer_types = ["attention", "attention"];
  const granite = (change: Change) =>
    parse("granitemoehybrid", "GraniteMoeHybridForCausalLM", {
      num_hidden_layers: 2,
      num_local_experts: 0,
      layer_types,
      attention_bias: false,
      ...change,
    });
  const rope = (change: Change) => granite(change).ropes[0]?.scaling.kind;
  assert.deepEqual([rope({}), rope({ position_embedding_type: "rope" })], ["none", "default"]);
  assert.deepEqual(granite({}), granite({ layer_types: null, layers_block_type: layer_types }));
  const mamba = { layer_types: ["mamba", "attention"] };
  assert.throws(() => granite(mamba), /layer of type "mamba", which those of this model are not/);
  assert.throws(() => granite({ layer_types: null }), /no layer_types: all its layers are Mamba/);
  assert.throws(() => granite({ num_local_experts: 4 }), /num_local_experts 4, expected 0/);
});

Deno.test("an unscaled rope turns a part of each head only in families whose rope does in transformers", () => {
  const linear = { type: "linear", factor: 2 };
  const width = (type: string, name: string, change: Change) =>
    parse(type, name, {
      head_dim: 16,
      attention_bias: false,
      partial_rotary_factor: 0.5,
      ...change,
    }).ropes[0]?.width;
  const whole = [
    ["llama", "LlamaForCausalLM"],
    ["granite", "GraniteForCausalLM"],
    ["mistral", "MistralForCausalLM"],
    ["seed_oss", "SeedOssForCausalLM"],
    ["smollm3", "SmolLM3ForCausalLM"],
  ] as const;
  for (const [type, name] of whole) {
    assert.equal(width(type, name, {}), 16, name);
    const inside = { rope_parameters: { rope_theta: 1e4, partial_rotary_factor: 0.5 } };
    assert.equal(width(type, name, inside), 16, name);
    assert.equal(width(type, name, { rope_scaling: linear }), 8, name);
  }
  assert.equal(width("phi3", "Phi3ForCausalLM", {}), 8);
  // The same with an object for each kind of layer.
  const layers = parse("olmo3", "Olmo3ForCausalLM", {
    head_dim: 16,
    rope_parameters: {
      full_attention: { rope_type: "default", partial_rotary_factor: 0.5 },
      sliding_attention: { rope_type: "default" },
    },
  });
  assert.deepEqual(layers.ropes.map(({ width }) => width), [16, 16]);
});

Deno.test("ministral3: queries grow once for each max_position_embeddings where nothing else is said", () => {
  const rope = { rope_type: "yarn", rope_theta: 1e5, factor: 4, llama_4_scaling_beta: 0.2 };
  const { layers } = parse("ministral3", "Ministral3ForCausalLM", {
    max_position_embeddings: 512,
    rope_parameters: rope,
  });
  const { attention } = layers[0] as ModelConfig["layers"][number];
  assert.ok(attention.kind === "heads");
  assert.deepEqual(attention.queryScale, { beta: 0.2, length: 512 });
});

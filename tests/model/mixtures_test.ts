import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { kvBytesPerToken } from "../../src/engine/load/paper.ts";
import { activeParameterCount, parameterCount } from "../../src/model/report/parameters.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";

type Change = Readonly<Record<string, unknown>>;

function golden(name: string, change: Change = {}): ModelConfig {
  const path = new URL(`../golden/${name}/config.json`, import.meta.url);
  return parseModelConfig(
    name,
    { ...JSON.parse(Deno.readTextFileSync(path)), ...change },
    undefined,
  );
}

const kinds = ({ layers }: ModelConfig) => layers.map(({ mlp }) => mlp.kind);

Deno.test("qwen3_moe: mixtures in every layer but those named and those between steps", () => {
  assert.deepEqual(kinds(golden("qwen3_moe")), ["mixture", "dense", "mixture"]);
  const step = { decoder_sparse_step: 2, mlp_only_layers: null };
  assert.deepEqual(kinds(golden("qwen3_moe", step)), ["dense", "mixture", "dense"]);
});

Deno.test("qwen3_moe: weights are divided by their sum where the config says so", () => {
  const normalize = (change: Change) =>
    golden("qwen3_moe", change).layers.map(({ mlp }) =>
      mlp.kind === "mixture" && mlp.routing.normalize
    );
  assert.deepEqual(normalize({}), [true, false, true]);
  assert.deepEqual(normalize({ norm_topk_prob: null }), [false, false, false]);
});

Deno.test("qwen3_next: weights are divided by their sum unless the config says no, in Qwen3.5 always", () => {
  const normalize = (name: string, change: Change) =>
    golden(name, change).layers.map(({ mlp }) => mlp.kind === "mixture" && mlp.routing.normalize);
  const [yes, no] = [true, false].map((norm_topk_prob) => ({ norm_topk_prob }));
  for (const change of [{}, yes]) {
    assert.ok(normalize("qwen3_next", change as Change).includes(true));
  }
  assert.ok(!normalize("qwen3_next", no as Change).includes(true));
  assert.ok(!normalize("qwen3_5_moe", no as Change).includes(false));
});

Deno.test("qwen3_next: without experts all layers are dense", () => {
  assert.deepEqual(new Set(kinds(golden("qwen3_next", { num_experts: 0 }))), new Set(["dense"]));
});

Deno.test("qwen3_5: the activation of MLPs is the convolution's too", () => {
  const change = { hidden_act: "gelu_pytorch_tanh" };
  const why = /hidden_act "gelu_pytorch_tanh", but layers of linear attention; expected "silu"/;
  assert.throws(() => golden("qwen3_5", change), why);
  assert.throws(() => golden("qwen3_next", { ...change, num_experts: 0 }), why);
});

Deno.test("qwen3_moe: a window is on all layers, whatever max_window_layers says", () => {
  const change = { use_sliding_window: true, sliding_window: 64, max_window_layers: 2 };
  const { layers } = golden("qwen3_moe", change);
  assert.deepEqual(layers.map(({ attention: { window } }) => window), [64, 64, 64]);
});

Deno.test("deepseek: the first layers are dense, the shared expert is n_shared_experts wide", () => {
  const config = golden("deepseek_v2_lite");
  assert.deepEqual(kinds(config), ["dense", "mixture", "mixture"]);
  const { mlp } = config.layers[1]!;
  assert.ok(mlp.kind === "mixture");
  assert.equal(mlp.shared?.intermediateSize, 64);
  const [, plain] = golden("deepseek_v2_lite", { n_shared_experts: null }).layers;
  assert.ok(plain?.mlp.kind === "mixture" && plain.mlp.shared === undefined);
});

Deno.test("latent attention: scores are scaled by yarn's mscale_all_dim, squared", () => {
  const scale = (name: string, change: Change = {}) => {
    const attention = golden(name, change).layers[0]?.attention;
    return attention?.kind === "latent" ? attention.scale : undefined;
  };
  const width = Math.sqrt(24 + 16);
  assert.equal(scale("deepseek_v3_plain"), 1 / width);
  assert.equal(scale("deepseek_v3"), (0.1 * Math.log(40) + 1) ** 2 / width);
  const lite = (0.1 * 0.707 * Math.log(40) + 1) ** 2 / width;
  assert.ok(Math.abs(scale("deepseek_v2_lite")! - lite) < 1e-12);
  assert.equal(scale("mistral4"), (0.1 * Math.log(16) + 1) ** 2 / Math.sqrt(16 + 16));
});

Deno.test("mistral4: what it leaves out is what transformers assumes, in mistral3 too", () => {
  const path = new URL("../../lab/shapes/mistral_small4.json", import.meta.url);
  const json = JSON.parse(Deno.readTextFileSync(path));
  const of = (text: Change) =>
    parseModelConfig("small4", { ...json, text_config: text }, undefined);
  const config = parseModelConfig("small4", json, undefined);
  const silent = { model_type: "mistral4", bos_token_id: 1, eos_token_id: 2 };
  assert.deepEqual(of(silent), config);
  const attention = config.layers[35]?.attention;
  assert.ok(attention?.kind === "latent");
  assert.deepEqual(attention.queryScale, { beta: 0.1, length: 8192 });
  assert.equal(config.ropes[0]?.width, 64);
  const rope = (change: Change) => ({ ...json.text_config.rope_parameters, ...change });
  const wrong = { ...silent, rope_parameters: rope({ partial_rotary_factor: 0.25 }) };
  assert.throws(() => of(wrong), /a rope of 32 elements, but qk_rope_head_dim 64/);
  const flat = of({ ...silent, rope_parameters: rope({ llama_4_scaling_beta: 0 }) }).layers[0];
  assert.equal(flat?.attention.kind === "latent" && flat.attention.queryScale, undefined);
  const { layers, ropes } = of({ ...silent, first_k_dense_replace: 2, rope_interleave: false });
  assert.deepEqual(layers.slice(1, 3).map(({ mlp }) => mlp.kind), ["dense", "mixture"]);
  assert.ok(layers[0]?.attention.kind === "latent" && !layers[0].attention.interleaved);
  assert.deepEqual(ropes, config.ropes);
  assert.throws(() => of({ ...silent, scoring_func: "sigmoid" }), /scoring_func "sigmoid"/);
});

Deno.test("lfm2_moe: the first layers are dense, experts have LFM2's names, alone or stacked", () => {
  const config = golden("lfm2_moe");
  assert.deepEqual(kinds(config), ["dense", "mixture", "mixture", "mixture"]);
  const specs = new Map(targetTensors(config).map((spec) => [spec.role, spec]));
  const names = ["router", "routerBias", "expertUp.7"].map((role) =>
    specs.get(`layers.2.${role}`)?.name
  );
  assert.deepEqual(names, [
    "model.layers.2.feed_forward.gate.weight",
    "model.layers.2.feed_forward.expert_bias",
    "model.layers.2.feed_forward.experts.7.w3.weight",
  ]);
  const stack = specs.get("layers.2.expertUp.7")?.stack;
  assert.deepEqual([stack?.names, stack?.first], [
    ["model.layers.2.feed_forward.experts.gate_up_proj"],
    15 * 32,
  ]);
  assert.throws(() => golden("lfm2_moe", { use_expert_bias: false }), /use_expert_bias false/);
  assert.throws(() => golden("lfm2_moe", { conv_bias: true }), /conv_bias true/);
});

Deno.test("deepseek: what is kept of a token is its latent and one rotated key", () => {
  assert.equal(kvBytesPerToken(golden("deepseek_v3")), 2 * (32 + 16) * 4);
  assert.equal(kvBytesPerToken(golden("deepseek_v3"), "bf16"), 2 * (32 + 16) * 2);
});

Deno.test("tensors of experts have the expert's number; all count, a token uses a few", () => {
  const specs = targetTensors(golden("mixtral"));
  const spec = specs.find(({ role }) => role === "layers.1.expertDown.4");
  assert.equal(spec?.name, "model.layers.1.block_sparse_moe.experts.4.w2.weight");
  assert.deepEqual(spec.shape, [64, 64]);
  const expert = 3 * 64 * 64;
  const unused = 2 * (6 - 2) * expert; // layers, experts that are not chosen
  assert.equal(activeParameterCount(specs), parameterCount(specs) - unused);
});

for (
  const [name, change, message] of [
    [
      "mixtral",
      { num_experts_per_tok: 7 },
      /num_experts_per_tok 7, expected an integer from 1 to 6/,
    ],
    [
      "mixtral",
      { num_local_experts: 1024, num_hidden_layers: 65 },
      /1024 experts in 65 layers, expected at most 65536 together/,
    ],
    ["mixtral", { num_local_experts: 0 }, /num_local_experts 0/],
    ["mixtral", { hidden_act: "gelu_pytorch_tanh" }, /experts with gelu_tanh, expected silu/],
    ["qwen3_moe", { moe_intermediate_size: 20 }, /moe_intermediate_size 20, expected a multiple/],
    ["deepseek_v2_groups", { n_group: 5 }, /12 experts in 5 groups/],
    ["deepseek_v2_groups", { topk_group: 1, num_experts_per_tok: 4 }, /room for 4 experts/],
    ["deepseek_v2_groups", { topk_group: 5 }, /topk_group 5, expected an integer from 1 to 4/],
    ["deepseek_v2_lite", { topk_method: "noaux_tc" }, /topk_method "noaux_tc", known are greedy/],
    ["deepseek_v2_lite", { norm_topk_prob: true }, /norm_topk_prob true, expected false/],
    ["deepseek_v2_lite", { moe_layer_freq: 2 }, /moe_layer_freq 2, expected 1/],
    ["deepseek_v2_lite", { kv_lora_rank: 4096 }, /kv_lora_rank 4096, expected a multiple of 8/],
    ["deepseek_v2_lite", { attention_bias: true }, /attention_bias true, expected false/],
    ["deepseek_v3", { scoring_func: "softmax" }, /scoring_func "softmax", expected "sigmoid"/],
    ["deepseek_v3", { n_group: 9, topk_group: 9 }, /9 experts in 9 groups/],
    ["deepseek_v3", { qk_rope_head_dim: 12 }, /qk_rope_head_dim 12/],
  ] as const
) {
  Deno.test(`${name} with ${JSON.stringify(change)} is refused`, () => {
    assert.throws(() => golden(name, change), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, message);
      return true;
    });
  });
}

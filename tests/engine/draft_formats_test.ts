/**
 * A head written in a published format must draft what the original head drafts. Variants that the
 * embedded heads lack (norms before fc, biases) are built so that the drafts stay the same
 * mathematically, which only holds if the variant's own steps are computed.
 */
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { openGpu } from "../gpu/shared.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import {
  bf16,
  but,
  embeddedHead,
  type Head,
  type HeadFiles,
  rename,
  safetensorsFiles,
  scaleColumns,
  type Stored,
  type Tensors,
  torchFiles,
  valuesOf,
} from "../model/draft_formats.ts";
import { decode, type Decoded, goldenCases, openWhole } from "./fledgling.ts";
import { drawn } from "../exhaustive.ts";

// Some of its drafts are accepted and some are not.
const PROMPT = goldenCases().find(({ task }) => task === "poem")?.prompt_ids ?? [];
const HIDDEN = 256;
const eagle3 = embeddedHead("eagle3");
const eagle1 = embeddedHead("eagle1");
const embedTokens = embeddedHead("target").tensors["model.embed_tokens.weight"] as Stored;
// The row of a token that these texts do not have is another, so that the head's own is loaded.
const ownEmbedding = { ...embedTokens, bytes: embedTokens.bytes.with(-1, 0x7b) };

let gpu: Gpu | undefined;

/** What the embedded target makes of the prompt with this head: tokens and every draft. */
async function drafted(files: HeadFiles): Promise<Decoded | undefined> {
  const draft = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    for (const [file, bytes] of Object.entries(files)) {
      await Deno.writeFile(`${draft}/${file}`, bytes);
    }
    gpu ??= await openGpu();
    using models = openModels({ draft });
    assert.deepEqual(models.warnings, []);
    const runner = await openRunner(gpu, await loadWeights(gpu, models), {
      batch: 1,
      shapes: chains([3]),
      prefillRows: 64,
      contextLength: 160,
      pages: 11,
    });
    using sequence = openWhole(runner);
    const [output] = await decode(runner, [sequence], [PROMPT], {
      numSteps: 3,
      most: 24,
      sampling: [GREEDY],
    });
    return output;
  } finally {
    await Deno.remove(draft, { recursive: true });
  }
}

const references = new Map<Head, Promise<Decoded | undefined>>();

/** `files` must draft what `head` does, token for token. */
async function same(files: HeadFiles, head: Head): Promise<void> {
  const reference = references.getOrInsertComputed(head, () => drafted(safetensorsFiles(head)));
  const expected = await reference;
  assert.ok(expected && expected.accepted.some((count) => count > 0), "drafts that are accepted");
  assert.deepEqual(await drafted(files), expected);
}

const LLAMA = { architectures: ["LlamaForCausalLM"] };
const LAYER_KEYS = [
  "model_type",
  "hidden_size",
  "intermediate_size",
  "num_attention_heads",
  "num_key_value_heads",
  "head_dim",
  "num_hidden_layers",
  "max_position_embeddings",
  "rms_norm_eps",
  "hidden_act",
  "vocab_size",
];

/** The nested config of a speculators file: a layer as transformers 5 writes it, and the verifier. */
function speculators(config: Head["config"], more: Head["config"]): Head["config"] {
  const layer = Object.fromEntries(LAYER_KEYS.map((key) => [key, config[key]]));
  return {
    model_type: "speculators",
    speculators_version: "0.3.0",
    speculators_config: {
      algorithm: "eagle3",
      default_proposal_method: "greedy",
      proposal_methods: [{ proposal_type: "greedy", speculative_tokens: 3 }],
      verifier: { name_or_path: "fledgling", architectures: ["LlamaForCausalLM"] },
    },
    transformer_layer_config: { ...layer, rope_parameters: { rope_theta: 10000 } },
    ...more,
  };
}

const layers0 = (name: string) => name.replace("midlayer.", "layers.0.");

const EAGLE3_FORMATS: Readonly<Record<string, HeadFiles>> = {
  "yuhuili: pytorch_model.bin, a Llama's name, no theta": torchFiles({
    config: { ...but(eagle3.config, "rope_theta", "head_dim"), ...LLAMA },
    tensors: eagle3.tensors,
  }),
  "lmsys and SpecForge: safetensors, own embedding, aux ids of outputs": safetensorsFiles({
    config: {
      ...eagle3.config,
      eagle_config: { eagle_aux_hidden_state_layer_ids: [1, 3, 4], use_aux_hidden_state: true },
    },
    tensors: { ...eagle3.tensors, "embed_tokens.weight": ownEmbedding },
  }),
  "AngelSlim and Tengyunw: pytorch_model.bin, head_dim, null fields": torchFiles({
    config: { ...eagle3.config, target_hidden_size: HIDDEN, rope_scaling: null },
    tensors: eagle3.tensors,
  }),
  "RedHat: speculators' nested config, layers.0, aux ids of inputs": safetensorsFiles({
    config: speculators(eagle3.config, {
      architectures: ["Eagle3Speculator"],
      speculators_model_type: "eagle3",
      draft_vocab_size: eagle3.config["draft_vocab_size"],
      eagle_aux_hidden_state_layer_ids: [2, 4, 5],
      norm_before_residual: false,
      norm_before_fc: false,
      fc_norm: false,
      norm_output: false,
      target_hidden_size: null,
      tie_word_embeddings: false,
    }),
    tensors: { ...rename(eagle3.tensors, layers0), "embed_tokens.weight": ownEmbedding },
  }),
  "NVIDIA: vLLM's name, a Qwen3 layer type without its norms": safetensorsFiles({
    config: {
      ...eagle3.config,
      architectures: ["Eagle3LlamaForCausalLM"],
      model_type: "qwen3",
      eagle_config: { norm_before_fc: false, use_aux_hidden_state: true },
    },
    tensors: rename(eagle3.tensors, (name) => name === "t2d" ? undefined : name),
  }),
};

const EAGLE1_FORMATS: Readonly<Record<string, HeadFiles>> = {
  "yuhuili: pytorch_model.bin, own embedding, no bias key": torchFiles({
    config: { ...but(eagle1.config, "bias"), ...LLAMA },
    tensors: { ...eagle1.tensors, "embed_tokens.weight": ownEmbedding },
  }),
  "SGLang's export: a prefix": safetensorsFiles({
    config: eagle1.config,
    tensors: rename(eagle1.tensors, (name) => `model.${name}`),
  }),
  "speculators: fusion_fc, transformer, and the verifier's head again": safetensorsFiles({
    config: speculators(eagle1.config, {
      architectures: ["EagleSpeculator"],
      speculators_model_type: "eagle",
      transformer_layer_architecture: "LlamaDecoderLayer",
      layernorms: false,
      fusion_bias: true,
    }),
    tensors: {
      ...rename(
        eagle1.tensors,
        (name) => name.replace(/^fc\./, "fusion_fc.").replace("layers.0.", "transformer."),
      ),
      "lm_head.weight": embedTokens,
    },
  }),
};

for (const [head, formats] of [[eagle3, EAGLE3_FORMATS], [eagle1, EAGLE1_FORMATS]] as const) {
  for (const [what, files] of Object.entries(formats)) {
    Deno.test(`${head === eagle3 ? "EAGLE-3" : "EAGLE-1"}, ${what}`, () => same(files, head));
  }
}

/** A head with other tensors and config keys. */
function changed(head: Head, tensors: Tensors, config: Head["config"] = {}): Head {
  return { config: { ...head.config, ...config }, tensors: { ...head.tensors, ...tensors } };
}

function filled(size: number, value: (i: number) => number): Stored {
  return bf16([size], Array.from({ length: size }, (_, i) => value(i)));
}

/** 1, 2, 4 or 8: an exact factor that differs from column to column. */
const power = (i: number) => 2 ** (i * 7 % 4);
const fc3 = eagle3.tensors["fc.weight"] as Stored;
const fc1 = eagle1.tensors["fc.weight"] as Stored;

// norm_before_residual removes the scale of h, so what a norm before fc divides by does not matter.
const normed = changed(eagle3, {}, { norm_before_residual: true });

Deno.test("EAGLE-3.1, norm_before_fc: the weights of input_norm undo what fc was divided by", async () => {
  const tensors = {
    "fc.weight": scaleColumns(fc3, (column) => 1 / power(column)),
    "input_norm.weight": filled(3 * HIDDEN, power),
  };
  const config = { norm_before_residual: true, norm_before_fc: true };
  await same(safetensorsFiles(changed(eagle3, tensors, config)), normed);
});

for (const tap of [0, 1, 2]) {
  const { test } = tap === 0 ? Deno : drawn;
  test(`EAGLE-3.1, fc_norm: a head that reads tap ${tap} alone`, async () => {
    const only = (scale: (i: number) => number) => (column: number) =>
      Math.floor(column / HIDDEN) === tap ? scale(column % HIDDEN) : 0;
    const alone = changed(normed, { "fc.weight": scaleColumns(fc3, only(() => 1)) });
    const tensors = {
      "fc.weight": scaleColumns(fc3, only((i) => 1 / power(i))),
      ...Object.fromEntries([0, 1, 2].map((i) => {
        const norm = filled(HIDDEN, i === tap ? power : () => 3);
        return [`fc_norm.${i}.weight`, norm];
      })),
    };
    const files = safetensorsFiles(changed(normed, tensors, { fc_norm: true }));
    assert.deepEqual(await drafted(files), await drafted(safetensorsFiles(alone)));
  });
}

Deno.test("EAGLE-3.1, norm_output: a final norm of ones changes the scale that hidden_norm divides by", async () => {
  const flat = changed(normed, { "norm.weight": filled(HIDDEN, () => 1) });
  const files = safetensorsFiles(changed(flat, {}, { norm_output: true }));
  assert.deepEqual(await drafted(files), await drafted(safetensorsFiles(flat)));
  // Norm weights that are far from ones turn the hidden row, so there the switch must show.
  const steep = changed(normed, { "norm.weight": filled(HIDDEN, (i) => 4 ** (i % 5)) });
  const turned = await drafted(safetensorsFiles(changed(steep, {}, { norm_output: true })));
  assert.notDeepEqual(turned?.drafts, (await drafted(safetensorsFiles(steep)))?.drafts);
});

for (
  const [what, embedding, hidden] of [["embedding", 0, 1], ["hidden row", 1, 0]] as const
) {
  const { test } = what === "embedding" ? Deno : drawn;
  test(`EAGLE-1 of HASS: a norm of zeros leaves out the ${what}`, async () => {
    const left = (column: number) => column < HIDDEN ? embedding : hidden;
    const norms = (scale: number) => ({
      "embedding_layernorm.weight": filled(HIDDEN, () => embedding * scale),
      "hidden_states_layernorm.weight": filled(HIDDEN, () => hidden * scale),
    });
    const config = { add_para_norm: true };
    const zeros = changed(eagle1, norms(1), config);
    // Norm weights are doubled and the columns they meet halved; the norm of zeros makes the other columns idle.
    const halves = scaleColumns(fc1, (column) => left(column) / 2);
    const twice = changed(eagle1, { ...norms(2), "fc.weight": halves }, config);
    const [a, b] = [await drafted(safetensorsFiles(zeros)), await drafted(safetensorsFiles(twice))];
    assert.deepEqual(a, b);
    const plain = await drafted(safetensorsFiles(eagle1));
    assert.notDeepEqual(a?.drafts, plain?.drafts);
  });
}

Deno.test("Qwen2's biases: a constant v is the same as what o makes of it in the bias of fc", async () => {
  const [heads, kvHeads, headDim] = [8, 4, 32];
  const at = "layers.0.self_attn";
  const o = valuesOf(eagle1.tensors[`${at}.o_proj.weight`] as Stored);
  const v = Array.from({ length: kvHeads * headDim }, (_, i) => (i % 5 - 2) / 4);
  const zeros = (size: number) => filled(size, () => 0);
  const idle = {
    ...eagle1.tensors,
    [`${at}.v_proj.weight`]: bf16(
      [kvHeads * headDim, HIDDEN],
      new Array(kvHeads * headDim * HIDDEN).fill(0),
    ),
  };
  const group = heads / kvHeads;
  const mixed = (i: number) => v[Math.floor(i / headDim / group) * headDim + i % headDim] ?? 0;
  const added = Array.from(valuesOf(eagle1.tensors["fc.bias"] as Stored), (bias, row) => {
    let sum = bias;
    for (let i = 0; i < heads * headDim; i++) sum += (o[row * heads * headDim + i] ?? 0) * mixed(i);
    return sum;
  });
  const bytes = new Uint8Array(Float32Array.from(added).buffer);
  const inFc = { ...idle, "fc.bias": { dtype: "F32", shape: [HIDDEN], bytes } };
  const inV = {
    ...idle,
    [`${at}.q_proj.bias`]: zeros(heads * headDim),
    [`${at}.k_proj.bias`]: zeros(kvHeads * headDim),
    [`${at}.v_proj.bias`]: bf16([kvHeads * headDim], v),
  };
  const { config } = eagle1;
  const found = await drafted(
    torchFiles({ config: { ...config, model_type: "qwen2", attention_bias: true }, tensors: inV }),
  );
  assert.deepEqual(found, await drafted(safetensorsFiles({ config, tensors: inFc })));
  const without = await drafted(safetensorsFiles({ config, tensors: idle }));
  assert.notDeepEqual(found?.drafts, without?.drafts);
});

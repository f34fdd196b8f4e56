import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { UsageError } from "../../src/errors.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import type { HeadAttention } from "../../src/model/config/layer_config.ts";
import { LLAMA_NAMES } from "../../src/model/config/tensor_names.ts";
import { denseLayer } from "./dense_layer.ts";

/** A small Llama as transformers writes it. */
const LLAMA = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 64,
  intermediate_size: 160,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  vocab_size: 320,
};

const QWEN3 = { ...LLAMA, architectures: ["Qwen3ForCausalLM"], model_type: "qwen3", head_dim: 32 };

const LLAMA3_SCALING = {
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 8192,
};

function parse(config: unknown, generation?: unknown): ModelConfig {
  return parseModelConfig("toy", config, generation);
}

function attention({ layers: [layer] }: ModelConfig): HeadAttention {
  return denseLayer(layer).attention;
}

Deno.test("what config.json leaves unsaid is what transformers assumes", () => {
  const { layers, names, ...model } = parse(LLAMA);
  assert.deepEqual(model, {
    modelType: "llama",
    architecture: "LlamaForCausalLM",
    hiddenSize: 64,
    vocabSize: 320,
    maxPositions: 2048,
    rmsNormEps: 1e-6,
    normOffset: 0,
    embedScale: 1,
    logitCap: undefined,
    logitScale: 1,
    residualScale: 1,
    ropes: [{ theta: 10000, width: 16, scaling: { kind: "default" } }],
    tied: false,
    eosTokenIds: [],
  });
  assert.equal(names, LLAMA_NAMES);
  assert.equal(layers.length, 4);
  for (const layer of layers) {
    assert.deepEqual(layer, {
      attention: {
        kind: "heads",
        numHeads: 4,
        numKvHeads: 4,
        headDim: 16,
        scale: 0.25,
        cap: undefined,
        window: undefined,
        bias: false,
        qkNorm: "none",
        rope: 0,
      },
      mlp: { kind: "dense", intermediateSize: 160, activation: "silu" },
      norms: "before",
    });
  }
});

Deno.test("Qwen3 norms q and k and has its own head size", () => {
  const config = parse({ ...QWEN3, num_key_value_heads: 2, tie_word_embeddings: true });
  const { qkNorm, headDim, numKvHeads } = attention(config);
  const { tied, maxPositions } = config;
  assert.deepEqual({ qkNorm, headDim, numKvHeads, tied, maxPositions }, {
    qkNorm: "head",
    headDim: 32,
    numKvHeads: 2,
    tied: true,
    maxPositions: 32768,
  });
});

Deno.test("null counts as unsaid", () => {
  const config = { ...LLAMA, head_dim: null, rope_scaling: null, num_key_value_heads: null };
  assert.equal(attention(parse({ ...config, eos_token_id: null })).headDim, 16);
});

Deno.test("generation_config.json has the last word on end tokens", () => {
  assert.deepEqual(parse({ ...LLAMA, eos_token_id: 5 }).eosTokenIds, [5]);
  assert.deepEqual(parse({ ...LLAMA, eos_token_id: 5 }, { eos_token_id: [7, 8] }).eosTokenIds, [
    7,
    8,
  ]);
  assert.deepEqual(parse({ ...LLAMA, eos_token_id: [5, 6] }, {}).eosTokenIds, [5, 6]);
});

Deno.test("end ids that are no tokens end nothing", () => {
  assert.deepEqual(parse({ ...LLAMA, eos_token_id: [5, 320] }).eosTokenIds, [5]);
  assert.deepEqual(parse({ ...LLAMA, eos_token_id: 5 }, { eos_token_id: -1 }).eosTokenIds, []);
});

Deno.test("yarn: attn_factor sharpens attention besides, as in vLLM, where attention_factor is unsaid", () => {
  const factorOf = (change: Record<string, unknown>) => {
    const yarn = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 128 };
    const { scaling } = parse({ ...LLAMA, rope_scaling: { ...yarn, ...change } }).ropes[0] ?? {};
    return scaling?.kind === "yarn" ? scaling.attentionFactor : undefined;
  };
  const plain = 0.1 * Math.log(4) + 1;
  assert.equal(factorOf({}), plain);
  assert.equal(factorOf({ attn_factor: 0.875 }), plain * 0.875);
  assert.equal(factorOf({ attn_factor: 0.875, attention_factor: 2 }), 2);
});

Deno.test("every spelling of the same rope parses to the same", () => {
  const expected = {
    theta: 500000,
    width: 16,
    scaling: {
      kind: "llama3",
      factor: 8,
      lowFreqFactor: 1,
      highFreqFactor: 4,
      originalMaxPositions: 8192,
    },
  };
  const spellings = [
    { rope_theta: 500000, rope_scaling: { ...LLAMA3_SCALING, rope_type: "llama3" } },
    { rope_theta: 500000, rope_scaling: { ...LLAMA3_SCALING, type: "llama3" } },
    { rope_parameters: { ...LLAMA3_SCALING, rope_type: "llama3", rope_theta: 500000 } },
    {
      rope_theta: null,
      rope_parameters: { ...LLAMA3_SCALING, rope_type: "llama3", rope_theta: 500000 },
    },
    { rope_theta: 500000, rope_parameters: { ...LLAMA3_SCALING, rope_type: "llama3" } },
  ];
  for (const rope of spellings) assert.deepEqual(parse({ ...LLAMA, ...rope }).ropes, [expected]);
});

Deno.test("rope without scaling", () => {
  const plain = { theta: 1e6, width: 16, scaling: { kind: "default" } };
  const spellings = [
    { rope_theta: 1e6 },
    { rope_theta: 1e6, rope_scaling: null },
    { rope_theta: 1e6, rope_scaling: { rope_type: "default" } },
    { rope_parameters: { rope_type: "default", rope_theta: 1e6 } },
    { rope_parameters: { rope_theta: 1e6 } },
    { rope_theta: 1e6, rope_parameters: {} },
    { rope_theta: 1e6, rope_scaling: {} },
    { rope_theta: 1e6, rope_scaling: {}, rope_parameters: { rope_type: null } },
    { rope_theta: 1e6, rope_scaling: { factor: 2 } },
  ];
  for (const rope of spellings) assert.deepEqual(parse({ ...LLAMA, ...rope }).ropes, [plain]);
});

Deno.test("of two ropes rope_scaling is read, if there is anything in it", () => {
  const ropes = (change: Readonly<Record<string, unknown>>) => parse({ ...LLAMA, ...change }).ropes;
  const rope_parameters = { rope_type: "linear", factor: 4, rope_theta: 1e6 };
  const linear = { theta: 1e6, width: 16, scaling: { kind: "linear", factor: 4 } };
  assert.deepEqual(ropes({ rope_theta: 5e5, rope_parameters }), [linear]);
  assert.deepEqual(ropes({ rope_theta: 5e5, rope_parameters, rope_scaling: {} }), [linear]);
  const rope_scaling = { type: "linear", factor: 8 };
  const other = { theta: 5e5, width: 16, scaling: { kind: "linear", factor: 8 } };
  assert.deepEqual(ropes({ rope_theta: 5e5, rope_parameters, rope_scaling }), [other]);
});

Deno.test("llama3 and yarn were trained for max_position_embeddings where config.json does not say less", () => {
  const trained = (type: string) => {
    const { original_max_position_embeddings: _, ...rope } = LLAMA3_SCALING;
    const config = parse({
      ...LLAMA,
      max_position_embeddings: 512,
      rope_scaling: { type, ...rope },
    });
    const scaling = config.ropes[0]?.scaling;
    return scaling?.kind === "llama3" || scaling?.kind === "yarn"
      ? scaling.originalMaxPositions
      : undefined;
  };
  assert.deepEqual([trained("llama3"), trained("yarn")], [512, 512]);
});

for (
  const [change, message] of [
    [
      { architectures: ["GPT2LMHeadModel"] },
      /"GPT2LMHeadModel", known are Llama.*Qwen3ForCausalLM/,
    ],
    [
      { architectures: undefined, model_type: "gpt2" },
      /model_type "gpt2", known are llama, mistral, /,
    ],
    [{ model_type: undefined }, /model_type null, known are llama, mistral, /],
    [{ model_type: "qwen3" }, /architecture "LlamaForCausalLM" but model_type "qwen3"/],
    [{ architectures: ["toString"] }, /architecture "toString", known are/],
    [{ hidden_size: undefined }, /has no hidden_size/],
    [{ hidden_size: 0 }, /hidden_size 0, expected a multiple of 8/],
    [{ hidden_size: -64 }, /hidden_size -64/],
    [{ hidden_size: 60 }, /hidden_size 60/],
    [{ hidden_size: 1e12 }, /hidden_size 1000000000000/],
    [{ hidden_size: "64" }, /hidden_size "64"/],
    [{ intermediate_size: 161 }, /intermediate_size 161, expected a multiple of 8/],
    [{ num_hidden_layers: 1.5 }, /num_hidden_layers 1.5, expected an integer/],
    [{ num_hidden_layers: 1e9 }, /num_hidden_layers 1000000000/],
    [{ num_attention_heads: 3 }, /head_dim/],
    [{ num_key_value_heads: 3 }, /4 attention heads, expected a multiple of the 3/],
    [{ head_dim: 15 }, /head_dim 15, expected a multiple of 8/],
    [{ vocab_size: 1 }, /vocab_size 1/],
    [{ max_position_embeddings: 0 }, /max_position_embeddings 0/],
    [{ rms_norm_eps: 0 }, /rms_norm_eps 0, expected a number above 0/],
    [{ rope_theta: "1e4" }, /rope_theta "1e4"/],
    [{ eos_token_id: 1.5 }, /1.5 in eos_token_id, expected integers/],
    [{ eos_token_id: ["</s>"] }, /"<\/s>" in eos_token_id/],
    [{ attention_bias: true }, /attention_bias true, expected false/],
    [{ mlp_bias: true }, /mlp_bias true, expected false/],
    [{ use_sliding_window: true }, /use_sliding_window true, expected false/],
    [
      { layer_types: ["full_attention"] },
      /layer_types \["full_attention"\], expected one for each of its 4 layers/,
    ],
    [
      {
        sliding_window: 64,
        layer_types: [...Array(3).fill("full_attention"), "sliding_attention"],
      },
      /"sliding_attention", but no sliding_window/,
    ],
    [{ layer_types: Array(4).fill("sliding_attention") }, /"sliding_attention", but no sliding_w/],
    [{ layer_types: Array(4).fill("linear_attention") }, /"linear_attention", which those of this/],
    [{ hidden_act: "gelu" }, /hidden_act "gelu", known are "silu", "gelu_pytorch_tanh"/],
    [{ tie_word_embeddings: "yes" }, /tie_word_embeddings "yes", expected true or false/],
    [{ rope_scaling: { rope_type: "mrope" } }, /rope_type "mrope", known are default, linear/],
    [{ rope_scaling: { type: "toString" } }, /rope_type "toString", known are/],
    [{ rope_scaling: { type: "linear" } }, /rope_scaling has no factor/],
    [{ rope_scaling: { type: "linear", factor: 0.5 } }, /factor 0.5, expected at least 1/],
    [{ rope_scaling: { type: "su", short_factor: [1] } }, /no short_factor of 8 numbers above 0/],
    [{ rope_scaling: { rope_type: "llama3", factor: 2 } }, /rope_scaling has no low_freq_factor/],
    [
      { rope_scaling: { ...LLAMA3_SCALING, rope_type: "llama3", high_freq_factor: 1 } },
      /more than/,
    ],
    [{ rope_scaling: "llama3" }, /rope_scaling "llama3", expected an object/],
    [{ rope_parameters: { full_attention: { rope_theta: 1 } } }, /rope_type null/],
    [
      { rope_scaling: { type: "linear", factor: 2, partial_rotary_factor: 0.1 } },
      /partial_rotary_factor 0.1, expected an even number of/,
    ],
    [
      { rope_scaling: { type: "linear", factor: 2 }, partial_rotary_factor: 2 },
      /partial_rotary_factor 2, expected an even number of the 16/,
    ],
  ] as const
) {
  Deno.test(`config with ${JSON.stringify(change)} is refused`, () => {
    assert.throws(() => parse({ ...LLAMA, ...change }), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.ok(error.message.startsWith('Cannot use "toy": config.json '), error.message);
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("a number that is too large for a double is named, not null", () => {
  const config = JSON.parse(JSON.stringify(LLAMA).replace("{", '{"rope_theta":1e999,'));
  assert.throws(() => parse(config), /rope_theta Infinity, expected a number above 0/);
});

Deno.test("a file that holds no object is refused", () => {
  assert.throws(() => parse([]), /config.json is not a JSON object/);
  assert.throws(() => parse(LLAMA, 3), /generation_config.json is not a JSON object/);
});

Deno.test("no value of any field does worse than a UsageError", () => {
  const keys = [
    ...Object.keys(LLAMA),
    "rope_scaling",
    "rope_parameters",
    "eos_token_id",
    "head_dim",
  ];
  fc.assert(
    fc.property(fc.constantFrom(...keys), fc.jsonValue(), (key, json) => {
      try {
        parse({ ...LLAMA, [key]: json });
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
      }
    }),
    { numRuns: 500 },
  );
});

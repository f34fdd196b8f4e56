import assert from "node:assert/strict";
import { type InspectOptions, runInspect } from "../../src/cli/checkpoint/inspect.ts";
import { openModels } from "../../src/engine/load/load.ts";
import { UsageError } from "../../src/errors.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { shapesOf, tensorFile, withFolder } from "../model/folders.ts";

function folder(path: string): string {
  return new URL(`../../${path}`, import.meta.url).pathname;
}

function inspect(options: Partial<InspectOptions>): string {
  let printed = "";
  runInspect({ json: false, ...options }, (text) => printed += text);
  return printed;
}

Deno.test("inspect without options tells of the embedded model and its EAGLE-3 draft", () => {
  const text = inspect({});
  for (
    const fact of [
      "fledgling/target (LlamaForCausalLM)",
      "6,426,880",
      "tied lm_head",
      "1,024 tokens",
      "EAGLE3",
      "target layers 2, 4, 5",
      "draft and target fit together",
    ]
  ) assert.ok(text.includes(fact), `${fact} is not in\n${text}`);
  assert.ok(text.endsWith("\n"));
});

Deno.test("inspect tells how the model wants to be sampled", async () => {
  const model = await Deno.makeTempDir();
  for await (const { name } of Deno.readDir(folder("tests/golden/llama3"))) {
    await Deno.copyFile(`${folder("tests/golden/llama3")}/${name}`, `${model}/${name}`);
  }
  const config = { temperature: 0.6, top_p: 0.9, top_k: "many", repetition_penalty: 1.1 };
  await Deno.writeTextFile(`${model}/generation_config.json`, JSON.stringify(config));
  const text = inspect({ model });
  assert.match(text, /\nsampling +temperature 0\.6, top_p 0\.9, repetition_penalty 1\.1\n/);
  assert.match(text, /\nwarning +generation_config\.json has top_k "many"; it is not used\n/);
  assert.deepEqual(JSON.parse(inspect({ model, json: true })).generation, {
    temperature: 0.6,
    top_p: 0.9,
    repetition_penalty: 1.1,
  });
  await Deno.remove(model, { recursive: true });
  assert.match(inspect({}), /\nsampling +generation_config\.json says nothing\n/);
});

Deno.test("inspect of a folder has no draft unless asked; none means none", () => {
  assert.match(inspect({ model: folder("tests/golden/llama3") }), /draft +none\n/);
  assert.match(inspect({ draft: "none" }), /draft +none\n/);
});

Deno.test("inspect of a whole model as a draft: STANDALONE, where it has the target's tokens", () => {
  const itself = inspect({ draft: folder("models/fledgling/target") });
  assert.match(itself, /^algorithm +STANDALONE$/m);
  assert.match(itself, /^fit +draft and target fit together$/m);
  const other = inspect({ draft: folder("tests/golden/llama3") });
  assert.match(other, /^fit +the draft has no tokenizer.json that lists its tokens$/m);
});

Deno.test("inspect says why a draft does not fit", () => {
  const options = { model: folder("tests/golden/qwen3"), draft: folder("models/fledgling/eagle1") };
  assert.match(inspect(options), /fit +the draft is made for hidden states of 256/);
  const { draft } = JSON.parse(inspect({ ...options, json: true }));
  assert.equal(draft.fits, false);
});

Deno.test("inspect --json has the same facts in snake_case", () => {
  const { target, draft, memory } = JSON.parse(inspect({ json: true }));
  assert.equal(target.vocab_size, 2048);
  assert.equal(target.kv_bytes_per_token, 2 * 4 * 8 * 4 * 32);
  assert.deepEqual(target.dtypes, [{ name: "BF16", tensors: 74, bytes: 12853760 }]);
  assert.deepEqual(draft.aux_layers, [2, 4, 5]);
  assert.equal(draft.misfit, null);
  assert.ok(memory.total_bytes > memory.weight_bytes);
});

Deno.test("inspect --quantize predicts fewer bytes; the embedding and its tied head stay", () => {
  const bytes = (options: Partial<InspectOptions>) =>
    JSON.parse(inspect({ ...options, json: true })).memory.weight_bytes;
  const embedding = 2048 * 256;
  const matrices = 6_426_880 - embedding - (8 * 2 + 1) * 256;
  const plain = bytes({ draft: "none" });
  assert.equal(plain - bytes({ draft: "none", quantize: "q8" }), matrices * (2 - 1 - 1 / 16));
  assert.equal(plain - bytes({ draft: "none", quantize: "q4" }), matrices * (2 - 1 / 2 - 1 / 16));
  const draftKept = bytes({}) - bytes({ quantize: "q4" });
  assert.equal(draftKept, plain - bytes({ draft: "none", quantize: "q4" }));
  assert.ok(bytes({ quantize: "q4", quantizeDraft: true }) < bytes({ quantize: "q4" }));
  assert.match(inspect({ quantize: "q4" }), /^quantized +56 matrices to q4$/m);
  assert.throws(() => inspect({ quantizeDraft: true }), /Cannot use --quantize-draft/);
});

Deno.test("inspect says which matrices stay as they are", () => {
  const model = folder("tests/golden/llama3");
  assert.match(inspect({ model, quantize: "q8" }), /^quantized +\d+ matrices to q8; \d+ stay/m);
});

Deno.test("inspect --kv-dtype halves keys and values", () => {
  const memory = (kvDtype?: "bf16") => JSON.parse(inspect({ kvDtype, json: true })).memory;
  const [wide, narrow] = [memory(), memory("bf16")];
  assert.equal(narrow.kv_bytes_per_token, wide.kv_bytes_per_token / 2);
  assert.equal(wide.total_bytes - narrow.total_bytes, narrow.kv_bytes);
  assert.match(inspect({ kvDtype: "bf16" }), /keys and values a token, bf16/);
});

Deno.test("inspect tells what kinds of layers a model has", () => {
  const facts: Readonly<Record<string, readonly string[]>> = {
    qwen3_5: [
      "layers        6, hidden 64, mlp 128",
      "              4 Gated DeltaNet, 2 attention",
      "heads         4 query, 2 key/value, 32 wide, q and k normed, output gate",
      "rope          theta 10000",
      "nextn         1 layer for multi-token prediction (MTP), not in the checkpoint",
    ],
    deepseek_v3: ["nextn         1 layer for multi-token prediction (MTP), in the checkpoint"],
    lfm2: ["              3 short convolution, 1 attention"],
    gpt_oss: [
      "heads         4 query, 2 key/value, 32 wide, attention sinks",
      "window        16 tokens in 2 layers (0, 2)",
    ],
    gemma4_e: [
      "              per-layer embeddings 16 wide",
      "              3 layers read keys and values of others",
      "window        16 tokens in 4 layers (all but layers 2, 5)",
      "rope          theta 1000000, proportional, pairs 8, factor 1, in 2 layers (2, 5)",
      "              theta 10000, in 4 layers (all but layers 2, 5)",
    ],
    glm4_moe_lite: [
      "              3 latent attention (MLA)",
      "heads         4 query, latents of 32 + 16, 48 wide",
    ],
    smollm3: [
      "rope          theta 10000, in 3 layers (all but layer 3)",
      "              none, in 1 layer (3)",
    ],
    mistral: ["window        8 tokens in 3 layers"],
  };
  for (const [name, lines] of Object.entries(facts)) {
    const printed = inspect({ model: folder(`tests/golden/${name}`) });
    for (const line of lines) assert.ok(printed.split("\n").includes(line), `${line}\n${printed}`);
  }
});

Deno.test("inspect of a Llama prints nothing of layers that it has not", () => {
  const lines = inspect({ model: folder("tests/golden/llama3") }).split("\n");
  assert.deepEqual(lines.slice(0, 8).map((line) => line.split(" ")[0]), [
    "target",
    "parameters",
    "dtypes",
    "layers",
    "heads",
    "vocabulary",
    "context",
    "rope",
  ]);
  assert.ok(lines.includes("layers        4, hidden 64, mlp 160"));
  assert.ok(lines.includes("heads         4 query, 2 key/value, 16 wide"));
  assert.ok(!/MTP|MLA|window|sinks|gate|per-layer/.test(lines.join("\n")));
});

Deno.test("inspect shortens long lists of layers in equal steps", () => {
  const config = {
    architectures: ["SmolLM3ForCausalLM"],
    model_type: "smollm3",
    hidden_size: 16,
    intermediate_size: 24,
    num_hidden_layers: 20,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    vocab_size: 40,
  };
  const shapes = shapesOf(targetTensors(parseModelConfig("long", config, undefined)));
  withFolder({ "config.json": config, "model.safetensors": tensorFile(shapes) }, (model) => {
    const printed = inspect({ model });
    assert.match(printed, /^rope .*, in 15 layers \(all but layers 3, 7, \.\.\., 19\)$/m);
    assert.match(printed, /^ +none, in 5 layers \(3, 7, \.\.\., 19\)$/m);
  });
});

Deno.test("inspect --json tells of layers too", () => {
  const { target } = JSON.parse(inspect({ model: folder("tests/golden/qwen3_5"), json: true }));
  assert.deepEqual(target.layer_kinds, [
    { kind: "gated_deltanet", layers: 4, indices: [0, 1, 2, 4] },
    { kind: "attention", layers: 2, indices: [3, 5] },
  ]);
  assert.deepEqual(target.nextn, { layers: 1, in_checkpoint: false });
  assert.deepEqual([target.output_gate, target.attention_sinks], [true, false]);
  assert.deepEqual(target.ropes[0].indices, [3, 5]);
  assert.deepEqual([target.window_indices, target.per_layer_embedding_width], [[], null]);
});

Deno.test("a head given as the model is told as a draft, wherever a model is opened", () => {
  for (const head of ["eagle1", "eagle3"]) {
    const model = folder(`models/fledgling/${head}`);
    const message =
      `Cannot use "${model}" as a model: it is an EAGLE head, a draft; give it with --draft`;
    assert.throws(() => inspect({ model }), { name: "UsageError", message });
    assert.throws(() => openModels({ model }), { name: "UsageError", message });
  }
});

Deno.test("inspect of nothing is a usage error", () => {
  assert.throws(() => inspect({ model: "/nowhere" }), UsageError);
});

import assert from "node:assert/strict";
import { type InspectOptions, runInspect } from "../../src/cli/checkpoint/inspect.ts";
import { UsageError } from "../../src/errors.ts";

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

Deno.test("inspect of nothing is a usage error", () => {
  assert.throws(() => inspect({ model: "/nowhere" }), UsageError);
});

import assert from "node:assert/strict";
import { locate } from "../../../src/cli/open/locate.ts";
import { COMMIT, testCache, text, toyFiles } from "../../hub/caches.ts";
import { startHub } from "../../hub/hub.ts";
import { fakeIo } from "../fake.ts";

const LLAMA = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 64,
  intermediate_size: 160,
  num_hidden_layers: 1,
  num_attention_heads: 4,
  vocab_size: 320,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
};

interface Repository {
  readonly config: Readonly<Record<string, unknown>>;
  readonly generation?: Readonly<Record<string, unknown>>;
  readonly tokenizer?: boolean;
}

/** What comes of `locate` for a repository as the target or as the draft, and whether weights were sent. */
async function fetched(
  { config, generation, tokenizer = true }: Repository,
  as: "model" | "draft" = "model",
): Promise<{ readonly message: string | undefined; readonly weights: boolean }> {
  const { "tokenizer.json": vocabulary, ...files } = toyFiles();
  const all = {
    ...files,
    "config.json": text(JSON.stringify(config)),
    ...generation ? { "generation_config.json": text(JSON.stringify(generation)) } : {},
    ...tokenizer ? { "tokenizer.json": vocabulary as Uint8Array } : {},
  };
  await using server = startHub({ "org/toy": [{ files: all, commit: COMMIT }] });
  using cache = testCache();
  const { settings } = cache.hub(server);
  const notices = { io: fakeIo(), quiet: true, hub: settings };
  const message = await locate({ [as]: "org/toy" }, notices)
    .then(() => undefined, (error: Error) => error.message);
  return { message, weights: server.sent() > 200_000 };
}

Deno.test("a model that its texts rule out is refused before its weights are downloaded", async () => {
  const cases: readonly (readonly [Repository, RegExp])[] = [
    [
      { config: { ...LLAMA, architectures: ["NemotronHForCausalLM"] } },
      /^Cannot use "org\/toy": config.json has architecture "NemotronHForCausalLM", known are /,
    ],
    [
      { config: { ...LLAMA, quantization_config: { quant_method: "bitsandbytes" } } },
      /quant_method "bitsandbytes", supported are /,
    ],
    [{ config: { ...LLAMA, mlp_bias: true } }, /mlp_bias true, expected false/],
    [{ config: LLAMA, generation: { eos_token_id: "</s>" } }, /"<\/s>" in eos_token_id/],
    [{ config: LLAMA, tokenizer: false }, /no tokenizer.json; .* tekken.json, transformers makes/],
  ];
  for (const [repository, expected] of cases) {
    const { message, weights } = await fetched(repository);
    assert.match(message ?? "", expected);
    assert.equal(weights, false);
  }
  assert.deepEqual(await fetched({ config: LLAMA }), { message: undefined, weights: true });
});

Deno.test("a draft needs no tokenizer, nor what only a target is held to", async () => {
  const found = { message: undefined, weights: true };
  assert.deepEqual(await fetched({ config: LLAMA, tokenizer: false }, "draft"), found);
  const head = { ...LLAMA, architectures: ["LlamaForCausalLMEagle3"], attention_bias: true };
  assert.deepEqual(await fetched({ config: head, tokenizer: false }, "draft"), found);
  const { message, weights } = await fetched(
    { config: { ...LLAMA, architectures: ["NemotronHForCausalLM"] } },
    "draft",
  );
  assert.match(message ?? "", /architecture "NemotronHForCausalLM"/);
  assert.equal(weights, false);
});

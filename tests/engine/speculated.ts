/** The golden models with a draft of random weights beside them. */
import { checkModels, loadWith } from "../../src/engine/load/load.ts";
import type { ElasticOption } from "../../src/engine/load/make_weights.ts";
import { openQuantizers } from "../../src/engine/load/quantize.ts";
import { withTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import type { OpenedModels } from "../../src/engine/load/opened_models.ts";
import type { LoadedWeights } from "../../src/engine/device/models.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { QuantizeChoice } from "../../src/model/config/quantize_choice.ts";
import { randomCheckpoint } from "../../src/model/weights/random_checkpoint.ts";
import { randomWeights } from "../../src/model/weights/random_weights.ts";
import { checkpointWeights } from "../../src/model/weights/weights.ts";

/** One of each kind of layers; all architectures are decoded with drafts by tests/lossless/families_test.ts. */
export const SPECULATED: readonly string[] = [
  "llama2",
  "mistral",
  "qwen2_window",
  "qwen3",
  "phi4_mini",
  "olmo2",
  "gemma2",
  "gemma3",
  "mixtral",
  "qwen3_moe",
  "deepseek_v2_groups",
  "deepseek_v3",
  "gpt_oss",
  "gemma4_e",
  "gemma4_moe",
  "ernie4_5_moe",
  "hunyuan_dense",
  "laguna",
];

export function folderOf(name: string): string {
  return new URL(`../golden/${name}`, import.meta.url).pathname;
}

/** The golden with an EAGLE-3 head that has no weights: a Llama layer. */
export async function openSpeculated(name: string): Promise<OpenedModels> {
  const target = openCheckpoint(folderOf(name));
  const draftFile = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(draftFile, JSON.stringify(draftConfig(target.json("config.json"))));
  try {
    return checkModels(target, randomCheckpoint(draftFile, "draft"));
  } finally {
    await Deno.remove(draftFile);
  }
}

/** The golden's weights, and random ones for the draft, in buffers of its own where it may leave the GPU. */
export async function loadSpeculated(
  gpu: Gpu,
  models: OpenedModels,
  { elasticDraft, ...choice }: QuantizeChoice & ElasticOption = {},
): Promise<LoadedWeights> {
  using quantizers = openQuantizers(gpu, choice);
  const random = randomWeights(gpu, { seed: 7, ...quantizers.of("draft") });
  const weights = await loadWith(
    gpu,
    models,
    (checkpoint, part) =>
      part === "target" ? checkpointWeights(gpu, checkpoint, quantizers.of(part)) : random,
    { elasticDraft },
  );
  random.fillAll();
  return await withTensorMatrices(gpu, weights);
}

/** config.json of an EAGLE-3 head for a target with this one. */
export function draftConfig(target: unknown): unknown {
  const { hidden_size, vocab_size } = target as Record<string, number>;
  return {
    architectures: ["LlamaForCausalLMEagle3"],
    model_type: "llama",
    hidden_size,
    vocab_size,
    intermediate_size: 64,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    head_dim: 16,
    draft_vocab_size: vocab_size,
    eagle_aux_hidden_state_layer_ids: [0, 1, 1],
  };
}

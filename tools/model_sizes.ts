/**
 * Writes presets/model_sizes.json: sizes of the models of presets/models.json, computed from their configs.
 *
 *     deno run -A tools/model_sizes.ts
 */
import models from "../presets/models.json" with { type: "json" };
import { knownPair } from "../src/cli/open/drafts.ts";
import type { ModelSizes } from "../src/cli/hub/known.ts";
import { sequenceMemory } from "../src/engine/load/memory_report.ts";
import type { PaperModels } from "../src/engine/load/paper.ts";
import type { Quantization } from "../src/gpu/weight_format.ts";
import { parseModelConfig } from "../src/model/config/config.ts";
import { fieldsOf } from "../src/model/files/fields.ts";
import type { TensorInfo } from "../src/model/files/safetensors.ts";
import type { ModelConfig } from "../src/model/config/types.ts";
import { parameterCount } from "../src/model/report/parameters.ts";
import { publishedHead, tensorsAlone } from "../src/model/weights/random_checkpoint.ts";
import { draftTensors, targetTensors } from "../src/model/weights/tensors.ts";

/** A row of presets/models.json: the fields of a config.json that determine the shapes. */
export interface ListedModel {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** The files also hold the lm_head, although it is tied to the embedding. */
  readonly storesTiedHead?: boolean;
}

/** Draft vocabulary of published EAGLE-3 heads. */
const HEAD_TOKENS = 32_000;
/** headDim of a draft head whose target has latent attention. */
const HEAD_DIM = 128;

/** Sizes of a model. Memory is what an engine would allocate, with a draft of the kind that is known for the model. */
export function modelSizes({ name, config: json, storesTiedHead }: ListedModel): ModelSizes {
  const config = parseModelConfig(name, json, undefined);
  const specs = targetTensors(config);
  const isMxfp4 = json["quantization_config"] !== undefined;
  const checkpoint = { name, tensors: tensorsAlone(specs, isMxfp4) };
  const pair = knownPair(name, {});
  const draft = pair && headLike(name, { json, config, algorithm: pair.algorithm });
  const memory = (quantize: Quantization | undefined) =>
    sequenceMemory({ target: { checkpoint, config }, draft }, { quantize }).total;
  const stored = checkpoint.tensors.values().reduce((sum, tensor) => sum + fileBytes(tensor), 0);
  return {
    parameters: parameterCount(specs),
    download: stored + (storesTiedHead ? 2 * config.vocabSize * config.hiddenSize : 0),
    bf16: memory(undefined),
    q8: memory("q8"),
    q4: memory("q4"),
  };
}

/** Bytes of a tensor in a file, where MXFP4 takes 17 bytes for 32 numbers. */
function fileBytes({ dtypeName, shape, size }: TensorInfo): number {
  return dtypeName === "MXFP4" ? shape.reduce((product, n) => product * n, 17 / 32) : size;
}

/** A draft head as wide as the target: one bf16 layer of Llama's kind with the target's sizes. */
function headLike(
  name: string,
  { json, config: { hiddenSize, vocabSize, maxPositions, layers: [first] }, algorithm }: {
    readonly json: ListedModel["config"];
    readonly config: ModelConfig;
    readonly algorithm: string;
  },
): NonNullable<PaperModels["draft"]> {
  const eagle3 = algorithm === "EAGLE3";
  const heads = first?.attention.kind === "heads" ? first.attention : {
    numHeads: hiddenSize / HEAD_DIM,
    numKvHeads: hiddenSize / HEAD_DIM,
    headDim: HEAD_DIM,
  };
  const config = publishedHead(fieldsOf(name, "config.json", {
    model_type: "llama",
    architectures: [eagle3 ? "LlamaForCausalLMEagle3" : "LlamaForCausalLMEagle"],
    hidden_size: hiddenSize,
    intermediate_size: json["intermediate_size"],
    num_hidden_layers: 1,
    num_attention_heads: heads.numHeads,
    num_key_value_heads: heads.numKvHeads,
    head_dim: heads.headDim,
    vocab_size: vocabSize,
    max_position_embeddings: maxPositions,
    ...eagle3 ? { draft_vocab_size: HEAD_TOKENS } : {},
  }));
  return { checkpoint: { name, tensors: tensorsAlone(draftTensors(config)) }, config };
}

if (import.meta.main) {
  const listed: readonly ListedModel[] = models;
  const sizes = Object.fromEntries(listed.map((model) => [model.name, modelSizes(model)]));
  const path = new URL("../presets/model_sizes.json", import.meta.url);
  await Deno.writeTextFile(path, `${JSON.stringify(sizes, null, 2)}\n`);
}

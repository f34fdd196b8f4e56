/** Small quantized models in memory, and what they stand for. */
import type { Checkpoint } from "../../../src/model/files/checkpoint_type.ts";
import { parseModelConfig } from "../../../src/model/config/config.ts";
import { targetTensors, type TensorSpec } from "../../../src/model/weights/tensors.ts";
import { numbers } from "../../gpu/numbers.ts";
import { safetensors, toyCheckpoint } from "../folders.ts";
import type { Layout, Stored } from "./layouts.ts";

/** config.json of a target wide enough for groups of 128, and for a last one of 64. */
export const CONFIG: Readonly<Record<string, unknown>> = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 128,
  intermediate_size: 192,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 64,
  max_position_embeddings: 256,
};

/**
 * DeepSeek-V3: latent attention, a dense layer and one of experts, widths of whole groups of 32. The
 * 160 rows of kv_b_proj are two blocks of scales, cut within a head.
 */
export const DEEPSEEK: Readonly<Record<string, unknown>> = {
  architectures: ["DeepseekV3ForCausalLM"],
  model_type: "deepseek_v3",
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 64,
  max_position_embeddings: 256,
  first_k_dense_replace: 1,
  kv_lora_rank: 32,
  q_lora_rank: 64,
  qk_nope_head_dim: 24,
  qk_rope_head_dim: 16,
  v_head_dim: 16,
  moe_intermediate_size: 32,
  n_routed_experts: 9,
  num_experts_per_tok: 4,
  n_group: 3,
  topk_group: 2,
};

/** A safetensors file with these tensors. */
export function fileOf(tensors: readonly Stored[]): Uint8Array<ArrayBuffer> {
  let at = 0;
  const header = Object.fromEntries(tensors.map(({ name, dtype, shape, bytes }) => {
    const begin = at;
    at += bytes.length;
    return [name, { dtype, shape, data_offsets: [begin, at] }];
  }));
  const file = safetensors(header, at);
  let to = file.length - at;
  for (const { bytes } of tensors) {
    file.set(bytes, to);
    to += bytes.length;
  }
  return file;
}

/** Matrices, and kv_b_proj as DeepSeek has it, but neither embedding and lm_head nor routers. */
function isQuantized({ name, kind }: TensorSpec): boolean {
  return name.endsWith("kv_b_proj.weight") || kind === "matrix" && name !== "lm_head.weight";
}

/** The model in a layout, and the same model with its weights in float32. */
export function bothOf(layout: Layout, config: typeof CONFIG = CONFIG): {
  readonly quantized: Checkpoint;
  readonly float: Checkpoint;
  /** f32 of each quantized matrix by its name. */
  readonly values: ReadonlyMap<string, Float32Array>;
} {
  const specs = targetTensors(parseModelConfig("toy", config, undefined));
  const [packed, plain]: [Stored[], Stored[]] = [[], []];
  const values = new Map<string, Float32Array>();
  for (const [i, spec] of specs.entries()) {
    const { name, shape } = spec;
    const f32 = (of: Float32Array): Stored => {
      return { name, dtype: "F32", shape, bytes: new Uint8Array(of.slice().buffer) };
    };
    const [rows = 0, cols = 0] = shape;
    if (!isQuantized(spec)) {
      const tensor = f32(numbers(rows * (cols || 1), i));
      packed.push(tensor);
      plain.push(tensor);
      continue;
    }
    const written = layout.write({ prefix: name.replace(/\.weight$/, ""), rows, cols });
    packed.push(...written.stored);
    plain.push(f32(written.values));
    values.set(name, written.values);
  }
  const quantized = { ...config, quantization_config: layout.config };
  return {
    quantized: toyCheckpoint({ "config.json": quantized, "model.safetensors": fileOf(packed) }),
    float: toyCheckpoint({ "config.json": config, "model.safetensors": fileOf(plain) }),
    values,
  };
}

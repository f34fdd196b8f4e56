/** Small quantized models in memory, and what they stand for. */
import type { Checkpoint } from "../../../src/model/checkpoint.ts";
import { parseModelConfig } from "../../../src/model/config.ts";
import { targetTensors } from "../../../src/model/tensors.ts";
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

/** The model in a layout, and the same model with its weights in float32. */
export function bothOf(layout: Layout): {
  readonly quantized: Checkpoint;
  readonly float: Checkpoint;
  /** f32 of each quantized matrix by its name. */
  readonly values: ReadonlyMap<string, Float32Array>;
} {
  const specs = targetTensors(parseModelConfig("toy", CONFIG, undefined));
  const [packed, plain]: [Stored[], Stored[]] = [[], []];
  const values = new Map<string, Float32Array>();
  for (const [i, { name, shape, kind }] of specs.entries()) {
    const f32 = (of: Float32Array): Stored => {
      return { name, dtype: "F32", shape, bytes: new Uint8Array(of.slice().buffer) };
    };
    const [rows = 0, cols = 0] = shape;
    if (kind !== "matrix" || name === "lm_head.weight") {
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
  const config = { ...CONFIG, quantization_config: layout.config };
  return {
    quantized: toyCheckpoint({ "config.json": config, "model.safetensors": fileOf(packed) }),
    float: toyCheckpoint({ "config.json": CONFIG, "model.safetensors": fileOf(plain) }),
    values,
  };
}

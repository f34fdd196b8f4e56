/** Model folders with weights made up, for drafts that mostly err. */
import { parseModelConfig } from "../../src/model/config/config.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { hash32 } from "../../src/speculate/noise.ts";

/** A small Qwen3: another architecture than the embedded model's. */
export const TINY_QWEN3: Readonly<Record<string, unknown>> = {
  architectures: ["Qwen3ForCausalLM"],
  model_type: "qwen3",
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 1024,
  rms_norm_eps: 1e-6,
  rope_theta: 10000,
  tie_word_embeddings: false,
  vocab_size: 2048,
};

/** A temporary folder with a model of this config and the texts of `files`; disposing removes it. */
export async function randomFolder(
  config: Readonly<Record<string, unknown>>,
  files: Readonly<Record<string, string>> = {},
): Promise<{ readonly path: string } & Disposable> {
  const path = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  for (const [name, text] of Object.entries({ ...files, "config.json": JSON.stringify(config) })) {
    await Deno.writeTextFile(`${path}/${name}`, text);
  }
  await Deno.writeFile(`${path}/model.safetensors`, weights(config));
  return { path, [Symbol.dispose]: () => Deno.removeSync(path, { recursive: true }) };
}

/** F32: norms are ones, rows of lm_head beyond 2048 tokens large, all else is small. */
function weights(config: Readonly<Record<string, unknown>>): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = {};
  const values: number[] = [];
  for (const [index, spec] of targetTensors(parseModelConfig("tiny", config, {})).entries()) {
    const { name, shape, kind } = spec;
    const count = shape.reduce((product, n) => product * n, 1);
    const begin = 4 * values.length;
    for (let i = 0; i < count; i++) {
      const noise = hash32(9, index, i) / 2 ** 31 - 1;
      const padding = name === "lm_head.weight" && i >= 2048 * (shape[1] ?? 1);
      values.push(kind === "vector" ? 1 : noise * (padding ? 50 : 0.3));
    }
    header[name] = { dtype: "F32", shape, data_offsets: [begin, 4 * values.length] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const file = new Uint8Array(8 + text.length + 4 * values.length);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  file.set(new Uint8Array(Float32Array.from(values).buffer), 8 + text.length);
  return file;
}

/** A small Muse-Glimmer with random weights, and what it computes in float64 by the formulas of the architecture. */
import { parseModelConfig } from "../../src/model/config/config.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { fileOf, type StoredTensor } from "../model/safetensors_bytes.ts";

const TEXT = {
  model_type: "muse_glimmer_text",
  vocab_size: 160,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 5,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 32,
  hidden_activation: "silu",
  rms_norm_eps: 1e-5,
  post_norm_eps: 1e-3,
  sliding_window: 8,
  qk_scale_factor: 3.87,
  output_multiplier: 0.5,
  final_logit_softcapping: 2.5,
  rope_parameters: { rope_type: "default", rope_theta: 500_000 },
  max_position_embeddings: 256,
  tie_word_embeddings: false,
};

export const MUSE_GLIMMER: Readonly<Record<string, unknown>> = {
  architectures: ["MuseGlimmerForConditionalGeneration"],
  model_type: "muse_glimmer",
  text_config: TEXT,
};

/** Layers without a window: counted from the last, every fourth. */
const GLOBAL = [0, 4];

/** Tensors by their names within the text model. */
type Weights = ReadonlyMap<string, Float64Array>;

export function randomWeights(): Weights {
  const specs = targetTensors(parseModelConfig("muse", MUSE_GLIMMER, undefined));
  return new Map(specs.map(({ name, shape, kind }, index) => {
    const count = shape.reduce((product, n) => product * n, 1);
    // Small embeddings: the epsilon of their norm counts.
    const size = name.includes("embed") ? 0.01 : kind === "vector" ? 0.4 : 0.25;
    const number = (i: number) => size * (hash32(11, index, i) / 2 ** 31 - 1);
    const values = Float32Array.from({ length: count }, (_, i) => number(i));
    return [name, Float64Array.from(values)];
  }));
}

/** A folder with the model, named as in a checkpoint with images; disposing removes it. */
export async function museGlimmerFolder(
  weights: Weights = randomWeights(),
): Promise<{ readonly path: string } & AsyncDisposable> {
  const specs = targetTensors(parseModelConfig("muse", MUSE_GLIMMER, undefined));
  const tensors = specs.map(({ name, shape }): [string, StoredTensor] => {
    const values = Float32Array.from(weights.get(name) ?? []);
    const bytes = new Uint8Array(values.buffer);
    return [name.replace(/^model\./, "model.language_model."), { dtype: "F32", shape, bytes }];
  });
  const path = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  await Deno.writeTextFile(`${path}/config.json`, JSON.stringify(MUSE_GLIMMER));
  await Deno.writeFile(`${path}/model.safetensors`, fileOf(new Map(tensors)));
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

type Row = readonly number[];

/** The residual stream after each number of layers, the last of them normed, and logits of each of `ids`. */
export function reference(weights: Weights, ids: readonly number[]): {
  readonly hidden: readonly (readonly Row[])[];
  readonly logits: readonly Row[];
} {
  const { rms_norm_eps: eps, post_norm_eps: postEps, head_dim: d } = TEXT;
  const { num_attention_heads: heads, num_key_value_heads: kvHeads } = TEXT;
  const of = (name: string) =>
    weights.get(`model.${name}.weight`) ?? weights.get(`${name}.weight`)!;
  const times = (name: string, x: Row): number[] => {
    const matrix = of(name);
    return Array.from(
      { length: matrix.length / x.length },
      (_, row) => x.reduce((sum, number, k) => sum + number * matrix[row * x.length + k]!, 0),
    );
  };
  const rms = (x: Row, e = eps): number[] => {
    const scale = 1 / Math.sqrt(x.reduce((sum, number) => sum + number * number, 0) / x.length + e);
    return x.map((number) => number * scale);
  };
  const normed = (name: string, x: Row, e = eps) =>
    rms(x, e).map((number, i) => number * (1 + of(name)[i]!));
  const sum = (x: Row, y: Row) => x.map((number, i) => number + y[i]!);
  const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
  /** Heads of a row, normed without weights, rotated where `position` is given. */
  const headsOf = (x: Row, count: number, gain: number, position: number | undefined) =>
    Array.from({ length: count }, (_, head) => {
      const h = rms(x.slice(head * d, (head + 1) * d)).map((number) => number * gain);
      if (position === undefined) return h;
      return h.map((number, i) => {
        const pair = i % (d / 2);
        const angle = position * TEXT.rope_parameters.rope_theta ** (-2 * pair / d);
        const other = i < d / 2 ? -h[i + d / 2]! : h[i - d / 2]!;
        return number * Math.cos(angle) + other * Math.sin(angle);
      });
    });

  const embedding = of("embed_tokens");
  const width = TEXT.hidden_size;
  let x: number[][] = ids.map((id) => rms([...embedding.subarray(id * width, (id + 1) * width)]));
  const hidden: Row[][] = [x];
  for (let layer = 0; layer < TEXT.num_hidden_layers; layer++) {
    const at = (module: string) => `layers.${layer}.${module}`;
    const local = !GLOBAL.includes(layer);
    const inputs = x.map((row) => normed(at("input_layernorm"), row));
    const keys = inputs.map((row, i) =>
      headsOf(times(at("self_attn.k_proj"), row), kvHeads, 1, local ? i : undefined)
    );
    const values = inputs.map((row) => times(at("self_attn.v_proj"), row));
    x = inputs.map((input, i) => {
      const queries = headsOf(
        times(at("self_attn.q_proj"), input),
        heads,
        TEXT.qk_scale_factor,
        local ? i : undefined,
      );
      const first = local ? Math.max(0, i - TEXT.sliding_window + 1) : 0;
      const mixed = queries.flatMap((query, head) => {
        const kv = Math.floor(head / (heads / kvHeads));
        const scores = keys.slice(first, i + 1).map((row) =>
          query.reduce((total, number, k) => total + number * row[kv]![k]!, 0) / Math.sqrt(d)
        );
        const most = Math.max(...scores);
        const shares = scores.map((score) => Math.exp(score - most));
        const all = shares.reduce((total, share) => total + share, 0);
        return Array.from(
          { length: d },
          (_, k) =>
            shares.reduce(
              (total, share, j) => total + share / all * values[first + j]![kv * d + k]!,
              0,
            ),
        );
      });
      const gate = times(at("self_attn.gate_proj"), input);
      const out = times(
        at("self_attn.o_proj"),
        mixed.map((number, k) => number * sigmoid(gate[k]!)),
      );
      const after = sum(x[i]!, normed(at("post_attention_layernorm"), out, postEps));
      const mlp = normed(at("pre_feedforward_layernorm"), after);
      const up = times(at("mlp.up_proj"), mlp);
      const act = times(at("mlp.gate_proj"), mlp).map((g, k) => g * sigmoid(g) * up[k]!);
      const down = times(at("mlp.down_proj"), act);
      return sum(after, normed(at("post_feedforward_layernorm"), down, postEps));
    });
    hidden.push(x);
  }
  // The last norm is not zero-centred.
  const last = x.map((row) => rms(row).map((number, i) => number * of("norm")[i]!));
  const { final_logit_softcapping: cap, output_multiplier: multiplier } = TEXT;
  const logits = last.map((row) =>
    times("lm_head", row).map((logit) => cap * Math.tanh(logit * multiplier / cap))
  );
  return { hidden: [...hidden.slice(0, -1), last], logits };
}

import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import { openEmbedded } from "../../src/model/checkpoint/embedded.ts";
import {
  checkTarget,
  checkTensors,
  draftTensors,
  targetTensors,
} from "../../src/model/weights/tensors.ts";
import { target, TARGET_JSON } from "./drafts.ts";
import { shapesOf, tensorFile, toyCheckpoint } from "./folders.ts";

const SHARED = new URL("../golden/gemma4_e", import.meta.url).pathname;

type Shapes = Readonly<Record<string, readonly number[]>>;

function checkpoint(shapes: Shapes, dtypes?: Readonly<Record<string, string>>): Checkpoint {
  const files = { "config.json": TARGET_JSON, "model.safetensors": tensorFile(shapes, dtypes) };
  return toyCheckpoint(files);
}

function parsed(opened: Checkpoint): ModelConfig {
  return parseModelConfig(
    opened.name,
    opened.json("config.json"),
    opened.json("generation_config.json"),
  );
}

const SPECS = targetTensors(target());
const SHAPES = shapesOf(SPECS);
const Q = "model.layers.3.self_attn.q_proj.weight";

Deno.test("roles, names and shapes of a target", () => {
  const byRole = new Map(SPECS.map((spec) => [spec.role, spec]));
  assert.equal(byRole.size, SPECS.length);
  assert.equal(SPECS.length, 3 + 6 * 9);
  assert.deepEqual(byRole.get("layers.3.k"), {
    role: "layers.3.k",
    name: "model.layers.3.self_attn.k_proj.weight",
    shape: [8, 16],
    kind: "matrix",
  });
  assert.equal(byRole.get("layers.0.postNorm")?.kind, "vector");
  assert.deepEqual(byRole.get("head")?.shape, [40, 16]);
});

Deno.test("a tied target has no head, Qwen3 has q and k norms", () => {
  const config = target({
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    head_dim: 16,
    tie_word_embeddings: true,
  });
  const byRole = new Map(targetTensors(config).map((spec) => [spec.role, spec]));
  assert.equal(byRole.has("head"), false);
  assert.deepEqual(byRole.get("layers.5.kNorm")?.shape, [16]);
  assert.deepEqual(byRole.get("layers.5.o")?.shape, [16, 32]);
});

Deno.test("what is there as asked passes without a warning", () => {
  assert.deepEqual(checkTensors(checkpoint(SHAPES, { [Q]: "F32" }), SPECS), []);
});

Deno.test("an extra tensor is a warning, a known one is not", () => {
  const extra = { ...SHAPES, "model.heads.weight": [4], "model.rotary_emb.inv_freq": [2] };
  const warnings = checkTensors(checkpoint(extra), SPECS);
  assert.deepEqual(warnings, ['toy/model.safetensors: tensor "model.heads.weight" is not used']);
  const heads = Array.from({ length: 300 }, (_, i) => [`model.heads.${i}.weight`, [4]] as const);
  assert.deepEqual(checkTensors(checkpoint({ ...SHAPES, ...Object.fromEntries(heads) }), SPECS), [
    'toy/model.safetensors: tensor "model.heads.0.weight" and 299 more are not used',
  ]);
});

Deno.test("tensors for images and audio are one line, whatever their towers are called", () => {
  const names = [
    "model.vision_tower.a",
    "visual.b",
    "multi_modal_projector.c",
    "model.embed_audio.d",
  ];
  const extra = Object.fromEntries(names.map((name) => [`${name}.weight`, [4]] as const));
  assert.deepEqual(checkTensors(checkpoint({ ...SHAPES, ...extra, "model.odd": [2] }), SPECS), [
    "toy: 4 tensors for images or audio are not used, only text is read",
    'toy/model.safetensors: tensor "model.odd" is not used',
  ]);
});

Deno.test("a tied model may carry its head once more", () => {
  const tied = targetTensors(target({ tie_word_embeddings: true }));
  assert.deepEqual(checkTensors(checkpoint(SHAPES), tied), []);
});

for (
  const [what, shapes, dtypes, message] of [
    ["missing", { ...SHAPES, [Q]: undefined }, {}, `Cannot use "toy": tensor "${Q}" is missing`],
    ["of a wrong shape", { ...SHAPES, [Q]: [16, 8] }, {}, "has shape [16,8], expected [16,16]"],
    ["of a wrong rank", { ...SHAPES, [Q]: [16] }, {}, "has shape [16], expected [16,16]"],
    ["of a wrong dtype", SHAPES, { [Q]: "U8" }, 'has dtype "U8", expected F32, F16, BF16'],
    ["of ids", SHAPES, { [Q]: "I64" }, 'has dtype "I64", expected F32, F16, BF16'],
    ["with a bias", { ...SHAPES, [Q.replace("weight", "bias")]: [16] }, {}, "computed without it"],
  ] as const
) {
  Deno.test(`a tensor ${what} is an error that names file and tensor`, () => {
    const there = Object.entries(shapes).filter(([, shape]) => shape !== undefined);
    const opened = checkpoint(Object.fromEntries(there) as Shapes, dtypes);
    assert.throws(() => checkTensors(opened, SPECS), (error: unknown) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.ok(error.message.includes(message), error.message);
      if (what !== "missing") assert.ok(error.message.includes('"toy/model.safetensors": tensor'));
      return true;
    });
  });
}

for (const name of ["llama3", "qwen3"]) {
  Deno.test(`tests/golden/${name} opens and checks clean`, () => {
    using opened = openCheckpoint(new URL(`../golden/${name}`, import.meta.url).pathname);
    assert.deepEqual(checkTensors(opened, targetTensors(parsed(opened))), []);
  });
}

Deno.test("the embedded target and both drafts check clean", () => {
  using opened = openEmbedded("target");
  const config = parsed(opened);
  assert.deepEqual(checkTensors(opened, targetTensors(config)), []);
  for (const name of ["eagle3", "eagle1"] as const) {
    using draft = openEmbedded(name);
    const specs = draftTensors(parseDraftConfig(draft, config));
    assert.deepEqual(checkTensors(draft, specs), []);
  }
});

Deno.test("keys and values of layers that read those of others are in files, and deserve no warning", () => {
  using opened = openCheckpoint(SHARED);
  const config = parsed(opened);
  const [stored] = opened.tensors.values();
  const warningsWith = (...names: string[]) => {
    const more = names.map((name) => [name, { ...stored!, name }] as const);
    const tensors = new Map([...opened.tensors, ...more]);
    return checkTarget({ ...opened, tensors }, config);
  };
  const parts = ["k_proj", "v_proj", "k_norm"];
  assert.deepEqual(
    warningsWith(...parts.map((part) => `model.layers.5.self_attn.${part}.weight`)),
    [],
  );
  const [warning] = warningsWith("model.layers.2.self_attn.v_norm.weight");
  assert.match(warning ?? "", /"model.layers.2.self_attn.v_norm.weight" is not used/);
});

/** Models whose layers keep a state of fixed size: no bit may depend on chunks, drafts or neighbours. */
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { checkModels, loadWith } from "../../src/engine/load/load.ts";
import { withTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import { cacheOf } from "../../src/engine/schedule/prefix_cache.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { checkpointWeights } from "../../src/model/weights/weights.ts";
import { chain, chains, type DraftShape } from "../../src/speculate/round_shape.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { drawn } from "../exhaustive.ts";
import { openGpu } from "../gpu/shared.ts";
import { checkModel } from "../../src/engine/check/check.ts";
import { fileOf, tensorsOf } from "../model/safetensors_bytes.ts";
import { type Decoded, decodeProposed, type ProposedDecoding } from "./decode_proposed.ts";
import { folderOf } from "./speculated.ts";

const BATCH = 3;
const CONTEXT = 128;
/** Tokens decoded of each prompt. */
const MAX = 24;
const TREE = treeNamed("3:3:10");
const PROMPTS = [3, 50, 17].map((length, i) =>
  Array.from({ length }, (_, j) => 3 + (j * 37 + i * 11) % 300)
);

for (const name of ["lfm2", "lfm2_moe", "qwen3_5", "qwen3_5_moe", "qwen3_next"]) {
  for (const software of [true, false]) {
    // Layers and mixtures of LFM2-MoE are those of others.
    const { test } = software && name !== "lfm2_moe" ? Deno : drawn;
    test(`${name}, ${software ? "software" : "hardware"} kernels: the bits of plain decoding after rejections at every length, in batches, for any chunks`, async () => {
      const runner = await openGolden(name, software);
      const plain = [];
      for (const prompt of PROMPTS) {
        const [alone] = await decode(runner, [prompt], { chunk: 64, steps: 0, expected: [] });
        plain.push(alone!);
      }
      for (const steps of [1, 3, 7]) {
        const all = await decode(runner, PROMPTS, { chunk: 8 * steps, steps, expected: plain });
        assert.deepEqual(all, plain, `${steps} drafts`);
      }
      assert.deepEqual(await decode(runner, PROMPTS, { chunk: 5, steps: 0, expected: [] }), plain);
      const all = await decode(runner, PROMPTS, {
        chunk: 64,
        steps: 3,
        expected: plain,
        tree: TREE,
      });
      assert.deepEqual(all, plain, "trees");
    });
  }

  Deno.test(`${name}: nothing is cached of prefixes, whose pages do not hold the state`, async () => {
    const runner = await openGolden(name, true);
    const cache = cacheOf(runner);
    const ids = PROMPTS[1]!;
    const pages = Array.from({ length: 4 }, () => runner.pool.take() as number);
    cache.insert({ ids, stored: ids.length, draftStored: 0, pages });
    assert.deepEqual(cache.match([...ids, 5]), { pages: [], draftStored: 0 });
    runner.pool.release(pages);
  });
}

/** A chain of drafts as a path of a tree whose other nodes are never right; the order changes with `round`. */
function among(path: readonly number[], round: number): { tokens: number[]; parents: number[] } {
  const tokens: number[] = [];
  const parents: number[] = [];
  const add = (token: number, parent: number) => {
    parents.push(parent);
    return tokens.push(token);
  };
  let [at, aside] = [0, 0];
  for (const [level, token] of path.entries()) {
    // One wrong node has another parent than the next draft, the other has the same parent.
    if ((round + level) % 3 > 0) aside = add(7 + level, level === 0 ? 0 : aside);
    if ((round + level) % 2 > 0) add(20 + level, at);
    at = add(token, at);
  }
  return { tokens, parents };
}

/** @param how.tree drafts are trees of this shape, of `steps` levels. */
function decode(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  { steps, tree, ...how }: Pick<ProposedDecoding, "chunk" | "expected"> & {
    readonly steps: number;
    readonly tree?: DraftShape;
  },
): Promise<Decoded[]> {
  return decodeProposed(runner, prompts, {
    ...how,
    shape: tree ?? chain(steps),
    most: MAX,
    context: CONTEXT,
    propose(next, right, turn) {
      const tokens = Array.from({ length: steps }, (_, j) => {
        const token = next[j] ?? 3;
        return j < right ? token : token === 9 ? 10 : 9;
      });
      return tree ? among(tokens, turn) : { tokens, parents: tokens.map((_, j) => j) };
    },
  });
}

async function openGolden(name: string, software: boolean): Promise<Runner> {
  const opened = await openGpu();
  const gpu = { ...opened, info: { ...opened.info, software } };
  using models = checkModels(openCheckpoint(folderOf(name)), undefined);
  const weights = await loadWith(gpu, models, (checkpoint) => checkpointWeights(gpu, checkpoint));
  return await openRunner(gpu, await withTensorMatrices(gpu, weights), {
    batch: BATCH,
    shapes: [...chains([0, 1, 3, 7]), TREE],
    prefillRows: 256,
    contextLength: CONTEXT,
    pages: BATCH * (CONTEXT / PAGE + 2),
    promptRun: 8,
  });
}

Deno.test("rows of a router and of its shared expert's gate, of b and of a, may be of several types", async () => {
  const path = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const from = folderOf("qwen3_5_moe");
    await Deno.copyFile(`${from}/config.json`, `${path}/config.json`);
    const wide = [...tensorsOf(`${from}/model.safetensors`)].map(([name, tensor]) => {
      if (!/(mlp\.gate|in_proj_b)\.weight$/.test(name)) return [name, tensor] as const;
      const bytes = new Uint8Array(2 * tensor.bytes.length);
      // A bf16 is the upper half of a float32.
      for (const [i, byte] of tensor.bytes.entries()) bytes[4 * (i >> 1) + 2 + i % 2] = byte;
      return [name, { ...tensor, dtype: "F32", bytes }] as const;
    });
    await Deno.writeFile(`${path}/model.safetensors`, fileOf(new Map(wide)));
    const expected = `${from}/expected.safetensors`;
    const report = await checkModel({ model: path, expected, tolerance: 2e-4 }, openGpu);
    assert.ok(report.ok);
  } finally {
    await Deno.remove(path, { recursive: true });
  }
});

Deno.test("qwen3_5 beside a vision tower and an MTP layer computes what its text model does", async () => {
  const path = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const from = folderOf("qwen3_5");
    const { architectures: _, ...text } = JSON.parse(
      await Deno.readTextFile(`${from}/config.json`),
    );
    const config = {
      architectures: ["Qwen3_5ForConditionalGeneration"],
      model_type: "qwen3_5",
      text_config: { ...text, output_gate_type: "swish" },
    };
    await Deno.writeTextFile(`${path}/config.json`, JSON.stringify(config));
    const stored = tensorsOf(`${from}/model.safetensors`);
    const renamed = [...stored].map(([name, tensor]) =>
      [name.replace(/^model\./, "model.language_model."), tensor] as const
    );
    const norm = stored.get("model.norm.weight") ?? assert.fail();
    const more = ["model.visual.merger.norm.weight", "mtp.norm.weight"].map((name) =>
      [name, norm] as const
    );
    await Deno.writeFile(`${path}/model.safetensors`, fileOf(new Map([...renamed, ...more])));
    const expected = `${from}/expected.safetensors`;
    const warnings: string[] = [];
    const onWarning = (line: string) => warnings.push(line);
    const options = { model: path, expected, tolerance: 2e-4, onWarning };
    const report = await checkModel(options, openGpu);
    assert.ok(report.ok);
    assert.ok(warnings.every((line) => !line.includes("mtp.")), warnings.join());
  } finally {
    await Deno.remove(path, { recursive: true });
  }
});

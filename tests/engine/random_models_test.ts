import assert from "node:assert/strict";
import { slicePartialWords } from "../../kernels/sample/slice_partials.ts";
import { loadRandomWeights, openRandomModels } from "../../src/engine/load/random_models.ts";
import type { LoadedWeights } from "../../src/engine/device/models.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { matmulsOf } from "../../src/engine/matrices/matmuls.ts";
import type { DecoderContext } from "../../src/model/graph/context.ts";
import { type Draft, draftBody, draftHead, draftLast } from "../../src/model/graph/draft.ts";
import type { LayerKv } from "../../src/model/graph/graph.ts";
import { type Target, targetHead, targetLayers, targetNorm } from "../../src/model/graph/target.ts";
import { planOf } from "../../src/model/lower/lower.ts";
import { ScratchPool } from "../../src/gpu/scratch_pool.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { DRAFT_TOKENS, draftWords, PAGE, ROW_WORDS } from "../../src/model/device_layout.ts";
import { openDevice } from "../gpu/device.ts";
import { packRows } from "../kernels/rows.ts";
import { denseLayer } from "../model/dense_layer.ts";
import { drawn, exhaustive } from "../exhaustive.ts";

const device = await openDevice();
Deno.test.afterAll(() => device[Symbol.dispose]());

const LLAMA = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 64,
  intermediate_size: 160,
  num_hidden_layers: 32,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 301,
};
const EAGLE3 = {
  ...LLAMA,
  architectures: ["LlamaForCausalLMEagle3"],
  num_hidden_layers: 1,
  draft_vocab_size: 101,
};
const EAGLE1 = { ...LLAMA, num_hidden_layers: 1 };

const ROWS = 16;

async function load(
  draft: unknown,
  seed: number,
  target: unknown = LLAMA,
): Promise<LoadedWeights> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const [model, head] = [`${folder}/target.json`, `${folder}/draft.json`];
    await Deno.writeTextFile(model, JSON.stringify(target));
    await Deno.writeTextFile(head, JSON.stringify(draft));
    using models = openRandomModels({ target: model, draft: head });
    assert.deepEqual(models.warnings, []);
    return await loadRandomWeights(device.gpu, models, seed);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function context(config: ModelConfig, software: boolean): DecoderContext {
  const { layers: [layer], ropes } = config;
  const { headDim } = denseLayer(layer).attention;
  return {
    config,
    tuning: tuning(software),
    ropes: ropes.map((rope) =>
      device.floats(ropeTable(rope, headDim, { positions: PAGE, context: PAGE }))
    ),
    pages: device.words([0]),
    tablePages: 1,
    kvDtype: "f32",
    widestRows: ROWS,
    scratch: allocatedPool(),
  };
}

/** A pool whose buffers are made as plans need them. */
function allocatedPool(): ScratchPool {
  const pool = new ScratchPool(device.gpu, "scratch");
  pool.allocate();
  return pool;
}

function layerKv({ layers: [layer] }: ModelConfig): LayerKv {
  const { numKvHeads, headDim } = denseLayer(layer).attention;
  const cells = () => device.filled(PAGE * numKvHeads * headDim);
  return { keys: cells(), values: cells() };
}

function prepare({ target: { config, weights }, draft }: LoadedWeights, software: boolean) {
  assert.ok(draft);
  const target: Target = {
    ...context(config, software),
    weights,
    kv: config.layers.map(() => layerKv(config)),
    final: device.filled(ROWS * config.hiddenSize),
    logits: device.filled(ROWS * weights.head.rows, NaN),
    partials: device.filled(ROWS * slicePartialWords(config.vocabSize)),
  };
  const { layer } = draft.config;
  const { numHeads, headDim } = denseLayer(layer.layers[0]).attention;
  const head: Draft = {
    ...context(layer, software),
    draft: draft.config,
    weights: draft.weights,
    kv: layerKv(layer),
    auxHidden: undefined,
    extended: {
      q: device.filled(ROWS * numHeads * headDim),
      x: device.filled(ROWS * layer.hiddenSize),
    },
    ends: {
      rows: device.words(Array(ROW_WORDS).fill(0)),
      q: device.filled(numHeads * headDim),
      x: device.filled(layer.hiddenSize),
    },
    hidden: device.filled(layer.hiddenSize),
    choice: "argmax",
    drafts: device.words(Array(draftWords(2)).fill(4242)),
    maxRows: 2,
    tree: undefined,
  };
  return { target, head };
}

/** One prompt of ROWS tokens through target and draft. */
async function forward(loaded: LoadedWeights, software = device.gpu.info.software) {
  const { target, head } = prepare(loaded, software);
  const { hiddenSize } = target.config;
  const row = (cell: number) => ({
    token: cell * 17,
    position: cell,
    cell,
    base: cell + 1,
  });
  const rows = device.words(packRows(Array.from({ length: ROWS }, (_, cell) => row(cell))));
  const of = { rows, count: ROWS, perSlot: ROWS };
  const { algorithm, auxLayers } = head.draft;
  const taps: Operand = device.filled(ROWS * 3 * hiddenSize);
  const features = algorithm === "EAGLE3" ? taps : target.final;
  const batchSlots = device.words([0]);
  const last = device.words([ROWS - 1]);
  const stream = device.filled(ROWS * hiddenSize);
  const draftLogits = device.filled(head.weights.head.rows, NaN);
  const taken = auxLayers.map((layer, i) => ({
    layer,
    out: taps,
    outCols: 3 * hiddenSize,
    outFirst: i * hiddenSize,
  }));
  await device.run([
    ...planOf(target, (graph) => {
      const x = targetLayers(graph, target, of, taken);
      graph.copy(x, { out: stream, outCols: hiddenSize, outFirst: 0 }, "stream");
      const final = targetNorm(graph, target, x, target.final);
      targetHead(graph, target, final, target.logits);
    }),
    ...planOf(head, (graph) => draftBody(graph, head, of, { features })),
    ...planOf(head, (graph) => {
      const x = draftLast(graph, head, { rows, last }, 1);
      draftHead(graph, head, batchSlots, { x, step: 0, keepHidden: true });
      for (const op of [...graph.ops]) {
        if (op.kind !== "linear" || !op.logits) continue;
        const { cols: outCols } = op.out;
        graph.copy(op.out, { out: draftLogits, outCols, outFirst: 0 }, "logits");
      }
    }),
  ]);
  const vocab = head.draft.draftVocabSize;
  return {
    stream: await device.readFloats(stream),
    logits: await device.readFloats(target.logits),
    draftLogits: (await device.readFloats(draftLogits)).slice(0, vocab),
    draft: (await device.readWords(head.drafts))[DRAFT_TOKENS] ?? NaN,
    vocab,
  };
}

const size = (values: Float32Array) =>
  Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);

for (const [name, config] of [["EAGLE-3", EAGLE3], ["EAGLE", EAGLE1]] as const) {
  const { test } = config === EAGLE3 ? Deno : exhaustive;
  test(`random models: 32 layers and ${name} keep every number in range`, async () => {
    const weights = await load(config, 1);
    const { stream, logits, draftLogits, draft, vocab } = await forward(weights);
    // NaN fails these too.
    assert.ok(size(stream) > 1 && size(stream) < 30, `residual stream ${size(stream)}`);
    assert.ok(size(logits) > 0.5 && size(logits) < 2, `logits ${size(logits)}`);
    assert.ok(size(draftLogits) > 0.1 && size(draftLogits) < 10, `draft ${size(draftLogits)}`);
    assert.ok(draft < vocab, `draft token ${draft}`);
    const again = await forward(await load(config, 1));
    assert.deepEqual(again.logits, logits);
    assert.notDeepEqual((await forward(await load(config, 2))).logits, logits);
  });
}

drawn.test("random models: fc in ranges of k, on hardware, makes the drafts of the software's kernels", async () => {
  const wide = { ...LLAMA, hidden_size: 512, num_hidden_layers: 8, head_dim: 64 };
  const weights = await load({ ...wide, ...EAGLE3, hidden_size: 512, head_dim: 64 }, 3, wide);
  assert.ok(weights.draft);
  const { fc } = weights.draft.weights;
  const rangesOf = (software: boolean) =>
    matmulsOf(weights, tuning(software)).find(({ matrix }) => matrix === fc)?.splitK ?? NaN;
  assert.equal(rangesOf(true), 1);
  assert.ok(rangesOf(false) > 1);
  const [software, hardware] = [await forward(weights, true), await forward(weights, false)];
  const scale = size(software.draftLogits);
  for (const [i, logit] of hardware.draftLogits.entries()) {
    const expected = software.draftLogits[i] ?? NaN;
    assert.ok(Math.abs(logit - expected) < 1e-3 * scale, `${i}: ${logit}, expected ${expected}`);
  }
});

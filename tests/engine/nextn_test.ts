import assert from "node:assert/strict";
import { storageBuffer } from "../../src/engine/device/buffers.ts";
import { type OpenSequence, openSequence } from "../../src/engine/device/single_sequence.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import { openGpu } from "../gpu/shared.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { compiler, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { draftBody } from "../../src/model/graph/draft.ts";
import { planOf } from "../../src/model/lower/lower.ts";
import { bodyPlan } from "../../src/model/lower/target_plans.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openTensorFile } from "../../src/model/files/tensor_files.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { assertClose } from "../gpu/numbers.ts";
import { packRows } from "../kernels/rows.ts";
import { decode } from "./fledgling.ts";
import { folderOf } from "./speculated.ts";
import { fileOf, tensorsOf } from "../model/safetensors_bytes.ts";
import { exhaustive } from "../exhaustive.ts";

const MODEL = new URL("../golden/deepseek_v3", import.meta.url).pathname;
/** The text and what the last rounds may add. */
const CELLS = 64;
const TREE = treeNamed("2:2:5");

async function open(
  { model = MODEL, software, batch = 1 }: {
    readonly model?: string;
    readonly software?: boolean;
    readonly batch?: number;
  } = {},
) {
  using models = openModels({ model, algorithm: "NEXTN" });
  assert.deepEqual(models.warnings, []);
  const opened = await openGpu();
  const { info } = opened;
  const gpu = { ...opened, info: { ...info, software: software ?? info.software } };
  return await openRunner(gpu, await loadWeights(gpu, models), {
    batch,
    shapes: [...chains([0, 1, 3]), TREE],
    treeShapes: [TREE],
    prefillRows: 256,
    contextLength: 48,
    pages: batch * CELLS / PAGE,
    confident: true,
  });
}

function golden(file: string, model = MODEL) {
  using files = openTensorFile(`${model}/${file}.safetensors`);
  const bytes = (name: string) => {
    const tensor = files.tensors.get(name)!;
    const into = new Uint8Array(tensor.size);
    files.read(tensor, 0, into);
    return into.buffer;
  };
  const names = [...files.tensors.keys()];
  return new Map(names.map((name) => [
    name,
    /ids$/.test(name) ? [...new Int32Array(bytes(name))] : [...new Float32Array(bytes(name))],
  ]));
}

Deno.test("the NextN layer computes what transformers does", async () => {
  await compareNextn(await open(), golden("expected_nextn"));
});

Deno.test("an MTP layer of Qwen3.5 computes its formula, and speculates as the model decodes", async () => {
  await using folder = await mtpFolder("qwen3_5");
  const runner = await open({ model: folder.path });
  await compareNextn(runner, golden("expected_nextn", folderOf("qwen3_5")));
  await speculate(await open({ model: folder.path }), "qwen3_5");
});

for (const name of ["qwen3_5_moe", "qwen3_next"]) {
  exhaustive.test(`${name} with an MTP layer speculates as it decodes`, async () => {
    await using folder = await mtpFolder(name);
    await speculate(await open({ model: folder.path }), name);
  });
}

Deno.test("NEXTN of an export without tensors mtp.* says so", () => {
  const wrong = () => openModels({ model: folderOf("qwen3_5"), algorithm: "NEXTN" });
  assert.throws(wrong, /Cannot use ".*": it has no tensors mtp\.\*, which NEXTN drafts with/);
});

type OpenRunner = Awaited<ReturnType<typeof open>>;

/** Decodes the golden's greedy text with drafts of chains, in the sequence given. Returns the text. */
async function speculateChains(runner: OpenRunner, sequence: OpenSequence, folder?: string) {
  assert.ok(runner.reserve(sequence, CELLS));
  const greedy = golden("expected", folder).get("greedy_ids")!;
  const [prompt, text] = [greedy.slice(0, 8), greedy.slice(8)];
  for (const numSteps of [0, 1, 3]) {
    const options = { numSteps, most: text.length, sampling: [GREEDY] };
    const [found] = await decode(runner, [sequence], [prompt], options);
    assert.deepEqual(found?.ids, text, `num_steps ${numSteps}`);
    assert.ok(found.accepted.length > 0);
  }
  return { prompt, text };
}

async function speculate(runner: OpenRunner, name: string): Promise<void> {
  using sequence = openSequence(runner);
  const { prompt, text } = await speculateChains(runner, sequence, folderOf(name));
  const most = text.length;
  const trees = {
    numSteps: TREE.depth,
    most,
    sampling: [GREEDY],
    verifying: () => ({ shape: TREE }),
  };
  const [found] = await decode(runner, [sequence], [prompt], trees);
  assert.deepEqual(found?.ids, text, "trees");
  runner.gpu[Symbol.dispose]();
}

Deno.test("a donor has the tensors mtp.* of an export without", async () => {
  await using donor = await mtpFolder("qwen3_5");
  const model = folderOf("qwen3_5");
  using models = openModels({ model, donor: donor.path, algorithm: "NEXTN" });
  assert.equal(models.draft?.config.algorithm, "NEXTN");
  assert.match(
    models.warnings.join(),
    /has \d+ tensors that are missing, they are read from there$/,
  );
});

/** The golden with tensors mtp.*: its first layer with attention again, between a projection and norms of others. */
async function mtpFolder(name: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const from = folderOf(name);
  await Deno.copyFile(`${from}/config.json`, `${path}/config.json`);
  const stored = tensorsOf(`${from}/model.safetensors`);
  const of = (tensor: string) => stored.get(tensor) ?? assert.fail(tensor);
  const layer = [...stored].flatMap(([name, tensor]) =>
    name.startsWith("model.layers.3.")
      ? [[name.replace("model.layers.3.", "mtp.layers.0."), tensor] as const]
      : []
  );
  const norms = ["pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"].map((module, i) =>
    [`mtp.${module}.weight`, of(`model.layers.${i}.input_layernorm.weight`)] as const
  );
  const head = of("lm_head.weight");
  const fc = { ...head, shape: [64, 128], bytes: head.bytes.subarray(0, 64 * 128 * 2) };
  const file = fileOf(new Map([...stored, ...layer, ...norms, ["mtp.fc.weight", fc]]));
  await Deno.writeFile(`${path}/model.safetensors`, file);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** @param expected hidden states and logits of its `input_ids`, but for the last. */
async function compareNextn(
  runner: Awaited<ReturnType<typeof open>>,
  expected: ReturnType<typeof golden>,
): Promise<void> {
  const { gpu, models: { target, draft } } = runner;
  using sequence = openSequence(runner);
  assert.ok(draft && runner.reserve(sequence, CELLS));
  const ids = expected.get("input_ids")!;
  const rowsOf = (tokens: readonly number[]): Operand => {
    const rows = tokens.map((token, cell) => ({ token, position: cell, cell, base: cell + 1 }));
    const words = packRows(rows);
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
    const buffer = gpu.device.createBuffer({ size: words.byteLength, usage });
    gpu.device.queue.writeBuffer(buffer, 0, words as Uint32Array<ArrayBuffer>);
    return { buffer };
  };
  const count = ids.length - 1;
  const { hiddenSize } = draft.config;
  const vocab = draft.weights.head.rows;
  const [normed, logitsAt] = [
    storageBuffer(gpu, "normed", count * hiddenSize),
    storageBuffer(gpu, "nextn.logits", count * vocab),
  ];
  const made = await compiler(gpu).compile([
    ...bodyPlan(target, { rows: rowsOf(ids), count: ids.length, perSlot: ids.length }),
    // Row i is the target's hidden row i with the token after it.
    ...planOf(draft, (graph) => {
      const rows = rowsOf(ids.slice(1));
      draftBody(graph, draft, { rows, count, perSlot: count }, { features: draft.features });
    }),
    ...planOf(draft, (graph) => {
      const x = graph.input("hidden", count, hiddenSize, draft.extended.x);
      const weight = draft.weights.finalNorm!;
      const out = graph.norm(x, { weight, eps: draft.config.rmsNormEps, at: normed }, "norm");
      graph.linear(out, draft.weights.head, { at: logitsAt, label: "head" });
    }),
  ]);
  submit(gpu, made);
  gpu.check();
  const read = async (of: Operand) => new Float32Array(await readBuffer(gpu, of));
  const hidden = expected.get("nextn_hidden_states")!;
  const found = (await read(normed)).subarray(0, hidden.length);
  assertClose(found, hidden, 2e-4, "hidden states");
  const logits = expected.get("nextn_logits")!;
  assertClose((await read(logitsAt)).subarray(0, logits.length), logits, 2e-4, "logits");
  gpu[Symbol.dispose]();
}

for (const software of [true, false]) {
  const kernels = `kernels of ${software ? "software" : "hardware"} adapters`;
  const { test } = software ? Deno : exhaustive;
  test(`deepseek_v3 speculates with its NextN layer as it decodes, ${kernels}`, async () => {
    const runner = await open({ software });
    using sequence = openSequence(runner);
    await speculateChains(runner, sequence);
    runner.gpu[Symbol.dispose]();
  });
}

Deno.test("sequences side by side share experts and have the text they have alone", async () => {
  await sideBySide(await open({ batch: SIDE_BY_SIDE }), golden("expected").get("input_ids")!);
});

exhaustive.test("with states of fixed size sequences side by side have it too, in packed rounds", async () => {
  await using folder = await mtpFolder("qwen3_5");
  const ids = golden("expected", folderOf("qwen3_5")).get("input_ids")!;
  await sideBySide(await open({ model: folder.path, batch: SIDE_BY_SIDE }), ids);
});

const SIDE_BY_SIDE = 3;

async function sideBySide(
  runner: Awaited<ReturnType<typeof open>>,
  ids: readonly number[],
): Promise<void> {
  const batch = SIDE_BY_SIDE;
  using stack = new DisposableStack();
  const sequences = Array.from({ length: batch }, () => stack.use(openSequence(runner)));
  for (const sequence of sequences) assert.ok(runner.reserve(sequence, CELLS));
  const prompts = [ids.slice(0, 8), ids.slice(3, 17), ids.slice(10, 13)];
  const options = { most: 12, sampling: [GREEDY] };
  const alone = [];
  for (const [i, prompt] of prompts.entries()) {
    const [found] = await decode(runner, [sequences[i]!], [prompt], { ...options, numSteps: 0 });
    alone.push(found?.ids);
  }
  for (const numSteps of [0, 1, 3]) {
    const found = await decode(runner, sequences, prompts, { ...options, numSteps });
    assert.deepEqual(found.map((one) => one.ids), alone, `num_steps ${numSteps}`);
    if (numSteps === 0) continue;
    const intercepts = Array<number>(numSteps).fill(0);
    for (const drafts of [1, 4]) {
      const verify = { drafts: Math.min(drafts, 3 * numSteps), slope: 1, intercepts };
      const verifying = () => ({ verify: { ...verify, minConfidence: 0 } });
      const packed = await decode(runner, sequences, prompts, { ...options, numSteps, verifying });
      assert.deepEqual(packed.map((one) => one.ids), alone, `${drafts} drafts of ${numSteps}`);
    }
  }
  runner.gpu[Symbol.dispose]();
}

Deno.test("glm4_moe_lite with a NextN layer of random weights speculates as it decodes", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const from = folderOf("glm4_moe_lite");
    const json = JSON.parse(await Deno.readTextFile(`${from}/config.json`));
    const config = JSON.stringify({ ...json, num_nextn_predict_layers: 1 });
    await Deno.writeTextFile(`${folder}/config.json`, config);
    const stored = tensorsOf(`${from}/model.safetensors`);
    // The layer after the last is the last one again, between a projection and norms.
    const layer = [...stored].flatMap(([name, tensor]) =>
      name.startsWith("model.layers.2.") ? [[name.replace(".2.", ".3."), tensor] as const] : []
    );
    const rows = stored.get("lm_head.weight") ?? assert.fail();
    const norm = stored.get("model.norm.weight") ?? assert.fail();
    const more: [string, typeof norm][] = ["enorm", "hnorm", "shared_head.norm"].map((module) => [
      `model.layers.3.${module}.weight`,
      norm,
    ]);
    const projection = { ...rows, shape: [64, 128], bytes: rows.bytes.subarray(0, 64 * 128 * 2) };
    more.push(["model.layers.3.eh_proj.weight", projection]);
    const file = fileOf(new Map([...stored, ...layer, ...more]));
    await Deno.writeFile(`${folder}/model.safetensors`, file);
    const runner = await open({ model: folder });
    using sequence = openSequence(runner);
    await speculateChains(runner, sequence, from);
    runner.gpu[Symbol.dispose]();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("NEXTN of a checkpoint without such a layer is a usage error", () => {
  const model = new URL("../golden/deepseek_v3_plain", import.meta.url).pathname;
  const wrong = () => openModels({ model, algorithm: "NEXTN" });
  assert.throws(wrong, /Cannot use ".*": config.json has no num_nextn_predict_layers/);
});

Deno.test("NEXTN with an EAGLE head for a draft is a usage error", () => {
  const draft = new URL("../../models/fledgling/eagle3", import.meta.url).pathname;
  const wrong = () => openModels({ model: MODEL, draft, algorithm: "NEXTN" });
  assert.throws(wrong, {
    name: "UsageError",
    message: `Cannot use --drafter NEXTN: the draft "${draft}" is an EAGLE head; ` +
      "leave the flag out, or the draft: NEXTN drafts with a layer of the model's own files",
  });
});

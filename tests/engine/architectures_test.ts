import assert from "node:assert/strict";
import { openSequence } from "../../src/engine/device/single_sequence.ts";
import { checkModel } from "../../src/engine/check/check.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { openGpu } from "../gpu/shared.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { openTensorFile } from "../../src/model/files/tensor_files.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { decode } from "./fledgling.ts";
import { folderOf, loadSpeculated, openSpeculated, SPECULATED } from "./speculated.ts";
import { drawnFrom, EXHAUSTIVE, exhaustive } from "../exhaustive.ts";
import { expectationsOfGoldens } from "../golden_models.ts";

/** The text and what the last rounds may add; the context itself decides which rope is taken. */
const CELLS = 48;

/** Standard deviations; at ten times as much the wrong kind of GELU would pass. */
const TOLERANCE = 2e-4;

for (const { name, files } of expectationsOfGoldens()) {
  for (const file of files) {
    Deno.test(`${name} computes what transformers does: ${file}`, async () => {
      const model = folderOf(name);
      const expected = `${model}/${file}.safetensors`;
      const report = await checkModel({ model, expected, tolerance: TOLERANCE }, openGpu);
      const past = report.tensors.filter(({ ok }) => !ok);
      assert.deepEqual(past.map(({ name, relToStd }) => ({ name, relToStd })), []);
      const { argmaxAgreement: argmax, greedyAgreement: greedy } = report;
      assert.equal(argmax.same, argmax.total);
      assert.equal(greedy?.same, greedy?.total);
    });
  }
}

Deno.test("gemma4_dense cast to bf16 and back has rounded frequencies and a rounded factor of embeddings", async () => {
  const model = folderOf("gemma4_dense");
  const given = { model, expected: `${model}/expected_cast.safetensors`, tolerance: 1e-3 };
  assert.ok((await checkModel({ ...given, roundedBuffers: true }, openGpu)).ok);
  const { tensors: [logits = assert.fail()] } = await checkModel(given, openGpu);
  assert.ok(logits.relToStd > 0.1);
});

Deno.test("gemma3 with images beside it computes what its text model does", async () => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const { architectures: _, ...text } = JSON.parse(
      await Deno.readTextFile(`${folderOf("gemma3")}/config.json`),
    );
    const config = {
      architectures: ["Gemma3ForConditionalGeneration"],
      model_type: "gemma3",
      text_config: text,
    };
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(config));
    const tensors = await Deno.readFile(`${folderOf("gemma3")}/model.safetensors`);
    await Deno.writeFile(`${folder}/model.safetensors`, withImages(tensors));
    const expected = `${folderOf("gemma3")}/expected.safetensors`;
    const warnings: string[] = [];
    const onWarning = (line: string) => warnings.push(line);
    const report = await checkModel(
      { model: folder, expected, tolerance: TOLERANCE, onWarning },
      openGpu,
    );
    assert.ok(report.ok);
    assert.deepEqual(warnings, [
      `${folder}: 1 tensor for images or audio is not used, only text is read`,
    ]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** The file with tensors under the names that transformers 5 gives them beside a vision tower. */
function withImages(file: Uint8Array): Uint8Array {
  const size = Number(new DataView(file.buffer).getBigUint64(0, true));
  const header: Record<string, { data_offsets: number[] }> = JSON.parse(
    new TextDecoder().decode(file.subarray(8, 8 + size)),
  );
  const renamed = Object.entries(header).map(([name, entry]) =>
    [name.replace(/^model\./, "model.language_model."), entry] as const
  );
  const data = file.subarray(8 + size);
  const vision = { dtype: "F32", shape: [1], data_offsets: [data.length, data.length + 4] };
  const json = new TextEncoder().encode(
    JSON.stringify({ ...Object.fromEntries(renamed), "model.vision_tower.scale": vision }),
  );
  const out = new Uint8Array(8 + json.length + data.length + 4);
  new DataView(out.buffer).setBigUint64(0, BigInt(json.length), true);
  out.set(json, 8);
  out.set(data, 8 + json.length);
  return out;
}

/** These have all that is not Llama's; a software adapter takes long to compile them for hardware. */
const ON_HARDWARE = [
  "phi3",
  "olmo2",
  "qwen3",
  "gemma2",
  "deepseek_v2_groups",
  "deepseek_v3",
  "gpt_oss",
  "qwen3_5",
  "lfm2",
  "hunyuan_dense",
  "granite_swa",
  "laguna",
];
const DRAWN = drawnFrom(ON_HARDWARE);

const cases = [
  ...SPECULATED.map((name) => ({ name, kernels: "software" })),
  ...ON_HARDWARE.map((name) => ({ name, kernels: "hardware" })),
];

/** Each number of steps has kernels of its own. */
const STEPS = EXHAUSTIVE ? [0, 1, 3] : [0, 3];

for (const { name, kernels } of cases) {
  const isShort = kernels === "software" || name === DRAWN;
  const { test } = isShort ? Deno : exhaustive;
  test(`${name} speculates as it decodes, ${kernels} kernels: greedy, num_steps ${STEPS}`, async () => {
    const runner = await openSpeculating(name, kernels === "software");
    using sequence = openSequence(runner);
    assert.ok(runner.reserve(sequence, CELLS));
    const expected = greedyIds(name);
    const [prompt, text] = [expected.slice(0, 8), expected.slice(8)];
    for (const numSteps of STEPS) {
      const options = { numSteps, most: text.length, sampling: [GREEDY] };
      const [found] = await decode(runner, [sequence], [prompt], options);
      assert.deepEqual(found?.ids, text, `num_steps ${numSteps}`);
      assert.ok(found.accepted.length > 0);
    }
  });
}

/** The golden with an EAGLE-3 head of random weights, one sequence wide. */
async function openSpeculating(name: string, software: boolean): Promise<Runner> {
  const opened = await openGpu();
  const gpu = { ...opened, info: { ...opened.info, software } };
  using models = await openSpeculated(name);
  return await openRunner(gpu, await loadSpeculated(gpu, models), {
    batch: 1,
    shapes: chains(STEPS),
    prefillRows: 256,
    contextLength: 32,
    pages: CELLS / PAGE,
  });
}

function greedyIds(name: string): number[] {
  using file = openTensorFile(`${folderOf(name)}/expected.safetensors`);
  const tensor = file.tensors.get("greedy_ids")!;
  const bytes = new Uint8Array(tensor.size);
  file.read(tensor, 0, bytes);
  return [
    ...tensor.dtype === "I64" ? new BigInt64Array(bytes.buffer) : new Int32Array(bytes.buffer),
  ]
    .map(Number);
}

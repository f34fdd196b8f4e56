/** Models of quantized checkpoints compute what their weights in float32 do, and speculate so. */
import assert from "node:assert/strict";
import { assertClose } from "../gpu/numbers.ts";
import { openSequence } from "../../src/engine/device/single_sequence.ts";
import type { Runner } from "../../src/engine/device/runner.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { forward } from "../../src/engine/device/logits_dump.ts";
import { withTensorMatrices } from "../../src/engine/matrices/tensor.ts";
import { checkModels, loadWith } from "../../src/engine/load/load.ts";
import type { Gpu } from "../../src/gpu/device.ts";
import { openGpu } from "../gpu/shared.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { randomCheckpoint } from "../../src/model/weights/random_checkpoint.ts";
import { randomWeights } from "../../src/model/weights/random_weights.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { checkpointWeights } from "../../src/model/weights/weights.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { bothOf, CONFIG, DEEPSEEK } from "../model/quantized/checkpoints.ts";
import { LAYOUTS } from "../model/quantized/layouts.ts";
import { decode } from "./fledgling.ts";
import { drawn, EXHAUSTIVE } from "../exhaustive.ts";

const CELLS = 64;
const PROMPT = [3, 17, 42, 5, 60, 9, 33];

/** A Llama layer of random weights beside the target. */
function draftOf(hiddenSize: unknown): unknown {
  return {
    ...CONFIG,
    hidden_size: hiddenSize,
    architectures: ["LlamaForCausalLMEagle3"],
    num_hidden_layers: 1,
    draft_vocab_size: CONFIG["vocab_size"],
    eagle_aux_hidden_state_layer_ids: [0, 1, 1],
  };
}

/** @param units whether the device's matrix units multiply. */
async function open(gpu: Gpu, target: Checkpoint, units: boolean): Promise<Runner> {
  const { hidden_size } = target.json("config.json") as typeof CONFIG;
  const draftFile = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(draftFile, JSON.stringify(draftOf(hidden_size)));
  try {
    using models = checkModels(target, randomCheckpoint(draftFile, "draft"));
    const random = randomWeights(gpu, { seed: 7 });
    const loaded = await loadWith(
      gpu,
      models,
      (checkpoint, part) => part === "target" ? checkpointWeights(gpu, checkpoint) : random,
    );
    random.fillAll();
    const weights = units ? await withTensorMatrices(gpu, loaded, { maxBatch: 16 }) : loaded;
    assert.equal([...weights.tensor?.shards.keys() ?? []].some(({ scales }) => scales), units);
    const [batch, shapes, prefillRows, contextLength] = [1, chains(STEPS), 64, 48];
    return await openRunner(gpu, weights, {
      batch,
      shapes,
      prefillRows,
      contextLength,
      pages: CELLS / PAGE,
    });
  } finally {
    await Deno.remove(draftFile);
  }
}

async function logitsAndTexts(
  gpu: Gpu,
  checkpoint: Checkpoint,
  tiers: readonly number[],
  units = false,
) {
  const runner = await open(gpu, checkpoint, units);
  using sequence = openSequence(runner);
  assert.ok(runner.reserve(sequence, CELLS));
  const texts: string[] = [];
  for (const numSteps of tiers) {
    const options = { numSteps, most: 24, sampling: [GREEDY] };
    const [found] = await decode(runner, [sequence], [PROMPT], options);
    texts.push(found!.ids.join());
  }
  const logits = (await forward(runner, sequence, PROMPT, ["logits"])).get("logits")!;
  return { logits, texts };
}

const gpu = await openGpu();
Deno.test.afterAll(() => gpu[Symbol.dispose]());

/** Each has kernels of its own. */
const STEPS = EXHAUSTIVE ? [0, 1, 3] : [0, 3];

const CASES = [
  ...["gptq, groups of 32", "awq, groups of 128", "int8", "fp8, blocks", "modelopt nvfp4"]
    .map((name) => ({ name, layout: name, config: CONFIG })),
  { name: "DeepSeek-V3 in fp8", layout: "fp8, blocks", config: DEEPSEEK },
];

for (const { name, layout, config } of CASES) {
  // What their tensors hold is in tests/model/quantized, their kernels in tests/kernels.
  const { test } = /^(gptq|awq)/.test(layout) ? Deno : drawn;
  test(`${name}: logits of float32 weights; one text at num_steps ${STEPS}`, async () => {
    const { quantized, float } = bothOf(LAYOUTS[layout]!, config);
    const found = await logitsAndTexts(gpu, quantized, STEPS);
    const expected = await logitsAndTexts(gpu, float, [0]);
    // Hardware gives a narrow quantized matrix fewer lanes than its twin: another order of the sum. Sums of eight
    // weights of NVFP4 are multiplied by their scale, which is no power of two: each product would round otherwise.
    const exact = gpu.info.software && layout !== "modelopt nvfp4";
    if (exact) assert.deepEqual(found.logits, expected.logits);
    else assertClose(found.logits, expected.logits, 1e-4, name);
    assert.ok(new Set(found.logits).size > 64, "logits differ among themselves");
    const [text = ""] = expected.texts;
    assert.deepEqual(found.texts, STEPS.map(() => text));
    assert.ok(new Set(text.split(",")).size > 1, text);
  });
}

for (const { name, layout, config } of CASES) {
  Deno.test({
    name: `${name} on matrix units: logits near those of float32; one text at num_steps ${STEPS}`,
    ignore: gpu.matrixUnit === undefined,
    async fn() {
      const { quantized, float } = bothOf(LAYOUTS[layout]!, config);
      const { logits, texts } = await logitsAndTexts(gpu, quantized, STEPS, true);
      const expected = await logitsAndTexts(gpu, float, [0]);
      const squares = (of: (logit: number, i: number) => number) =>
        logits.reduce((sum, logit, i) => sum + of(logit, i) ** 2, 0);
      const error = squares((logit, i) => logit - (expected.logits[i] ?? NaN));
      // Each matmul rounds both its factors to 2^-12 at most; there are a few in a row.
      assert.ok(error <= squares((logit) => logit) * 2 ** -18, `${Math.sqrt(error)}`);
      assert.ok(error > 0);
      assert.equal(new Set(texts).size, 1);
      assert.ok(new Set(texts[0]?.split(",")).size > 1);
    },
  });
}

/** `convert --quantize` writes what `--quantize` makes of the same model at load. */
import assert from "node:assert/strict";
import { openSequence } from "../../src/engine/device/single_sequence.ts";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { forward } from "../../src/engine/device/logits_dump.ts";
import { loadWeights, openModels } from "../../src/engine/load/load.ts";
import type { Quantization } from "../../src/gpu/weight_format.ts";
import { convertCheckpoint } from "../../src/model/checkpoint/convert.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { quantizableTensors } from "../../src/model/weights/quantizable.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { openGpu } from "../gpu/shared.ts";
import { exhaustive } from "../exhaustive.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const CELLS = 32;
const PROMPT = [3, 17, 42, 5, 60, 9, 33];

const gpu = await openGpu();
Deno.test.afterAll(() => gpu[Symbol.dispose]());

async function logitsOf(model: string, quantize?: Quantization): Promise<Float32Array> {
  using models = openModels({ model, draft: "none" });
  const weights = await loadWeights(gpu, models, quantize ? { quantize } : {});
  const runner = await openRunner(gpu, weights, {
    batch: 1,
    shapes: chains([0]),
    prefillRows: 16,
    contextLength: CELLS,
    pages: CELLS / PAGE,
  });
  using sequence = openSequence(runner);
  assert.ok(runner.reserve(sequence, CELLS));
  const logits = (await forward(runner, sequence, PROMPT, ["logits"])).get("logits");
  assert.ok(logits);
  return Float32Array.from(logits);
}

async function converting(
  from: string,
  quantize: Quantization,
  use: (to: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    const to = `${folder}/out`;
    const how = { to: quantize, names: quantizableTensors };
    await convertCheckpoint({ from, to, force: false, shardBytes: 1e9, quantize: how });
    await use(to);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

// Rows of fused tensors; experts, and a shared one; a tied embedding; rows of q and k that are reordered while loaded.
const CASES = [
  ["tests/golden/phi3", "q8"],
  ["tests/golden/deepseek_v3", "q4"],
  ["models/fledgling/target", "q4"],
  ["tests/golden/ernie4_5", "q8"],
] as const;

for (const [model, quantize] of CASES) {
  const { test } = /deepseek|ernie/.test(model) ? Deno : exhaustive;
  test(`${model} converted to ${quantize}: the logits of --quantize ${quantize}, to the bit`, async () => {
    await converting(ROOT + model, quantize, async (to) => {
      using stored = openCheckpoint(to);
      const grouped = [...stored.tensors.values()].filter(({ dtype }) =>
        dtype === (quantize === "q4" ? "GROUPED_Q4" : "GROUPED_Q8")
      );
      assert.ok(grouped.length > 0, "something is quantized");
      assert.deepEqual(await logitsOf(to), await logitsOf(ROOT + model, quantize));
    });
  });
}

import assert from "node:assert/strict";
import { checkModel } from "../../src/engine/check/check.ts";
import { openGpu } from "../gpu/shared.ts";
import { openTensorFile } from "../../src/model/files/tensor_files.ts";
import { fileOf } from "../model/quantized/checkpoints.ts";
import type { Stored } from "../model/quantized/layouts.ts";

const MODEL = new URL("../golden/llama2", import.meta.url).pathname;
function storedTensors(path: string): Stored[] {
  using file = openTensorFile(path);
  return file.tensors.values().toArray().map((tensor) => {
    const bytes = new Uint8Array(tensor.size);
    file.read(tensor, 0, bytes);
    return { name: tensor.name, dtype: tensor.dtypeName, shape: tensor.shape, bytes };
  });
}

const NAN_BF16 = 0x7fc0;

/** The report of the golden with a tensor of the model or of its expected values changed. */
async function checked(name: string, change: (tensor: Stored) => Stored) {
  const model = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const write = async (file: string) => {
    const tensors = storedTensors(`${MODEL}/${file}`)
      .map((tensor) => tensor.name === name ? change(tensor) : tensor);
    await Deno.writeFile(`${model}/${file}`, fileOf(tensors));
    return `${model}/${file}`;
  };
  try {
    await Deno.copyFile(`${MODEL}/config.json`, `${model}/config.json`);
    await write("model.safetensors");
    const expected = await write("expected.safetensors");
    return await checkModel({ model, expected, tolerance: 2e-4 }, openGpu);
  } finally {
    await Deno.remove(model, { recursive: true });
  }
}

Deno.test("check fails for a logit that is no number, also if the last one is right", async () => {
  const report = await checked("lm_head.weight", (head) => {
    const words = new Uint16Array(head.bytes.slice().buffer);
    const [, cols = 0] = head.shape;
    words.fill(NAN_BF16, 5 * cols, 6 * cols);
    return { ...head, bytes: new Uint8Array(words.buffer) };
  });
  const [logits = assert.fail()] = report.tensors;
  assert.deepEqual([logits.name, logits.maxAbs, logits.ok], ["logits", NaN, false]);
  assert.equal(report.ok, false);
});

Deno.test("check refuses input_ids that are no tokens, and none at all", async () => {
  const ids = (...values: readonly number[]) => (tensor: Stored): Stored => ({
    ...tensor,
    dtype: "I64",
    shape: [values.length],
    bytes: new Uint8Array(BigInt64Array.from(values, BigInt).buffer),
  });
  for (const wrong of [320, -1]) {
    await assert.rejects(checked("input_ids", ids(1, wrong)), {
      name: "UsageError",
      message: new RegExp(`tensor "input_ids" has ${wrong}, token ids are 0 to 319$`),
    });
  }
  await assert.rejects(checked("input_ids", ids()), {
    name: "UsageError",
    message: /tensor "input_ids" is empty$/,
  });
});

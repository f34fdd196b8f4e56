/** Experts whose matrices are rows of one tensor, as transformers 5 names them. */
import assert from "node:assert/strict";
import { convertCheckpoint } from "../../src/model/checkpoint/convert.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { parseModelConfig } from "../../src/model/config/config.ts";
import { quantizableTensors } from "../../src/model/weights/quantizable.ts";
import { join } from "./checkpoint_in_memory.ts";
import { fileOf, tensorsOf } from "./safetensors_bytes.ts";
import { checkTarget, findTensor, targetTensors } from "../../src/model/weights/tensors.ts";

const EXPERTS = 8;
const GOLDEN = new URL("../golden/qwen3_moe/", import.meta.url).pathname;

/** The golden's file with the experts of each layer in two tensors of three dimensions. */
function stackedFile(): Uint8Array<ArrayBuffer> {
  const tensors = tensorsOf(`${GOLDEN}/model.safetensors`);
  const out = new Map([...tensors].filter(([name]) => !name.includes(".experts.")));
  for (const [name, { dtype, shape: [rows = 0, cols = 0] }] of tensors) {
    const [, prefix, kind] = /^(.*\.experts)\.0\.(gate|down)_proj\.weight$/.exec(name) ?? [];
    if (prefix === undefined) continue;
    const of = (expert: number, module: string) =>
      tensors.get(`${prefix}.${expert}.${module}.weight`)?.bytes ?? assert.fail(module);
    const modules = kind === "gate" ? ["gate_proj", "up_proj"] : ["down_proj"];
    const experts = Array.from(Array(EXPERTS).keys());
    out.set(`${prefix}.${kind === "gate" ? "gate_up_proj" : "down_proj"}`, {
      dtype,
      shape: [EXPERTS, modules.length * rows, cols],
      bytes: join(experts.flatMap((expert) => modules.map((module) => of(expert, module)))),
    });
  }
  return fileOf(out);
}

async function withStacks(use: (folder: string, parent: string) => Promise<void>): Promise<void> {
  const parent = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const folder = `${parent}/stacks`;
  try {
    await Deno.mkdir(folder);
    await Deno.copyFile(`${GOLDEN}/config.json`, `${folder}/config.json`);
    await Deno.writeFile(`${folder}/model.safetensors`, stackedFile());
    await use(folder, parent);
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
}

/** Bytes of every role of a target. */
function bytesOfRoles(folder: string): Map<string, string> {
  using checkpoint = openCheckpoint(folder);
  const config = parseModelConfig(folder, checkpoint.json("config.json"), undefined);
  assert.deepEqual(checkTarget(checkpoint, config), []);
  return new Map(
    targetTensors(config).map((spec) => {
      const tensor = findTensor(checkpoint, spec);
      assert.ok(tensor);
      assert.deepEqual(tensor.shape, spec.shape);
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      return [spec.role, bytes.toHex()];
    }),
  );
}

Deno.test("experts in one tensor have the rows of experts in many, quantized ones too", async () => {
  await withStacks(async (folder, parent) => {
    assert.deepEqual(bytesOfRoles(folder), bytesOfRoles(GOLDEN));
    const quantize = { to: "q8", names: quantizableTensors } as const;
    const [many, stacks] = [`${parent}/many`, `${parent}/converted`];
    const how = { force: false, shardBytes: 1e9, quantize };
    await convertCheckpoint({ ...how, from: GOLDEN, to: many });
    await convertCheckpoint({ ...how, from: folder, to: stacks });
    const [expected, found] = [bytesOfRoles(many), bytesOfRoles(stacks)];
    assert.deepEqual(found, expected);
    assert.notDeepEqual(found, bytesOfRoles(folder));
  });
});

Deno.test("a stack of another shape is refused by name", async () => {
  await withStacks((folder) => {
    using checkpoint = openCheckpoint(folder);
    const json = { ...checkpoint.json("config.json") as object, moe_intermediate_size: 40 };
    const config = parseModelConfig(folder, json, undefined);
    assert.throws(
      () => checkTarget(checkpoint, config),
      /tensor "model\.layers\.0\.mlp\.experts\.gate_up_proj" has shape \[\d+,64,64\], expected \[\d+,80,64\]/,
    );
    return Promise.resolve();
  });
});

import assert from "node:assert/strict";
import { openModels } from "../../src/engine/load/load.ts";
import { convertCheckpoint } from "../../src/model/checkpoint/convert.ts";
import { quantizableTensors } from "../../src/model/weights/quantizable.ts";
import { fileOf, tensorsOf } from "./safetensors_bytes.ts";

/** It has a NextN layer, the third. */
const WHOLE = new URL("../golden/deepseek_v3", import.meta.url).pathname;
const LAYER = "model.layers.2.";

/** A folder with what a careless export leaves of it: no layer that drafts, and a config that names none. */
async function withExport(use: (folder: string, parent: string) => Promise<void>): Promise<void> {
  const parent = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const folder = `${parent}/export`;
  try {
    await Deno.mkdir(folder);
    const { num_nextn_predict_layers: count, ...json } = JSON.parse(
      await Deno.readTextFile(`${WHOLE}/config.json`),
    );
    assert.equal(count, 1);
    await Deno.writeTextFile(`${folder}/config.json`, JSON.stringify(json));
    const kept = [...tensorsOf(`${WHOLE}/model.safetensors`)].filter(([name]) =>
      !name.startsWith(LAYER)
    );
    await Deno.writeFile(`${folder}/model.safetensors`, fileOf(new Map(kept)));
    await use(folder, parent);
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
}

const algorithm = "NEXTN";

Deno.test("a donor has the layer that NEXTN drafts with; all else is the model's own", async () => {
  await withExport(async (folder, parent) => {
    const model = `${parent}/q8`;
    const quantize = { to: "q8", names: quantizableTensors } as const;
    await convertCheckpoint({ from: folder, to: model, force: false, shardBytes: 1e9, quantize });
    const stored = tensorsOf(`${WHOLE}/model.safetensors`);
    // The layer's copies of the embedding and of the head are not read.
    const lacking = [...stored.keys()].filter((name) =>
      name.startsWith(LAYER) && !/\.(embed_tokens|shared_head\.head)\.weight$/.test(name)
    );
    using models = openModels({ model, donor: WHOLE, algorithm });
    assert.deepEqual(models.warnings, [
      `${model}: "${WHOLE}" has ${lacking.length} tensors that are missing, they are read from there`,
    ]);
    const { checkpoint } = models.draft ?? assert.fail();
    for (const name of [`${LAYER}eh_proj.weight`, `${LAYER}mlp.experts.5.up_proj.weight`]) {
      const tensor = checkpoint.tensors.get(name) ?? assert.fail(name);
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      assert.deepEqual(bytes, stored.get(name)?.bytes);
    }
    const own = models.target.checkpoint.tensors.get("model.layers.1.self_attn.o_proj.weight");
    assert.equal(own?.dtype, "GROUPED_Q8");
  });
});

Deno.test("a tensor of the donor that does not fit is named by the donor's file", async () => {
  await withExport(async (folder, parent) => {
    const donor = `${parent}/donor`;
    await Deno.mkdir(donor);
    await Deno.copyFile(`${WHOLE}/config.json`, `${donor}/config.json`);
    const tensors = tensorsOf(`${WHOLE}/model.safetensors`);
    const name = `${LAYER}enorm.weight`;
    const { bytes, dtype } = tensors.get(name) ?? assert.fail(name);
    tensors.set(name, { dtype, shape: [8], bytes: bytes.subarray(0, 16) });
    await Deno.writeFile(`${donor}/model.safetensors`, fileOf(tensors));
    assert.throws(() => openModels({ model: folder, donor, algorithm }), {
      name: "UsageError",
      message: `Cannot use "${donor}/model.safetensors": tensor "${name}" has shape [8], ` +
        "expected [64] by config.json",
    });
  });
});

Deno.test("without a donor the missing layer is one line, and a donor of nothing another", async () => {
  await withExport(async (folder) => {
    const json = JSON.parse(await Deno.readTextFile(`${folder}/config.json`));
    const said = JSON.stringify({ ...json, num_nextn_predict_layers: 1 });
    await Deno.writeTextFile(`${folder}/config.json`, said);
    assert.throws(() => openModels({ model: folder, algorithm }), {
      name: "UsageError",
      message:
        `Cannot use "${folder}": it has no tensors of model.layers.2, the layer that NEXTN ` +
        "drafts with; --donor MODEL reads them from another checkpoint of the model",
    });
    using models = openModels({ model: WHOLE, donor: folder });
    assert.deepEqual(models.warnings, [
      `${WHOLE}: "${folder}" is not used: no tensor that it has is missing`,
    ]);
  });
});

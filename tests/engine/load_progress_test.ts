import assert from "node:assert/strict";
import { checkModels, type LoadProgress, loadWeights } from "../../src/engine/load/load.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { openEmbedded } from "../../src/model/checkpoint/embedded.ts";
import { openGpu } from "../gpu/shared.ts";

const GOLDEN = new URL("../golden/gpt_oss_mxfp4", import.meta.url).pathname;

Deno.test("the progress of loading ends at its total, whatever other tensors the files have", async () => {
  const target = openEmbedded("target");
  const [embed] = target.tensors.values();
  assert.ok(embed);
  const image = { ...embed, name: "model.visual.patch_embed.weight" };
  const tensors = new Map([...target.tensors, [image.name, image] as const]);
  // The head has t2d, which is not read.
  using models = checkModels({ ...target, tensors }, openEmbedded("eagle3"));
  using gpu = await openGpu();
  const last = new Map<string, readonly number[]>();
  await loadWeights(gpu, models, {
    onProgress: ({ label, done, total }) => last.set(label, [done, total]),
  });
  assert.deepEqual([...last.keys()], ["fledgling/target", "fledgling/eagle3"]);
  for (const [label, [done, total]] of last) assert.equal(done, total, label);
});

Deno.test("it ends there for scales that are packed narrower than they are read", async () => {
  using models = checkModels(openCheckpoint(GOLDEN), undefined);
  using gpu = await openGpu();
  let last: LoadProgress | undefined;
  await loadWeights(gpu, models, { onProgress: (progress) => last = progress });
  assert.ok(last && last.total > 0);
  assert.equal(last.done, last.total);
});

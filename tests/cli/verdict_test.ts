import assert from "node:assert/strict";
import { verdictOf } from "../../src/cli/hub/verdict.ts";
import { shapesOf, tensorFile, withFolder } from "../model/folders.ts";
import { EAGLE3, target, TARGET_JSON } from "../model/drafts.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";

const MACHINE = { adapter: true, bytes: 1e9 };
const DTYPES = { d2t: "I64", t2d: "BOOL" };

function verdict(files: Readonly<Record<string, unknown>>) {
  let found: ReturnType<typeof verdictOf> | undefined;
  withFolder(files, (folder) => {
    found = verdictOf(folder, MACHINE);
  });
  assert.ok(found);
  return found;
}

Deno.test("a draft whose tensors would be left out does not run", () => {
  const draft = (more: Readonly<Record<string, readonly number[]>>) =>
    verdict({
      "config.json": { ...TARGET_JSON, num_hidden_layers: 1 },
      "model.safetensors": tensorFile({ ...EAGLE3, ...more }, DTYPES),
    });
  assert.equal(draft({}).kind, "draft");
  const parallel = draft({ mask_hidden: [1, 1, 48] });
  assert.ok(parallel.kind === "unusable");
  assert.match(parallel.reason, /"mask_hidden" belongs to a kind of draft that is not supported$/);
});

Deno.test("a model without tokenizer.json does not run", () => {
  const files = {
    "config.json": TARGET_JSON,
    "model.safetensors": tensorFile(shapesOf(targetTensors(target()))),
  };
  assert.equal(verdict({ ...files, "tokenizer.json": {} }).kind, "target");
  const silent = verdict(files);
  assert.ok(silent.kind === "unusable");
  assert.match(silent.reason, /^no tokenizer\.json; /);
});

import assert from "node:assert/strict";
import { missingOf, type RemoteFile, textFiles, weightFiles } from "../../src/hub/needed.ts";

function listed(...paths: string[]): RemoteFile[] {
  return paths.map((path) => ({ path, size: 1, etag: "", hash: "sha256" }));
}

const paths = (files: readonly RemoteFile[]) => files.map(({ path }) => path);
const INDEX = { weight_map: { a: "s-1.safetensors", b: "s-2.safetensors", c: "s-1.safetensors" } };

Deno.test("texts: what some part reads, and the index of the preferred format", () => {
  const all = listed(
    "README.md",
    "config.json",
    "chat_template.jinja",
    "onnx/config.json",
    "vocab.json",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
  );
  assert.deepEqual(paths(textFiles(all)), [
    "config.json",
    "chat_template.jinja",
    "model.safetensors.index.json",
  ]);
  const pickled = all.filter(({ path }) => path !== "model.safetensors.index.json");
  assert.deepEqual(paths(textFiles([...pickled, ...listed("model.safetensors")])), [
    "config.json",
    "chat_template.jinja",
  ]);
});

Deno.test("weights: one file, else the shards of the index, safetensors before pickles", () => {
  const shards = listed("s-1.safetensors", "s-2.safetensors", "s-3.safetensors");
  const sharded = [...shards, ...listed("model.safetensors.index.json", "pytorch_model.bin")];
  const weights = (files: readonly RemoteFile[]) => paths(weightFiles("a/b", files, () => INDEX));
  assert.deepEqual(weights(sharded), ["s-1.safetensors", "s-2.safetensors"]);
  assert.deepEqual(weights([...sharded, ...listed("model.safetensors")]), ["model.safetensors"]);
  assert.deepEqual(weights(listed("pytorch_model.bin")), ["pytorch_model.bin"]);
  assert.throws(() => weights(sharded.filter(({ path }) => path !== "s-2.safetensors")), {
    name: "UsageError",
    message: 'Cannot get "a/b": model.safetensors.index.json names "s-2.safetensors", ' +
      "which it lacks",
  });
  assert.throws(() => weightFiles("a/b", sharded, () => ({ weight_map: [] })), {
    message: 'Cannot get "a/b": model.safetensors.index.json has no weight_map',
  });
  assert.throws(() => weights(listed("a.gguf", "b.gguf", "c.gguf", "d.gguf")), {
    message: /it has a\.gguf, b\.gguf, c\.gguf and 1 more$/,
  });
});

// unsloth/Qwen3.8-27B-NVFP4 is published like this.
Deno.test("weights: one file that the index counts among its shards comes with the others", () => {
  const index = "model.safetensors.index.json";
  const map = { weight_map: { a: "model.safetensors", b: "model_mtp.safetensors" } };
  const files = listed("config.json", index, "model.safetensors", "model_mtp.safetensors", "x.bin");
  assert.deepEqual(paths(textFiles(files)), ["config.json", index]);
  assert.deepEqual(paths(weightFiles("a/b", files, () => map)), [
    "model.safetensors",
    "model_mtp.safetensors",
  ]);
  const has = (file: string) => file !== "model_mtp.safetensors";
  assert.equal(missingOf(has, () => map), "model_mtp.safetensors");
  assert.equal(missingOf(() => true, () => map), undefined);
});

Deno.test("what a snapshot lacks to be run", () => {
  const missing = (...files: string[]) => missingOf((file) => files.includes(file), () => INDEX);
  const index = "model.safetensors.index.json";
  assert.equal(missing(), "config.json");
  assert.equal(missing("config.json"), "model.safetensors");
  assert.equal(missing("config.json", "model.safetensors"), undefined);
  assert.equal(missing("config.json", "pytorch_model.bin"), undefined);
  assert.equal(missing("config.json", index, "s-1.safetensors"), "s-2.safetensors");
  assert.equal(missing("config.json", index, "s-1.safetensors", "s-2.safetensors"), undefined);
  const empty = missingOf((file) => file !== "model.safetensors", () => null);
  assert.equal(empty, `shards that ${index} names`);
});

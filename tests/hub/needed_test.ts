import assert from "node:assert/strict";
import { lacking, type RemoteFile, textFiles, weightFiles } from "../../src/hub/needed.ts";

function listed(...paths: string[]): RemoteFile[] {
  return paths.map((path) => ({ path, size: 1, etag: "", hash: "sha256" }));
}

const paths = (files: readonly RemoteFile[]) => files.map(({ path }) => path);
const INDEX = { weight_map: { a: "s-1.safetensors", b: "s-2.safetensors", c: "s-1.safetensors" } };

Deno.test("texts: what some part reads, the index only where it is used", () => {
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
  assert.deepEqual(paths(textFiles([...all, ...listed("model.safetensors")])), [
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

Deno.test("what a snapshot lacks to be run", () => {
  const lacks = (...files: string[]) => lacking((file) => files.includes(file), () => INDEX);
  const index = "model.safetensors.index.json";
  assert.equal(lacks(), "config.json");
  assert.equal(lacks("config.json"), "model.safetensors");
  assert.equal(lacks("config.json", "model.safetensors"), undefined);
  assert.equal(lacks("config.json", "pytorch_model.bin"), undefined);
  assert.equal(lacks("config.json", index, "s-1.safetensors"), "s-2.safetensors");
  assert.equal(lacks("config.json", index, "s-1.safetensors", "s-2.safetensors"), undefined);
  const empty = lacking((file) => file !== "model.safetensors", () => null);
  assert.equal(empty, `the shards that ${index} names`);
});

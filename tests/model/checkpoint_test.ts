import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { checkTensors } from "../../src/model/weights/tensors.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { TensorInfo } from "../../src/model/files/safetensors.ts";
import { openEmbedded } from "../../src/model/checkpoint/embedded.ts";
import { type Files, safetensors, tensorFile, toyCheckpoint, withFolder } from "./folders.ts";
import { torchFile, type TorchTensor } from "./torch_files.ts";

const CONFIG = { "config.json": {} };

function rejects(open: () => unknown, ...parts: string[]): void {
  assert.throws(open, (error: unknown) => {
    assert.ok(error instanceof UsageError, String(error));
    for (const part of parts) {
      assert.ok(error.message.includes(part), `${error.message} lacks ${part}`);
    }
    return true;
  });
}

function rejectsFiles(files: Files, ...parts: string[]): void {
  withFolder(files, (folder) => rejects(() => openCheckpoint(folder), `"${folder}`, ...parts));
}

Deno.test("a tensor's bytes are read from any place of it", () => {
  withFolder({ ...CONFIG, "model.safetensors": tensorFile({ a: [3], b: [8] }) }, (folder) => {
    using checkpoint = openCheckpoint(folder);
    const b = checkpoint.tensors.get("b");
    assert.ok(b);
    const into = new Uint8Array(4);
    checkpoint.read(b, 2, into);
    assert.deepEqual([...into], [8, 9, 10, 11]);
    assert.throws(() => checkpoint.read(b, 13, into), RangeError);
    assert.throws(() => checkpoint.read(b, -1, into), RangeError);
  });
});

Deno.test("a folder that is not there, or not a folder, is told so", () => {
  rejects(() => openCheckpoint("/nowhere/at/all"), 'Cannot open "/nowhere/at/all": no such folder');
  withFolder({ "model.gguf": "x" }, (folder) => {
    rejects(() => openCheckpoint(`${folder}/model.gguf`), "not a folder");
    rejects(() => openCheckpoint(`${folder}/model.gguf/x`), "no such folder");
  });
});

Deno.test("a folder without config.json or weights is not a checkpoint", () => {
  rejectsFiles({}, "not a checkpoint (no config.json)");
  rejectsFiles(CONFIG, "not a checkpoint (no model.safetensors");
  rejectsFiles({ ...CONFIG, "pytorch_model.bin": "x" }, "pytorch_model.bin", "no zip");
});

Deno.test("a config.json that is no JSON object is told so", () => {
  rejectsFiles({ "config.json": "{\n'a': 1}" }, "config.json is not JSON");
  rejectsFiles({ "config.json": [1] }, "config.json is not a JSON object");
  rejectsFiles({ "config.json": Uint8Array.of(0xff, 0xfe) }, "config.json is not UTF-8");
});

Deno.test("a config.json too large to be one is not read", () => {
  withFolder({ ...CONFIG }, (folder) => {
    Deno.truncateSync(`${folder}/config.json`, 2 ** 40); // a hole, it takes no disk
    rejects(() => openCheckpoint(folder), "config.json", "1099511627776 bytes, expected at most");
  });
});

Deno.test("other files: undefined when absent, an error when broken", () => {
  const files = { ...CONFIG, "model.safetensors": tensorFile({}), "bad.json": "{", "a.txt": "é" };
  using checkpoint = toyCheckpoint(files);
  assert.equal(checkpoint.json("generation_config.json"), undefined);
  assert.equal(checkpoint.text("chat_template.jinja"), undefined);
  assert.equal(checkpoint.text("a.txt"), "é");
  rejects(() => checkpoint.json("bad.json"), 'Cannot open "toy": bad.json is not JSON');
});

Deno.test("a config.json with Python's Infinity, as those of Mamba layers have", () => {
  const files = {
    "config.json": '{"time_step_limit": [0.0, Infinity], "num_hidden_layers": 2}',
    "model.safetensors": tensorFile({}),
  };
  assert.equal(
    (toyCheckpoint(files).json("config.json") as Record<string, unknown>)["num_hidden_layers"],
    2,
  );
});

Deno.test("bytes that belong to no tensor are refused, as the reference library does", () => {
  const whole = tensorFile({ a: [2, 2], b: [4] });
  const longer = new Uint8Array(whole.length + 3);
  longer.set(whole);
  const files = { ...CONFIG, "model.safetensors": longer };
  rejectsFiles(files, "3 bytes after the last tensor belong to none");
});

Deno.test("a folder in place of a file is told in one line", () => {
  withFolder({ ...CONFIG }, (folder) => {
    Deno.mkdirSync(`${folder}/model.safetensors`);
    assert.throws(() => openCheckpoint(folder), UsageError);
  });
});

Deno.test({
  name: "a pipe or a device in place of a file is not opened: neither has an end",
  ignore: Deno.build.os === "windows",
  fn() {
    withFolder({ ...CONFIG }, (folder) => {
      const [weights, config] = [`${folder}/model.safetensors`, `${folder}/config.json`];
      new Deno.Command("mkfifo", { args: [weights] }).outputSync();
      rejects(() => openCheckpoint(folder), `Cannot open "${weights}": not a file`);
      Deno.removeSync(config);
      Deno.symlinkSync("/dev/zero", config);
      rejects(() => openCheckpoint(folder), `Cannot open "${config}": not a file`);
    });
  },
});

Deno.test("a truncated file names file and tensor", () => {
  const whole = tensorFile({ a: [3], b: [8] });
  const files = { ...CONFIG, "model.safetensors": whole.slice(0, -1) };
  rejectsFiles(files, "model.safetensors", 'tensor "b" is truncated');
  rejectsFiles({ ...CONFIG, "model.safetensors": whole.slice(0, 20) }, "truncated");
  rejectsFiles({ ...CONFIG, "model.safetensors": "" }, "truncated: 0 bytes", "; download it again");
  const torch = torchFile({ a: { storage: "ByteStorage", key: "0", elements: 1, shape: [1] } }, {
    0: Uint8Array.of(1),
  });
  rejectsFiles({ ...CONFIG, "pytorch_model.bin": torch.slice(0, -9) }, "; download it again");
});

Deno.test("what is cut or gone in a snapshot of the hub, pull brings again", () => {
  const commit = "12".repeat(20);
  const again = `; eyrie pull org/toy@${commit} brings it again`;
  withFolder({}, (cache) => {
    const folder = `${cache}/models--org--toy/snapshots/${commit}`;
    Deno.mkdirSync(folder, { recursive: true });
    Deno.writeTextFileSync(`${folder}/config.json`, "{}");
    const weights = `${folder}/model.safetensors`;
    Deno.writeFileSync(weights, tensorFile({ a: [3] }).slice(0, -1));
    rejects(() => openCheckpoint(folder), `Cannot read "org/toy@1212121/model.safetensors"`, again);
    Deno.removeSync(weights);
    Deno.symlinkSync("../../blobs/gone", weights);
    const dangling = `Cannot open "${weights}": a link to "../../blobs/gone", which is not there`;
    rejects(() => openCheckpoint(folder), dangling + again);
  });
});

Deno.test("a link that leads nowhere is told of, for the folder and for files that may be absent", () => {
  withFolder({ ...CONFIG, "model.safetensors": tensorFile({ a: [3] }) }, (folder) => {
    Deno.symlinkSync("/nowhere", `${folder}/generation_config.json`);
    Deno.symlinkSync("/nowhere", `${folder}/model`);
    using checkpoint = openCheckpoint(folder);
    const why = 'a link to "/nowhere", which is not there';
    rejects(() => checkpoint.json("generation_config.json"), why, "; download it again");
    rejects(() => openCheckpoint(`${folder}/model`), `Cannot open "${folder}/model": ${why}`);
  });
});

Deno.test("a Git LFS pointer in place of weights is told so", () => {
  const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n";
  rejectsFiles({ ...CONFIG, "model.safetensors": pointer }, "it is a Git LFS pointer");
});

Deno.test("a file cut after it was opened names the tensor", () => {
  withFolder({ ...CONFIG, "model.safetensors": tensorFile({ a: [3], b: [8] }) }, (folder) => {
    using checkpoint = openCheckpoint(folder);
    const b = checkpoint.tensors.get("b");
    assert.ok(b);
    Deno.truncateSync(`${folder}/model.safetensors`, b.begin + 3);
    rejects(
      () => checkpoint.read(b, 0, new Uint8Array(16)),
      "model.safetensors",
      'tensor "b" ends early',
    );
  });
});

Deno.test("overlapping tensors name the file and both", () => {
  const one = { dtype: "BF16", shape: [4], data_offsets: [0, 8] };
  const two = { dtype: "BF16", shape: [4], data_offsets: [6, 14] };
  const files = { ...CONFIG, "model.safetensors": safetensors({ one, two }, 14) };
  rejectsFiles(files, "model.safetensors", 'tensors "one" and "two" overlap');
});

const INDEX = "model.safetensors.index.json";
const SHARDS = {
  ...CONFIG,
  "s1.safetensors": tensorFile({ a: [3] }),
  "s2.safetensors": tensorFile({ b: [8] }),
};

Deno.test("shards are found through the index", () => {
  const files = {
    ...SHARDS,
    [INDEX]: { weight_map: { a: "s1.safetensors", b: "s2.safetensors" } },
  };
  withFolder(files, (folder) => {
    using checkpoint = openCheckpoint(folder);
    const into = new Uint8Array(2);
    const b = checkpoint.tensors.get("b");
    assert.ok(b);
    assert.equal(b.file, "s2.safetensors");
    checkpoint.read(b, 14, into);
    assert.deepEqual([...into], [14, 15]);
  });
});

Deno.test("a single file is one of the shards if the index names it", () => {
  const files = {
    ...CONFIG,
    "model.safetensors": tensorFile({ a: [3] }),
    "model_mtp.safetensors": tensorFile({ b: [8] }),
  };
  const namesOf = (weightMap: unknown) =>
    toyCheckpoint({ ...files, [INDEX]: { weight_map: weightMap } }).tensors.keys().toArray();
  const both = { a: "model.safetensors", b: "model_mtp.safetensors" };
  assert.deepEqual(namesOf(both), ["a", "b"]);
  // An index that was left behind by the model that this one was made from.
  assert.deepEqual(namesOf({ a: "model-00001-of-00002.safetensors" }), ["a"]);
  assert.deepEqual(namesOf(undefined), ["a"]);
});

for (
  const [what, weightMap, ...parts] of [
    ["no map", undefined, "no weight_map"],
    ["a missing shard", { a: "s3.safetensors" }, '"s3.safetensors"', "no such file"],
    ["a path upwards", { a: "../s1.safetensors" }, 'tensor "a"', "expected a file of the folder"],
    ["an absolute path", { a: "/etc/passwd" }, "/etc/passwd", "expected a file of the folder"],
    ["a Windows path", { a: "..\\s1" }, "expected a file of the folder"],
    ["a code of terminals", { a: "\x1b[2J" }, "\\u001b[2J", "expected a file of the folder"],
    ["a number", { a: 3 }, "in 3, expected"],
  ] as const
) {
  Deno.test(`an index with ${what} is an error`, () => {
    rejectsFiles({ ...SHARDS, [INDEX]: { weight_map: weightMap } }, INDEX, ...parts);
  });
}

Deno.test("an index that is wrong about tensors is a warning: the shards decide", () => {
  const weight_map = { a: "s1.safetensors", gone: "s2.safetensors", b: "s1.safetensors" };
  withFolder({ ...SHARDS, [INDEX]: { weight_map } }, (folder) => {
    using checkpoint = openCheckpoint(folder);
    assert.deepEqual([...checkpoint.tensors.keys()], ["a", "b"]);
    assert.deepEqual(checkpoint.warnings, [
      `${folder}: ${INDEX} puts tensor "gone" in "s2.safetensors", but it is in none of the ` +
      "shards; it is wrong about 1 more",
    ]);
    assert.deepEqual(checkTensors(checkpoint, []).slice(0, 1), checkpoint.warnings);
    const needed = [{ role: "gone", name: "gone", shape: [1], kind: "vector" }] as const;
    assert.throws(() => checkTensors(checkpoint, needed), { message: /"gone" is missing$/ });
  });
});

Deno.test("torch's shards are found through their index", () => {
  const tensor = (key: string): TorchTensor => ({
    storage: "ByteStorage",
    key,
    elements: 3,
    shape: [3],
  });
  const files = {
    ...CONFIG,
    "pytorch_model.bin.index.json": { weight_map: { a: "p-1.bin", b: "p-2.bin" } },
    "p-1.bin": torchFile({ a: tensor("0") }, { 0: Uint8Array.of(1, 2, 3) }),
    "p-2.bin": torchFile({ b: tensor("0") }, { 0: Uint8Array.of(4, 5, 6) }),
  };
  withFolder(files, (folder) => {
    using checkpoint = openCheckpoint(folder);
    const into = new Uint8Array(2);
    checkpoint.read(checkpoint.tensors.get("b") as TensorInfo, 1, into);
    assert.deepEqual([...into], [5, 6]);
  });
});

Deno.test("one tensor in two shards is an error", () => {
  const files = {
    ...SHARDS,
    "s2.safetensors": tensorFile({ a: [3], b: [8] }),
    [INDEX]: { weight_map: { a: "s1.safetensors", b: "s2.safetensors" } },
  };
  rejectsFiles(files, 'tensor "a" is in s1.safetensors and s2.safetensors');
});

Deno.test("the embedded checkpoints open, and read like the folders they come from", () => {
  for (const name of ["target", "eagle3", "eagle1"] as const) {
    using embedded = openEmbedded(name);
    using disk = openCheckpoint(
      new URL(`../../models/fledgling/${name}`, import.meta.url).pathname,
    );
    assert.equal(embedded.name, `fledgling/${name}`);
    assert.deepEqual(embedded.tensors, disk.tensors);
    const [tensor] = embedded.tensors.values();
    assert.ok(tensor);
    const [a, b] = [new Uint8Array(64), new Uint8Array(64)];
    embedded.read(tensor, 8, a);
    disk.read(tensor, 8, b);
    assert.deepEqual(a, b);
  }
});

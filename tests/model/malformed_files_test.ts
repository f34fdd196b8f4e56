/** Broken tensor files and indexes: a UsageError or tensors that lie in their files, nothing else. */
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { checkpointOf } from "../../src/model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { type ByteSource, type Folder, memoryFolder } from "../../src/model/files/folder.ts";
import { absurd, always, corrupted, holds, some, spoiled } from "../fuzz.ts";
import { safetensors, tensorFile } from "./folders.ts";
import { op, statePickle, torchFile, type TorchTensor, zip } from "./torch_files.ts";

const encoder = new TextEncoder();
const CONFIG = encoder.encode("{}");

/** A checkpoint of one file; no read past the first 8 bytes may ask for more than that file has. */
function guarded(file: string, bytes: Uint8Array): Folder {
  const files = new Map([["config.json", CONFIG], [file, bytes]]);
  const folder = memoryFolder("broken", (name) => files.get(name));
  const size = bytes.length;
  return {
    ...folder,
    open(name) {
      const source = folder.open(name);
      return source && { ...source, read };
      function read(offset: number, into: Uint8Array): number {
        assert.ok(
          into.length <= Math.max(8, size),
          `${into.length} bytes are wanted of a file of ${size}`,
        );
        return (source as ByteSource).read(offset, into);
      }
    },
  };
}

/** Opens it, and reads the ends of every tensor. */
function open(file: string, bytes: Uint8Array): boolean {
  return holds(() => {
    using checkpoint = checkpointOf(guarded(file, bytes));
    readEnds(checkpoint, bytes.length);
  });
}

function readEnds(checkpoint: Checkpoint, fileSize: number): void {
  for (const tensor of checkpoint.tensors.values()) {
    assert.ok(tensor.begin >= 0 && tensor.begin + tensor.size <= fileSize, tensor.name);
    const into = new Uint8Array(Math.min(16, tensor.size));
    checkpoint.read(tensor, 0, into);
    checkpoint.read(tensor, tensor.size - into.length, into);
  }
}

const SHAPES = { a: [3, 4], "model.b": [2], c: [0, 7], flag: [5] };
const GOOD = tensorFile(SHAPES, { a: "F32", flag: "BOOL", "model.b": "I64" });

Deno.test("corrupted safetensors files", () => {
  some(always(corrupted(GOOD), (bytes) => open("model.safetensors", bytes), 3000));
});

const number = fc.oneof(
  fc.integer({ min: -4, max: 60 }),
  fc.constantFrom(1e300, -0, 2 ** 53, 2 ** 53 - 8, 0.5, null),
  fc.maxSafeNat(),
);
const entry = fc.record({
  dtype: fc.oneof(fc.constantFrom("F32", "BF16", "I64", "U8", "toString", "F4"), absurd),
  shape: fc.oneof(fc.array(number, { maxLength: 5 }), absurd),
  data_offsets: fc.oneof(fc.tuple(number, number), absurd),
}, { requiredKeys: [] });

Deno.test("safetensors headers of nonsense", () => {
  const header = fc.dictionary(fc.string(), fc.oneof(entry, absurd), { maxKeys: 4 });
  const nonsense = fc.tuple(header, fc.nat(60));
  some(
    always(nonsense, ([json, size]) => open("model.safetensors", safetensors(json, size)), 1500),
  );
});

Deno.test("safetensors headers that claim any length", () => {
  always(fc.tuple(fc.bigInt(0n, 2n ** 64n - 1n), fc.nat(40)), ([claimed, size]) => {
    const bytes = new Uint8Array(8 + size).fill(0x20);
    new DataView(bytes.buffer).setBigUint64(0, claimed >> BigInt(size % 64), true);
    return open("model.safetensors", bytes);
  }, 500);
});

Deno.test("a header nested without end, or with keys twice at every depth", () => {
  for (const depth of [10, 1000, 200_000]) {
    for (const [left, right] of [["[", "]"], ['{"a":', "}"], ['{"a":1,"a":', "}"]] as const) {
      open("model.safetensors", safetensors(left.repeat(depth) + "1" + right.repeat(depth), 0));
      open("model.safetensors", safetensors(`{"x":${left.repeat(depth)}`, 0));
    }
  }
});

const STORAGES = { 0: new Uint8Array(48), 1: new Uint8Array(5) };
const TENSORS: Readonly<Record<string, TorchTensor>> = {
  a: { storage: "FloatStorage", key: "0", elements: 12, shape: [3, 4] },
  part: { storage: "FloatStorage", key: "0", elements: 12, offset: 4, shape: [2, 2] },
  flag: { storage: "BoolStorage", key: "1", elements: 5, shape: [5] },
};

for (const zip64 of [false, true]) {
  Deno.test(`corrupted torch files${zip64 ? ", zip64" : ""}`, () => {
    const good = torchFile(TENSORS, STORAGES, { zip64 });
    some(always(corrupted(good), (bytes) => open("pytorch_model.bin", bytes), 2000));
  });
}

Deno.test("torch files cut at every byte", () => {
  const good = torchFile(TENSORS, STORAGES);
  for (let end = 0; end < good.length; end++) open("pytorch_model.bin", good.subarray(0, end));
  const golden = Deno.readFileSync(new URL("../golden/torch/nested.pt", import.meta.url));
  for (let end = 0; end < golden.length; end++) open("model.pt", golden.subarray(0, end));
});

function openPickle(pickle: Uint8Array): boolean {
  const data = { "a/data/0": { bytes: STORAGES[0] }, "a/data/1": { bytes: STORAGES[1] } };
  return open("pytorch_model.bin", zip({ "a/data.pkl": { bytes: pickle }, ...data }));
}

Deno.test("corrupted pickles", () => {
  some(always(corrupted(statePickle(TENSORS)), openPickle, 2000));
});

/** Pieces of pickles in any order: mostly legal opcodes, then what they are given is wrong. */
const piece: fc.Arbitrary<readonly number[]> = fc.oneof(
  fc.constantFrom<readonly number[]>(
    op.none,
    op.mark,
    op.tuple,
    op.emptyDict,
    op.emptyList,
    op.emptyTuple,
    op.setItems,
    op.append,
    op.reduce,
    op.build,
    op.persistent,
    op.global("collections", "OrderedDict"),
    op.global("torch._utils", "_rebuild_tensor_v2"),
    op.global("torch._utils", "_rebuild_parameter"),
    op.global("torch", "FloatStorage"),
    op.global("torch", "Size"),
    op.global("os", "system"),
    op.global("builtins", "__import__"),
    op.text("storage"),
    op.text("0"),
    op.put(0),
    op.get(0),
    op.put(1),
    op.get(1),
    [0x85],
    [0x86],
    [0x87],
    [0x94],
    [0x93],
    [0x30],
  ),
  fc.oneof(fc.nat(20), fc.integer(), fc.maxSafeInteger()).map((n) => op.int(n)),
  fc.integer({ min: 0, max: 255 }).map((code) => [code]),
);

Deno.test("pickles of opcodes in any order, cycles among them", () => {
  always(fc.array(piece, { maxLength: 40 }), (pieces) => {
    return openPickle(Uint8Array.from([...op.proto, ...pieces.flat(), ...op.stop]));
  }, 3000);
});

Deno.test("zips that claim any size and place", () => {
  const claim = fc.record({
    size: fc.oneof(fc.nat(200), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
    headerAt: fc.oneof(fc.nat(600), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
  }, { requiredKeys: [] });
  some(always(fc.tuple(claim, claim, fc.boolean()), ([a, b, zip64]) => {
    const pickle = { bytes: statePickle(TENSORS), claim: a };
    const data = { bytes: STORAGES[0], claim: b };
    const entries = { "data.pkl": pickle, "data/0": data, "data/1": { bytes: STORAGES[1] } };
    return open("pytorch_model.bin", zip(entries, { zip64 }));
  }, 1000));
});

Deno.test("an index with anything in its map opens no file outside of the folder", () => {
  const asked: string[] = [];
  const parts = fc.constantFrom("..", ".", "", "a", "/", "\\", "C:", "\0", "etc", "a.safetensors");
  const path = fc.oneof(fc.array(parts, { maxLength: 5 }).map((all) => all.join("/")), absurd);
  const map = fc.oneof(fc.dictionary(fc.string(), path, { maxKeys: 4 }), absurd);
  const index = fc.oneof(map.map((weight_map) => ({ weight_map })), spoiled({ weight_map: {} }));
  always(index, (json) => {
    const bytes = encoder.encode(JSON.stringify(json) ?? "");
    const files = new Map([
      ["config.json", CONFIG],
      ["model.safetensors.index.json", bytes],
      ["a.safetensors", GOOD],
    ]);
    return holds(() =>
      checkpointOf(memoryFolder("broken", (file) => {
        asked.push(file);
        return files.get(file);
      }))
    );
  }, 1500);
  const outside = asked.filter((file) => /^\/|\\|:|\0|(^|\/)\.{0,2}(\/|$)/.test(file));
  assert.deepEqual(outside, []);
});

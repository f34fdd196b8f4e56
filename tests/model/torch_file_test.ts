import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { openTensorFile } from "../../src/model/files/tensor_files.ts";
import { widen } from "../../src/model/files/widen.ts";
import { withFolder } from "./folders.ts";
import { op, statePickle, torchFile, type TorchTensor, zip } from "./torch_files.ts";

const GOLDEN = new URL("../golden/torch/", import.meta.url).pathname;

/** dtype, shape and bytes of each tensor of a file. */
function read(
  path: string,
): Record<string, [dtype: string, shape: readonly number[], hex: string]> {
  using file = openTensorFile(path);
  return Object.fromEntries(
    file.tensors.values().map((tensor) => {
      const bytes = new Uint8Array(tensor.size);
      file.read(tensor, 0, bytes);
      return [tensor.name, [tensor.dtypeName, tensor.shape, bytes.toHex()]];
    }),
  );
}

function readBytes(bytes: Uint8Array): ReturnType<typeof read> {
  let found: ReturnType<typeof read> = {};
  withFolder({ "a.bin": bytes }, (folder) => void (found = read(`${folder}/a.bin`)));
  return found;
}

function refuses(open: () => unknown, message: RegExp): void {
  assert.throws(open, (error: unknown) => {
    assert.ok(error instanceof UsageError, String(error));
    assert.match(error.message, /^Cannot read ".*": /);
    assert.ok(!error.message.includes("\n"));
    assert.match(error.message, message);
    return true;
  });
}

Deno.test("a file by PyTorch: every dtype, views, parameters; plain values are left out", () => {
  const { part, whole, ...rest } = read(`${GOLDEN}tensors.bin`);
  assert.deepEqual(rest, {
    bf16: ["BF16", [2, 3], "0000803f004040408040a040"],
    f16: ["F16", [2], "003e00c0"],
    i64: ["I64", [3], "0100000000000000feffffffffffffff0000000000010000"],
    i32: ["I32", [1], "05000000"],
    u8: ["U8", [2], "0102"],
    f8: ["F8_E4M3", [2], "3840"],
    mask: ["BOOL", [2], "0100"],
    scalar: ["F32", [], "00005040"],
    empty: ["F32", [0, 4], ""],
    parameter: ["F32", [2], "0000803f00000040"],
  });
  const floats = (hex = "") => [...widen(Uint8Array.fromHex(hex), "F32")];
  assert.deepEqual(floats(whole?.[2]), Array.from({ length: 24 }, (_, i) => i));
  assert.deepEqual([part?.[1], floats(part?.[2])], [[3, 4], floats(whole?.[2]).slice(6, 18)]);
});

Deno.test("a file by PyTorch: a training checkpoint's state_dict", () => {
  assert.deepEqual(read(`${GOLDEN}nested.pt`), {
    weight: ["F32", [1, 2], "0000003f0000003f"],
    bias: ["F32", [1], "000080bf"],
  });
});

for (
  const [file, message] of [
    ["transposed.pt", /tensor "a" has shape \[3,2\] and strides \[1,3\], expected rows/],
    ["legacy.pt", /in the format of torch before 1\.6; write it again in Python: torch\.save/],
    ["namespace.pt", /global "argparse\.Namespace" is not allowed/],
    ["module.pt", /global "torch\.nn\.modules\.linear\.Linear" is not allowed/],
    ["script.pt", /it is TorchScript, not tensors/],
  ] as const
) {
  Deno.test(`a file by PyTorch that is refused: ${file}`, () => {
    refuses(() => read(`${GOLDEN}${file}`), message);
  });
}

const BYTES = Uint8Array.from({ length: 24 }, (_, i) => i);
const WHOLE: TorchTensor = { storage: "ShortStorage", key: "0", elements: 12, shape: [3, 4] };
const PART: TorchTensor = { ...WHOLE, offset: 4, shape: [2, 2, 1], strides: [2, 1, 9] };

Deno.test("any archive name, zip64, two tensors in one storage, a stride of a single row", () => {
  for (const prefix of ["", "archive/", "pytorch_model/", "a/b/"]) {
    for (const zip64 of [false, true]) {
      const file = torchFile({ whole: WHOLE, part: PART }, { 0: BYTES }, { prefix, zip64 });
      assert.deepEqual(readBytes(file), {
        whole: ["I16", [3, 4], BYTES.toHex()],
        part: ["I16", [2, 2, 1], BYTES.slice(8, 16).toHex()],
      });
    }
  }
});

function one(change: Partial<TorchTensor>): Uint8Array {
  return torchFile({ x: { ...WHOLE, ...change } }, { 0: BYTES });
}

const GOOD = one({});
const PICKLE = statePickle({ x: WHOLE });
const DATA = { bytes: BYTES };
const entry = (bytes: Uint8Array) => ({ bytes });

for (
  const [what, file, message] of [
    ["a view past its storage", one({ offset: 1 }), /"x" takes 26 bytes of a storage of 24/],
    ["a huge view", one({ shape: [2 ** 40, 2 ** 40] }), /"x" takes .* bytes of a storage of 24/],
    ["a negative offset", one({ offset: -1 }), /described by something else than numbers/],
    ["a negative size", one({ shape: [-3] }), /described by something else than numbers/],
    ["65 dimensions", one({ shape: Array(65).fill(1) }), /described by something else/],
    ["strides of another rank", one({ strides: [1] }), /described by something else/],
    ["overlapping rows", one({ strides: [0, 1] }), /strides \[0,1\], expected rows/],
    ["a missing storage", one({ key: "7" }), /storage "7" is not in the zip/],
    ["an unknown storage class", one({ storage: "XStorage" }), /global "torch\.XStorage" is not/],
    ["no tensors", torchFile({}, {}), /it holds no dict of tensors/],
    [
      "two pickles",
      zip({ "a/data.pkl": entry(PICKLE), "data.pkl": entry(PICKLE) }),
      /has 2 entries/,
    ],
    ["no pickle", zip({ "data/0": DATA }), /has 0 entries data\.pkl/],
    ["a compressed pickle", zip({ "data.pkl": { bytes: PICKLE, method: 8 } }), /is compressed/],
    [
      "big-endian numbers",
      zip({ "data.pkl": entry(PICKLE), "byteorder": entry(new TextEncoder().encode("big")) }),
      /its numbers are not little-endian/,
    ],
    [
      "an entry past its end",
      zip({ "data.pkl": entry(PICKLE), "data/0": { bytes: BYTES, claim: { size: 2 ** 31 } } }),
      /"data\/0" is truncated: 2147483648 bytes of a file of/,
    ],
    [
      "an entry elsewhere",
      zip({ "data.pkl": entry(PICKLE), "data/0": { bytes: BYTES, claim: { headerAt: 4 } } }),
      /"data\/0" is not there/,
    ],
    [
      "a list in place of a dict",
      zip({
        "data.pkl": entry(Uint8Array.from([...op.emptyList, ...op.stop])),
      }),
      /it holds no dict of tensors/,
    ],
    ["a cut end", GOOD.slice(0, -1), /it is truncated: a zip without its directory/],
    ["a cut middle", GOOD.slice(0, 200), /it is truncated/],
    ["a text inside", new TextEncoder().encode("hello"), /not a file that torch\.save wrote/],
    [
      "a Git LFS pointer inside",
      new TextEncoder().encode("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
      /it is a Git LFS pointer/,
    ],
    ["nothing inside", new Uint8Array(), /not a file that torch\.save wrote/],
  ] as const
) {
  Deno.test(`a torch file with ${what} is refused`, () => refuses(() => readBytes(file), message));
}

Deno.test("many tensors that name one long shape take no longer than their bytes", () => {
  const [shape, rebuild, args] = [0, 1, 2];
  const storage = [
    ...[...op.mark, ...op.text("storage"), ...op.global("torch", "ShortStorage"), ...op.text("0")],
    ...[...op.text("cpu"), ...op.int(12), ...op.tuple, ...op.persistent],
  ];
  const ones = Array.from({ length: 200_000 }, () => op.int(1)).flat();
  const tensors = Array.from({ length: 50_000 }, (_, i) => [
    ...op.text(`${i}`),
    ...[...op.get(rebuild), ...op.get(args), ...op.reduce],
  ]);
  const pickle = Uint8Array.from([
    ...op.proto,
    ...[...op.global("torch._utils", "_rebuild_tensor_v2"), ...op.put(rebuild)],
    ...[op.mark, ones, op.tuple, op.put(shape)].flat(),
    ...[op.mark, storage, op.int(0), op.get(shape), op.get(shape), op.tuple, op.put(args)].flat(),
    ...[op.emptyDict, op.mark, tensors.flat(), op.setItems, op.stop].flat(),
  ]);
  refuses(() => readBytes(zip({ "data.pkl": entry(pickle), "data/0": DATA })), /something else/);
});

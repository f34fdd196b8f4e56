/**
 * Checkpoints whose q, k and v, or gate and up, are of several types: all become float32, exactly. Gates of attention's
 * output do not share a matrix with q, k and v of another type.
 */
import assert from "node:assert/strict";
import { openRunner } from "../../src/engine/device/device_runner.ts";
import { openSequence } from "../../src/engine/device/single_sequence.ts";
import { forward } from "../../src/engine/device/logits_dump.ts";
import { checkModels, loadWeights } from "../../src/engine/load/load.ts";
import { openPaper } from "../../src/engine/load/paper.ts";
import { openGpu } from "../gpu/shared.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import type { DType, TensorInfo } from "../../src/model/files/safetensors.ts";
import { widen } from "../../src/model/files/widen.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { chains } from "../../src/speculate/round_shape.ts";
import { BYTES } from "../model/checkpoint_in_memory.ts";
import { folderOf } from "./speculated.ts";

const PROMPT = [3, 17, 42, 5, 60, 9, 33, 250];

/** Types of what is not bf16. */
const MIXED: readonly [RegExp, DType][] = [
  [/(k_proj|up_proj)\.weight$/, "F16"],
  [/layers\.[01]\.self_attn\.v_proj\.weight$/, "F32"],
];

const mixedType = (name: string): DType => MIXED.find(([names]) => names.test(name))?.[1] ?? "BF16";

/** A golden's random weights, rounded to what `mixedType` holds and stored as `typeOf` says. */
function stored(typeOf: (name: string) => DType, name = "llama3"): Checkpoint {
  using golden = openCheckpoint(folderOf(name));
  const contents = new Map<string, Uint8Array>();
  const tensors = [...golden.tensors.values()].map((tensor): TensorInfo => {
    const bytes = new Uint8Array(tensor.size);
    golden.read(tensor, 0, bytes);
    const values = widen(bytes, tensor.dtype);
    const rounded = mixedType(tensor.name) === "F16"
      ? Float32Array.from(new Float16Array(values))
      : values;
    const dtype = typeOf(tensor.name);
    contents.set(tensor.name, packed(rounded, dtype));
    const size = rounded.length * BYTES[dtype]!;
    return { ...tensor, dtype, dtypeName: dtype, begin: 0, size };
  });
  const config = golden.json("config.json");
  return {
    name: "mixed",
    tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])),
    json: (file) => file === "config.json" ? config : undefined,
    text: () => undefined,
    read({ name, begin }, offset, into) {
      into.set(contents.get(name)!.subarray(begin + offset, begin + offset + into.length));
    },
    [Symbol.dispose]: () => {},
  };
}

/** Values that the type holds exactly. */
function packed(values: Float32Array<ArrayBuffer>, dtype: DType): Uint8Array {
  if (dtype === "F16") return new Uint8Array(new Float16Array(values).buffer);
  if (dtype === "F32") return new Uint8Array(values.slice().buffer);
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return new Uint8Array(Uint16Array.from(words, (word) => word >>> 16).buffer);
}

const gpu = await openGpu();
Deno.test.afterAll(() => gpu[Symbol.dispose]());

/** Logits of the prompt, and the bytes that the weights are said to take. */
async function load(checkpoint: Checkpoint, quantize?: "q8") {
  using models = checkModels(checkpoint, undefined);
  const choice = quantize ? { quantize } : {};
  const runner = await openRunner(gpu, await loadWeights(gpu, models, choice), {
    batch: 1,
    shapes: chains([0]),
    prefillRows: 64,
    contextLength: 32,
    pages: 2 * PAGE,
  });
  using sequence = openSequence(runner);
  assert.ok(runner.reserve(sequence, 32));
  const logits = (await forward(runner, sequence, PROMPT, ["logits"])).get("logits")!;
  return { logits, bytes: openPaper(models, choice, gpu).measured.tensorBytes.target };
}

for (const quantize of [undefined, "q8"] as const) {
  Deno.test(`mixed types in one matrix, ${quantize ?? "as they are"}: logits to the bit those of float32`, async () => {
    const mixed = await load(stored(mixedType), quantize);
    const float = await load(stored(() => "F32"), quantize);
    assert.deepEqual(mixed.logits, float.logits);
    assert.ok(new Set(mixed.logits).size > 64, "logits differ among themselves");
    const shared = [..."qkv"].map((part) => `${part}_proj`).concat("gate_proj", "up_proj");
    const matrices = shared.map((part) => new RegExp(`\\.${part}\\.weight$`));
    const same = stored((name) => matrices.some((found) => found.test(name)) ? "F32" : "BF16");
    assert.equal(mixed.bytes, (await load(same, quantize)).bytes);
  });
}

Deno.test("gates of another type than q, k and v have a matrix of their own: logits to the bit those of float32", async () => {
  const isGate = (name: string) => name.endsWith("g_proj.weight");
  const checkpoint = stored((name) => isGate(name) ? "F32" : "BF16", "laguna");
  const gates = [...checkpoint.tensors.values()].filter(({ name }) => isGate(name));
  const mixed = await load(checkpoint);
  assert.deepEqual(mixed.logits, (await load(stored(() => "F32", "laguna"))).logits);
  assert.ok(new Set(mixed.logits).size > 64, "logits differ among themselves");
  const plain = await load(stored(() => "BF16", "laguna"));
  const bytes = gates.reduce((sum, { size }) => sum + size, 0);
  assert.equal(gates.length, 4);
  assert.equal(mixed.bytes, plain.bytes + bytes / 2);
});

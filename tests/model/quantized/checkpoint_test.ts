/** Quantized checkpoints as rows: every layout gives the numbers that it was written from. */
import assert from "node:assert/strict";
import type { Checkpoint } from "../../../src/model/files/checkpoint_type.ts";
import type { TensorInfo } from "../../../src/model/files/safetensors.ts";
import { parseModelConfig } from "../../../src/model/config/config.ts";
import { openPaper } from "../../../src/engine/load/paper.ts";
import { PAPER_ADAPTER } from "../../../src/gpu/paper.ts";
import type { Prequantized } from "../../../src/gpu/weight_format.ts";
import { dequantized } from "../../../src/model/checkpoint/quantized/dequantize.ts";
import { checkTensors, targetTensors } from "../../../src/model/weights/tensors.ts";
import { toyCheckpoint } from "../folders.ts";
import { bothOf, CONFIG, fileOf } from "./checkpoints.ts";
import { e4m3 } from "./e4m3.ts";
import { gptq, LAYOUTS, type Stored } from "./layouts.ts";

const DECODE: Readonly<Record<string, (u: number, zero: number) => number>> = {
  GROUPED_U4: (u, zero) => u - zero,
  GROUPED_I8: (u) => u - 128,
  GROUPED_F8: (u) => e4m3(u),
};

/** Layouts whose groups are not of 32. */
const HALF_GROUPS = "GROUPED_NVFP4";

const FORMAT: Readonly<Record<string, Prequantized>> = {
  GROUPED_U4: "u4",
  GROUPED_I8: "i8",
  GROUPED_F8: "f8",
  GROUPED_NVFP4: "nvfp4",
};

/** Rows of weights and group words, as numbers. */
function decoded(checkpoint: Checkpoint, tensor: TensorInfo): Float32Array {
  const [rows = 0, cols = 0] = tensor.shape;
  const bytes = new Uint8Array(tensor.size);
  checkpoint.read(tensor, 0, bytes);
  const words = new Uint32Array(bytes.buffer);
  const bits = tensor.dtype === "GROUPED_U4" ? 4 : 8;
  const [weights, all] = [cols * bits / 32, words.length / rows];
  const mask = bits === 4 ? ~31 : ~0;
  return Float32Array.from({ length: rows * cols }, (_, i) => {
    const [row, k] = [Math.floor(i / cols), i % cols];
    const word = words[row * all + Math.floor(k * bits / 32)]!;
    const group = words[row * all + weights + Math.floor(k / 32)]!;
    const [scale = 0] = new Float32Array(Uint32Array.of(group & mask).buffer);
    return DECODE[tensor.dtype]!(word >>> k * bits % 32 & (1 << bits) - 1, group & 31) * scale;
  });
}

const config = parseModelConfig("toy", CONFIG, undefined);
const specs = targetTensors(config);

/** Bytes of the weights on the GPU. */
function weightBytes(checkpoint: Checkpoint, quantize?: "q8"): number {
  const models = { target: { checkpoint, config }, draft: undefined };
  return openPaper(models, { quantize }, PAPER_ADAPTER).measured.tensorBytes.target;
}

for (const [name, layout] of Object.entries(LAYOUTS)) {
  Deno.test(`${name}: the numbers it was written from`, () => {
    const { quantized, values } = bothOf(layout);
    assert.deepEqual(checkTensors(quantized, specs), []);
    assert.equal(values.size, 14);
    for (const [name, expected] of values) {
      const tensor = quantized.tensors.get(name)!;
      if (tensor.dtype !== HALF_GROUPS) {
        assert.deepEqual(decoded(quantized, tensor), expected, name);
      }
      const words = new Uint32Array(tensor.size / 4);
      quantized.read(tensor, 0, new Uint8Array(words.buffer));
      const of = { format: FORMAT[tensor.dtype]!, cols: tensor.shape[1]! };
      assert.deepEqual(dequantized(words, of), expected, name);
    }
  });
}

Deno.test("memory: 5 bits a weight of 4, 9 of 8, and no quantization upon that", () => {
  const elements = 2 * (128 * (128 + 64 + 64 + 128) + 3 * 128 * 192);
  const float = weightBytes(bothOf(LAYOUTS["int8"]!).float);
  for (
    const [name, bits] of [["int8", 9], ["awq, groups of 128", 5], ["fp8, blocks", 9], [
      "modelopt nvfp4",
      5,
    ]] as const
  ) {
    const { quantized } = bothOf(LAYOUTS[name]!);
    assert.equal(float - weightBytes(quantized), elements * (32 - bits) / 8, name);
  }
  const { quantized } = bothOf(LAYOUTS["int8"]!);
  const head = 64 * 128 * (32 - 9) / 8 + 64 * 128 / 8 / 2; // q8: 8.5 bits
  assert.equal(weightBytes(quantized) - weightBytes(quantized, "q8"), head);
});

/** A checkpoint with this `quantization_config` and these tensors. */
function open(config: unknown, tensors: readonly Stored[] = []): Checkpoint {
  return toyCheckpoint({
    "config.json": { ...CONFIG, quantization_config: config },
    "model.safetensors": fileOf(tensors),
  });
}

const AWQ = LAYOUTS["awq, groups of 32"]!.config;
const GPTQ = gptq(32, 1);
const AUTO_ROUND = LAYOUTS["auto-round as gptq"]!.config;
const INT8 = LAYOUTS["int8"]!;
const FP8 = LAYOUTS["fp8, blocks"]!;
const NVFP4 = LAYOUTS["modelopt nvfp4"]!;
const SIZE = { prefix: "m", rows: 128, cols: 128 };

Deno.test("methods and settings that are not supported are named", () => {
  const weights = (change: object) => {
    const scheme = { num_bits: 8, type: "int", strategy: "channel", ...change };
    return { ...INT8.config, config_groups: { group_0: { weights: scheme } } };
  };
  const cases: readonly [unknown, RegExp][] = [
    [
      { quant_method: "bitsandbytes" },
      /quant_method "bitsandbytes", supported are awq, gptq, auto-/,
    ],
    [{}, /quant_method null, supported are/],
    ["awq", /quantization_config "awq", expected an object/],
    [{ ...AWQ, bits: 8 }, /bits 8, supported: 4/],
    [{ ...AWQ, version: "gemv" }, /version "gemv", supported: "gemm"/],
    [{ ...AWQ, format: "gemv" }, /format "gemv", supported: "gemm"/],
    [{ ...AWQ, group_size: 16 }, /group_size 16, expected a multiple of 32/],
    [
      { ...AWQ, modules_to_not_convert: "lm_head" },
      /modules_to_not_convert "lm_head", expected a l/,
    ],
    [{ ...GPTQ.config, bits: 3 }, /bits 3, supported: 4/],
    [{ ...GPTQ.config, checkpoint_format: "marlin" }, /checkpoint_format "marlin"/],
    [{ ...GPTQ.config, format: "marlin" }, /format "marlin"/],
    [{ ...AUTO_ROUND, packing_format: "mlx" }, /packing_format "mlx", supported: "auto_round:auto/],
    [{ ...AUTO_ROUND, data_type: "mx_fp" }, /data_type "mx_fp", supported: "int"/],
    [
      { quant_method: "modelopt", quant_algo: "W4A8_AWQ" },
      /quant_algo "W4A8_AWQ", supported: "NVF/,
    ],
    [{ ...FP8.config, fmt: "e5m2" }, /fmt "e5m2", supported: "e4m3"/],
    [{ ...FP8.config, weight_block_size: [128] }, /weight_block_size \[128\], expected \[rows/],
    [weights({ num_bits: 4 }), /int4 weights of format "int-quantized", supported are pack-quanti/],
    [weights({ symmetric: false }), /asymmetric int8 weights/],
    [weights({ strategy: "token" }), /strategy "token", supported are tensor, channel, group/],
    [weights({ actorder: "group" }), /actorder "group", supported/],
    [
      { ...INT8.config, transform_config: { config_groups: { R4: { type: "hadamard" } } } },
      /transform_config config_groups has rotations of weights/,
    ],
    [{ ...INT8.config, sparsity_config: { format: "sparse-24-bitmask" } }, /"sparse-24-bitmask"/],
  ];
  for (const [config, message] of cases) {
    assert.throws(() => open(config), { name: "UsageError", message }, String(message));
  }
});

/** The tensors with one of them changed, or left out. */
function changed(
  tensors: readonly Stored[],
  name: string,
  change: (tensor: Stored) => Partial<Stored> | undefined,
): Stored[] {
  return tensors.flatMap((tensor) => {
    if (tensor.name !== name) return [tensor];
    const more = change(tensor);
    return more ? [{ ...tensor, ...more }] : [];
  });
}

function zeroPoints(value: number): Stored {
  const bytes = new Uint8Array(128).fill(value);
  return { name: "m.weight_zero_point", dtype: "I8", shape: [128, 1], bytes };
}

function numbersOf(checkpoint: Checkpoint): Float32Array {
  return decoded(checkpoint, checkpoint.tensors.get("m.weight")!);
}

Deno.test("rules of a config for single modules: the tensors show whether one is quantized in another way", () => {
  const { stored, values } = GPTQ.write(SIZE);
  // The NextN layer of Vishva007/Qwen3.8-27B-W4A16-AutoRound-GPTQ is not quantized, whatever its rule says.
  const rules = { "+:.*mtp.*": { bits: 4, group_size: 64 }, "-:lm_head": {} };
  using checkpoint = open({ ...GPTQ.config, dynamic: rules }, stored);
  assert.deepEqual(numbersOf(checkpoint), values);
  const other = {
    name: "UsageError",
    message: /"m\.scales" has shape \[4,128\], expected \[2,128\]$/,
  };
  assert.throws(() => open({ ...GPTQ.config, group_size: 64 }, stored), other);
  // 8 bits are read as twice as many columns of 4, of as many groups.
  const wide = changed(stored, "m.qweight", ({ bytes }) => ({
    shape: [32, 128],
    bytes: Uint8Array.from({ length: 2 * bytes.length }),
  }));
  const message = /"m\.scales" has shape \[4,128\], expected \[8,128\]$/;
  assert.throws(() => open({ ...GPTQ.config, dynamic: { m: { bits: 8 } } }, wide), { message });
});

Deno.test("zero points of 8 bits that are zeros are those of symmetric weights", () => {
  const { stored, values } = INT8.write(SIZE);
  using checkpoint = open(INT8.config, [...stored, zeroPoints(0)]);
  assert.deepEqual(numbersOf(checkpoint), values);
});

Deno.test("scales of blocks that are stored by columns are refused", () => {
  const { stored } = FP8.write({ prefix: "m", rows: 256, cols: 384 });
  const turned = changed(stored, "m.weight_scale_inv", () => ({ shape: [3, 2] }));
  using checkpoint = open(FP8.config, turned);
  assert.throws(() => numbersOf(checkpoint), {
    name: "UsageError",
    message: /"m\.weight_scale_inv" has shape \[3,2\], expected 3 in a row$/,
  });
});

Deno.test("a g_idx of zeros, as early files have it, is the order of columns", () => {
  const { stored, values } = GPTQ.write(SIZE);
  const zeros = changed(stored, "m.g_idx", ({ bytes }) => ({ bytes: bytes.map(() => 0) }));
  using checkpoint = open(GPTQ.config, zeros);
  assert.deepEqual(numbersOf(checkpoint), values);
});

Deno.test("FP8 is known by its tensors: beside NVFP4, and without any quantization_config", () => {
  const fp8 = LAYOUTS["modelopt fp8"]!.write(SIZE);
  const nvfp4 = LAYOUTS["modelopt nvfp4"]!.write({ ...SIZE, prefix: "other" });
  const mixed = { quant_method: "modelopt", quant_algo: "MIXED_PRECISION" };
  for (const config of [mixed, { ...mixed, quant_algo: "NVFP4" }, undefined]) {
    using checkpoint = open(config, [...fp8.stored, ...nvfp4.stored]);
    assert.deepEqual([...checkpoint.tensors.keys()].toSorted(), ["m.weight", "other.weight"]);
    assert.equal(checkpoint.tensors.get("other.weight")?.dtype, "GROUPED_NVFP4");
    assert.deepEqual(numbersOf(checkpoint), fp8.values);
  }
});

Deno.test("scales of activations and KV caches are not used, also where the weights are not quantized", () => {
  const scale = (name: string): Stored => {
    return { name, dtype: "F32", shape: [], bytes: new Uint8Array(4) };
  };
  const plain: Stored = {
    name: "k_proj.weight",
    dtype: "BF16",
    shape: [8, 32],
    bytes: new Uint8Array(512),
  };
  const scales = ["k_scale", "output_scale", "input_scale", "input_scale_ub"].map((name) =>
    scale(`k_proj.${name}`)
  );
  const weight = { role: "k", name: "k_proj.weight", shape: [8, 32], kind: "matrix" } as const;
  const kvOnly = { quant_method: "compressed-tensors", config_groups: {}, kv_cache_scheme: {} };
  const activationsOnly = {
    ...kvOnly,
    config_groups: { group_0: { targets: ["LlamaAttention"], weights: null } },
  };
  const cases: readonly [unknown, readonly Stored[]][] = [
    [kvOnly, []],
    [activationsOnly, []],
    [{ quant_method: "modelopt", quant_algo: null }, []],
    [{ quant_method: "fbgemm_fp8" }, []],
    [NVFP4.config, NVFP4.write(SIZE).stored],
    [undefined, NVFP4.write(SIZE).stored],
  ];
  for (const [config, others] of cases) {
    using checkpoint = open(config, [plain, ...scales, ...others]);
    assert.deepEqual(checkTensors(checkpoint, [weight], /^m\./), []);
  }
});

Deno.test("rows that are not whole groups are an error only where they are read", () => {
  const narrow = { prefix: "vision_tower.fc", rows: 16, cols: 48 };
  const weight = { role: "m", name: "m.weight", shape: [128, 128], kind: "matrix" } as const;
  const used = { ...weight, name: "vision_tower.fc.weight", shape: [16, 48] } as const;
  for (const name of ["fp8, a scale a tensor", "modelopt nvfp4"]) {
    const layout = LAYOUTS[name]!;
    using checkpoint = open(layout.config, [
      ...layout.write(narrow).stored,
      ...layout.write(SIZE).stored,
    ]);
    assert.match(checkTensors(checkpoint, [weight]).join(), /1 tensor for images or audio is/);
    assert.throws(
      () => checkTensors(checkpoint, [used]),
      /"vision_tower.fc.weight" has dtype "\S+( \(e4m3\))? of 48 columns, which are no multiple of 32/,
    );
  }
});

Deno.test("FP8 of all experts in one tensor, with scales of experts, halves or blocks: rows of one matrix", () => {
  const name = "layers.0.mlp.experts.down_proj";
  const cases = [[64, 1, 1], [64], [32], [32, 2, 1]] as const;
  for (const [i, [high, ...shape]] of cases.entries()) {
    const block = i === 2 ? [32, 64] : undefined;
    const config = { quant_method: "fp8", weight_block_size: block };
    const bytes = Uint8Array.from({ length: 3 * 64 * 64 }, (_, at) => at % 120);
    const scales = Float32Array.from({ length: 3 * 64 / high }, (_, at) => (at + 1) / 8);
    using checkpoint = open(config, [
      { name, dtype: "F8_E4M3", shape: [3, 64, 64], bytes },
      {
        name: `${name}_scale_inv`,
        dtype: "F32",
        shape: block ? [3, 2, 1] : [3, ...shape],
        bytes: new Uint8Array(scales.buffer),
      },
      { name: `${name}_activation_scale`, dtype: "F32", shape: [3], bytes: new Uint8Array(12) },
    ]);
    assert.deepEqual([...checkpoint.tensors.keys()], [name]);
    const tensor = checkpoint.tensors.get(name)!;
    assert.deepEqual(tensor.shape, [3 * 64, 64]);
    const expected = Float32Array.from(bytes, (byte, at) => {
      return e4m3(byte) * scales[Math.floor(at / 64 / high)]!;
    });
    assert.deepEqual(decoded(checkpoint, tensor), expected);
  }
});

Deno.test("one scale is the tensor's, also beside scales of blocks", () => {
  const { stored, values } = LAYOUTS["fp8, a scale a tensor"]!.write({ ...SIZE, rows: 256 });
  using checkpoint = open(FP8.config, stored);
  assert.deepEqual(numbersOf(checkpoint), values);
});

Deno.test("a model with images may have its quantization_config within text_config", () => {
  const { stored, values } = INT8.write(SIZE);
  using checkpoint = toyCheckpoint({
    "config.json": { ...CONFIG, text_config: { quantization_config: INT8.config } },
    "model.safetensors": fileOf(stored),
  });
  assert.deepEqual(numbersOf(checkpoint), values);
});

Deno.test("tensors that do not fit together are named", () => {
  const cases: readonly [unknown, Stored[], RegExp][] = [
    [GPTQ.config, changed(GPTQ.write(SIZE).stored, "m.scales", () => undefined), /no scales/],
    [GPTQ.config, changed(GPTQ.write(SIZE).stored, "m.qzeros", () => undefined), /no qzeros/],
    [
      GPTQ.config,
      changed(GPTQ.write(SIZE).stored, "m.qzeros", () => ({ shape: [2, 32] })),
      /"m.qzeros" has shape \[2,32\], expected \[4,16\]/,
    ],
    [
      GPTQ.config,
      changed(GPTQ.write(SIZE).stored, "m.g_idx", ({ bytes }) => ({ bytes: bytes.toReversed() })),
      /"m.g_idx" puts columns into groups by activation \(desc_act\)/,
    ],
    [
      FP8.config,
      changed(FP8.write(SIZE).stored, "m.weight", ({ bytes }) => ({ bytes: bytes.with(5, 0xff) })),
      /"m.weight" has a weight that is no number/,
    ],
    [
      NVFP4.config,
      changed(
        NVFP4.write(SIZE).stored,
        "m.weight_scale",
        ({ bytes }) => ({ bytes: bytes.with(5, 0xff) }),
      ),
      /"m.weight_scale" has a scale that is no number/,
    ],
    [
      INT8.config,
      changed(INT8.write(SIZE).stored, "m.weight_scale", ({ bytes }) => {
        return { shape: [127, 1], bytes: bytes.subarray(4) };
      }),
      /"m.weight_scale" has 127 scales, expected 128/,
    ],
    [
      INT8.config,
      [...INT8.write(SIZE).stored, zeroPoints(1)],
      /"m.weight_zero_point" is not supported with 8 bits/,
    ],
    [
      { ...INT8.config, ignore: ["m"] },
      [...INT8.write(SIZE).stored],
      /"m.weight" is quantized, but config.json says that it is not/,
    ],
  ];
  for (const [config, tensors, message] of cases) {
    const attempt = () => {
      using checkpoint = open(config, tensors);
      decoded(checkpoint, checkpoint.tensors.get("m.weight")!);
    };
    assert.throws(attempt, { name: "UsageError", message }, String(message));
  }
});

Deno.test("scales of u4 that the word of a group cannot hold are refused", () => {
  const { stored } = GPTQ.write(SIZE);
  const exact = Float32Array.from({ length: 4 * 128 }, () => 0.1);
  const scales = changed(
    stored,
    "m.scales",
    () => ({ dtype: "F32", bytes: new Uint8Array(exact.buffer) }),
  );
  using checkpoint = open(GPTQ.config, scales);
  assert.throws(
    () => decoded(checkpoint, checkpoint.tensors.get("m.weight")!),
    /"m.scales" has a scale of more than 19 bits/,
  );
});

Deno.test("biases that AutoGPTQ adds are left out where they are zeros", () => {
  const size = { prefix: "m", rows: 8, cols: 64 };
  const bias = (values: Float16Array<ArrayBuffer>): Stored => {
    return { name: "m.bias", dtype: "F16", shape: [8], bytes: new Uint8Array(values.buffer) };
  };
  const weight = { role: "m", name: "m.weight", shape: [8, 64], kind: "matrix" } as const;
  const check = (values: Float16Array<ArrayBuffer>) => {
    using checkpoint = open(GPTQ.config, [...GPTQ.write(size).stored, bias(values)]);
    return checkTensors(checkpoint, [weight]);
  };
  assert.deepEqual(check(new Float16Array(8)), []);
  assert.deepEqual(check(new Float16Array(8).fill(-0)), []);
  assert.throws(
    () => check(Float16Array.of(0, 0, 1, 0, 0, 0, 0, 0)),
    /"m.bias" is part of a layer/,
  );
});

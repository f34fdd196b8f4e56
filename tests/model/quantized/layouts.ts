/**
 * Small matrices in the layouts of quantized checkpoints, written from their public definitions:
 * GPTQ: AutoGPTQ `QuantLinear.pack`; AWQ: AutoAWQ `WQLinear_GEMM.from_linear`; compressed-tensors:
 * `pack_to_int32` and the formats of its README; FP8: vLLM's fp8 checkpoints and DeepSeek-V3's
 * `weight_scale_inv` (inference/kernel.py `weight_dequant`); NVFP4: compressed-tensors `nvfp4-pack-quantized` and
 * ModelOpt's `NVFP4QTensor`.
 */
import { hash32 } from "../../../src/speculate/noise.ts";
import { e4m3 } from "./e4m3.ts";

/** A tensor to be written. */
export interface Stored {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A matrix [rows, cols]. */
export interface Size {
  readonly prefix: string;
  readonly rows: number;
  readonly cols: number;
}

export interface Written {
  readonly stored: readonly Stored[];
  /** f32 [rows, cols]: what it stands for. */
  readonly values: Float32Array;
}

export interface Layout {
  /** `quantization_config` */
  readonly config: Readonly<Record<string, unknown>>;
  write(size: Size): Written;
}

type At = (row: number, col: number) => number;

const bytesOf = ({ buffer }: { readonly buffer: ArrayBufferLike }) => new Uint8Array(buffer);

function i32(name: string, shape: readonly [number, number], word: At): Stored {
  const [rows, cols] = shape;
  const words = Uint32Array.from(
    { length: rows * cols },
    (_, i) => word(Math.floor(i / cols), i % cols),
  );
  return { name, dtype: "I32", shape, bytes: bytesOf(words) };
}

/** Eight nibbles, the first lowest. */
function nibbles(of: (i: number) => number): number {
  let word = 0;
  for (let i = 0; i < 8; i++) word |= (of(i) & 15) << 4 * i;
  return word >>> 0;
}

function valuesOf({ rows, cols }: Size, value: At): Float32Array {
  return Float32Array.from(
    { length: rows * cols },
    (_, i) => value(Math.floor(i / cols), i % cols),
  );
}

/** Random numbers, the same for the same arguments. */
const random = (bits: number, stream: number): At => (a, b) => hash32(stream, a, b) >>> 32 - bits;

/** Of 4 bits, most near the middle as symmetric weights have them, some at the ends. */
function zeroOf(stream: number): At {
  return (row, group) => {
    const u = random(4, stream)(row, group);
    return u < 14 ? 6 + u % 4 : 15 * (u % 2);
  };
}

/** A stream of random numbers for each matrix. */
function streamOf({ prefix }: Size, stream: number): number {
  return [...prefix].reduce((hash, letter) => hash32(hash, letter.charCodeAt(0), stream), stream);
}

const half = (x: number) => new Float16Array([x])[0]!;
const brain = (x: number) => {
  const bits = new Uint32Array(Float32Array.of(x).buffer);
  return new Float32Array(Uint32Array.of(bits[0]! & 0xffff0000).buffer)[0]!;
};

/** The nearest power of two, as e8m0 has them. */
const power = (x: number) => 2 ** Math.round(Math.log2(x));

type ScaleType = "F16" | "BF16" | "F32" | "F8_E8M0" | "U8";

/** Scales about `size`, [a, b], in a dtype. */
function scalesOf(
  name: string,
  dtype: ScaleType,
  { shape, size }: { readonly shape: readonly [number, number]; readonly size: number },
): { readonly scale: At; readonly stored: Stored } {
  const round = { F16: half, BF16: brain, F32: Math.fround, F8_E8M0: power, U8: power }[dtype];
  const scale: At = (a, b) => round(size * (0.5 + random(16, 9)(a, b) / 2 ** 16));
  const [rows, cols] = shape;
  const all = Array.from({ length: rows * cols }, (_, i) => scale(Math.floor(i / cols), i % cols));
  const e8m0 = () => Uint8Array.from(all, (scale) => Math.log2(scale) + 127);
  const bytes = {
    F8_E8M0: e8m0,
    U8: e8m0,
    F16: () => bytesOf(Float16Array.from(all)),
    BF16: () => {
      const bits = new Uint32Array(Float32Array.from(all).buffer);
      return bytesOf(Uint16Array.from(bits, (word) => word >>> 16));
    },
    F32: () => bytesOf(Float32Array.from(all)),
  }[dtype]();
  return { scale, stored: { name, dtype, shape, bytes } };
}

const GPTQ = { quant_method: "gptq", bits: 4, sym: false, desc_act: false };

/** @param step what the first format takes off the zeros it stores. */
export function gptq(group: number, step: 0 | 1): Layout {
  const format = step === 1 ? "gptq" : "gptq_v2";
  return {
    config: { ...GPTQ, group_size: group, checkpoint_format: format },
    write(size) {
      const { prefix, rows, cols } = size;
      const share = group === -1 ? cols : group;
      const groups = Math.ceil(cols / share);
      const u = random(4, streamOf(size, 1));
      const zero: At = (row, g) => zeroOf(2)(row, g) || 8;
      const { scale, stored } = scalesOf(`${prefix}.scales`, "F16", {
        shape: [groups, rows],
        size: 0.02,
      });
      const order = Int32Array.from({ length: cols }, (_, k) => Math.floor(k / share));
      return {
        stored: [
          i32(`${prefix}.qweight`, [cols / 8, rows], (j, n) => nibbles((i) => u(n, 8 * j + i))),
          i32(
            `${prefix}.qzeros`,
            [groups, rows / 8],
            (g, m) => nibbles((i) => zero(8 * m + i, g) - step),
          ),
          stored,
          { name: `${prefix}.g_idx`, dtype: "I32", shape: [cols], bytes: bytesOf(order) },
        ],
        values: valuesOf(size, (n, k) => {
          const g = Math.floor(k / share);
          return (u(n, k) - zero(n, g)) * scale(g, n);
        }),
      };
    },
  };
}

export function awq(group: number): Layout {
  const order = [0, 2, 4, 6, 1, 3, 5, 7];
  return {
    config: { quant_method: "awq", bits: 4, group_size: group, zero_point: true, version: "gemm" },
    write(size) {
      const { prefix, rows, cols } = size;
      const groups = Math.ceil(cols / group);
      const [u, zero] = [random(4, streamOf(size, 3)), zeroOf(4)];
      const { scale, stored } = scalesOf(`${prefix}.scales`, "F16", {
        shape: [groups, rows],
        size: 0.02,
      });
      return {
        stored: [
          i32(
            `${prefix}.qweight`,
            [cols, rows / 8],
            (k, m) => nibbles((i) => u(8 * m + order[i]!, k)),
          ),
          i32(
            `${prefix}.qzeros`,
            [groups, rows / 8],
            (g, m) => nibbles((i) => zero(8 * m + order[i]!, g)),
          ),
          stored,
        ],
        values: valuesOf(size, (n, k) => {
          const g = Math.floor(k / group);
          return (u(n, k) - zero(n, g)) * scale(g, n);
        }),
      };
    },
  };
}

function compressed(format: string, weights: Readonly<Record<string, unknown>>) {
  return {
    quant_method: "compressed-tensors",
    format,
    ignore: ["lm_head"],
    config_groups: {
      group_0: { targets: ["Linear"], input_activations: null, output_activations: null, weights },
    },
  };
}

/** int4, `pack-quantized`, bf16 scales. */
export function packedInt4(group: number, symmetric: boolean): Layout {
  const weights = { num_bits: 4, type: "int", symmetric, strategy: "group", group_size: group };
  return {
    config: compressed("pack-quantized", weights),
    write(size) {
      const { prefix, rows, cols } = size;
      const groups = Math.ceil(cols / group);
      const u = random(4, streamOf(size, 5));
      const q: At = (n, k) => u(n, k) - 8;
      const zero: At = (n, g) => symmetric ? 0 : zeroOf(6)(n, g) - 8;
      const { scale, stored } = scalesOf(`${prefix}.weight_scale`, "BF16", {
        shape: [rows, groups],
        size: 0.02,
      });
      const zeros = i32(
        `${prefix}.weight_zero_point`,
        [rows / 8, groups],
        (m, g) => nibbles((i) => zero(8 * m + i, g) + 8),
      );
      const shape = bytesOf(BigInt64Array.of(BigInt(rows), BigInt(cols)));
      return {
        stored: [
          { name: `${prefix}.weight_shape`, dtype: "I64", shape: [2], bytes: shape },
          i32(
            `${prefix}.weight_packed`,
            [rows, cols / 8],
            (n, j) => nibbles((i) => q(n, 8 * j + i) + 8),
          ),
          stored,
          ...symmetric ? [] : [zeros],
        ],
        values: valuesOf(size, (n, k) => {
          const g = Math.floor(k / group);
          return (q(n, k) - zero(n, g)) * scale(n, g);
        }),
      };
    },
  };
}

/** int8 in words, `pack-quantized`, as compressed-tensors writes 8-bit weights alone. */
export function packedInt8(group: number): Layout {
  const weights = { num_bits: 8, type: "int", symmetric: true, strategy: "group" };
  return {
    config: compressed("pack-quantized", { ...weights, group_size: group }),
    write(size) {
      const { prefix, rows, cols } = size;
      const u = random(8, streamOf(size, 11));
      const { scale, stored } = scalesOf(`${prefix}.weight_scale`, "BF16", {
        shape: [rows, Math.ceil(cols / group)],
        size: 0.001,
      });
      const word: At = (n, j) =>
        [0, 1, 2, 3].reduce((bits, i) => (bits | u(n, 4 * j + i) << 8 * i) >>> 0, 0);
      return {
        stored: [i32(`${prefix}.weight_packed`, [rows, cols / 4], word), stored],
        values: valuesOf(size, (n, k) => (u(n, k) - 128) * scale(n, Math.floor(k / group))),
      };
    },
  };
}

/** int8, a scale a channel. */
export function int8(): Layout {
  const weights = { num_bits: 8, type: "int", symmetric: true, strategy: "channel" };
  return {
    config: compressed("int-quantized", weights),
    write(size) {
      const { prefix, rows, cols } = size;
      const u = random(8, streamOf(size, 7));
      const q: At = (n, k) => (u(n, k) << 24) >> 24;
      const { scale, stored } = scalesOf(`${prefix}.weight_scale`, "F32", {
        shape: [rows, 1],
        size: 0.001,
      });
      const values = valuesOf(size, (n, k) => q(n, k) * scale(n, 0));
      const bytes = bytesOf(Int8Array.from(valuesOf(size, q)));
      return {
        stored: [
          stored,
          { name: `${prefix}.weight`, dtype: "I8", shape: [rows, cols], bytes },
        ],
        values,
      };
    },
  };
}

/** FP8 bytes of small numbers, subnormal ones among them; [rows, cols] over blocks of scales. */
function fp8(
  config: Readonly<Record<string, unknown>>,
  name: string,
  of: (size: Size) => { readonly block: readonly [number, number]; readonly scalar?: boolean },
  scaleType: ScaleType = "F32",
): Layout {
  return {
    config,
    write(size) {
      const { prefix, rows, cols } = size;
      const { block: [high, wide], scalar } = of(size);
      const shape = [Math.ceil(rows / high), Math.ceil(cols / wide)] as const;
      const u = random(8, streamOf(size, 8));
      const byte: At = (n, k) => {
        const bits = u(n, k);
        return (bits & 0x7f) > 0x48 ? bits & 0x87 : bits; // most 4; many without exponent
      };
      const { scale, stored } = scalesOf(`${prefix}.${name}`, scaleType, { shape, size: 0.05 });
      const bytes = bytesOf(Uint8Array.from(valuesOf(size, byte)));
      return {
        stored: [
          scalar ? { ...stored, shape: [] } : stored,
          { name: `${prefix}.weight`, dtype: "F8_E4M3", shape: [rows, cols], bytes },
          // Of activations, which stay float32.
          { name: `${prefix}.input_scale`, dtype: "F32", shape: [], bytes: new Uint8Array(4) },
        ],
        values: valuesOf(
          size,
          (n, k) => e4m3(byte(n, k)) * scale(Math.floor(n / high), Math.floor(k / wide)),
        ),
      };
    },
  };
}

/** OCP Microscaling Formats (MX) 1.0, 5.3.3. */
const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];

/** Factor of all scales of a module, in each of both ways. */
function nvfp4(config: Layout["config"], inverse: boolean): Layout {
  const factor = Math.fround(0.37 / 2688);
  return {
    config,
    write(size) {
      const { prefix, rows, cols } = size;
      const code = random(4, streamOf(size, 9));
      const byte: At = (n, g) => 1 + random(8, streamOf(size, 10))(n, g) % 126;
      const global = Float32Array.of(inverse ? 1 / factor : factor);
      const [stored = NaN] = global;
      const f32: Stored = {
        name: `${prefix}.${inverse ? "weight_global_scale" : "weight_scale_2"}`,
        dtype: "F32",
        shape: inverse ? [1] : [],
        bytes: bytesOf(global),
      };
      const u8 = (name: string, dtype: string, width: number, of: At): Stored => ({
        name: `${prefix}.${name}`,
        dtype,
        shape: [rows, width],
        bytes: Uint8Array.from(
          { length: rows * width },
          (_, i) => of(Math.floor(i / width), i % width),
        ),
      });
      return {
        stored: [
          u8(
            inverse ? "weight_packed" : "weight",
            "U8",
            cols / 2,
            (n, j) => code(n, 2 * j) | code(n, 2 * j + 1) << 4,
          ),
          u8("weight_scale", "F8_E4M3", cols / 16, byte),
          f32,
          { ...f32, name: `${prefix}.${inverse ? "input_global_scale" : "input_scale"}` },
        ],
        // Both scales together are rounded to the 11 bits of f16, over 2^-12.
        values: valuesOf(size, (n, k) => {
          const exact = e4m3(byte(n, k >> 4)) * (inverse ? 1 / stored : stored);
          const [scale = NaN] = Float16Array.of(exact * 4096);
          return (E2M1[code(n, k)] ?? NaN) * scale / 4096;
        }),
      };
    },
  };
}

/** As Intel publishes its models. */
function autoRound(packing: string, group: number): Layout["config"] {
  return {
    quant_method: "auto-round",
    bits: 4,
    data_type: "int",
    group_size: group,
    sym: true,
    packing_format: packing,
    block_name_to_quantize: "model.layers",
    extra_config: { lm_head: { bits: 16, data_type: "float" } },
  };
}

/** Every layout that is supported. */
export const LAYOUTS: Readonly<Record<string, Layout>> = {
  "gptq, groups of 32": gptq(32, 1),
  "gptq, groups of 128": gptq(128, 1),
  "gptq, one group": gptq(-1, 1),
  "gptq_v2, groups of 64": gptq(64, 0),
  "gptq_v2 as later GPTQModel names it": {
    ...gptq(64, 0),
    config: { ...GPTQ, group_size: 64, format: "gptq_v2" },
  },
  "auto-round as gptq": { ...gptq(128, 1), config: autoRound("auto_round:auto_gptq", 128) },
  "auto-round as awq": { ...awq(32), config: autoRound("auto_round:auto_awq", 32) },
  "awq, groups of 32": awq(32),
  "awq, groups of 128": awq(128),
  "packed int4, groups of 32": packedInt4(32, true),
  "packed int4, groups of 64, with zeros": packedInt4(64, false),
  "packed int8, groups of 64": packedInt8(64),
  int8: int8(),
  "fp8, blocks": fp8(
    { quant_method: "fp8", fmt: "e4m3", weight_block_size: [128, 128] },
    "weight_scale_inv",
    () => ({ block: [128, 128] }),
  ),
  "fp8, blocks, bf16": fp8(
    { quant_method: "fp8", weight_block_size: [128, 128] },
    "weight_scale_inv",
    () => ({ block: [128, 128] }),
    "BF16",
  ),
  "fp8, blocks, e8m0": fp8(
    { quant_method: "fp8", scale_fmt: "ue8m0", weight_block_size: [128, 128] },
    "weight_scale_inv",
    () => ({ block: [128, 128] }),
    "F8_E8M0",
  ),
  "mxfp8": fp8(
    { quant_method: "mxfp8", scale_fmt: "ue8m0" },
    "weight_scale_inv",
    () => ({ block: [1, 32] }),
    "U8",
  ),
  "compressed-tensors mxfp8": fp8(
    compressed("mxfp8-quantized", {
      num_bits: 8,
      type: "float",
      strategy: "group",
      group_size: 32,
    }),
    "weight_scale",
    () => ({ block: [1, 32] }),
    "U8",
  ),
  "modelopt fp8": fp8(
    { quant_method: "modelopt", quant_algo: "FP8" },
    "weight_scale",
    ({ rows, cols }) => ({ block: [rows, cols], scalar: true }),
  ),
  "fp8, a scale a tensor": fp8(
    { quant_method: "fp8", activation_scheme: "static" },
    "weight_scale",
    ({ rows, cols }) => ({ block: [rows, cols], scalar: true }),
  ),
  "fbgemm_fp8, a scale a row": fp8(
    { quant_method: "fbgemm_fp8", modules_to_not_convert: ["lm_head"] },
    "weight_scale",
    ({ cols }) => ({ block: [1, cols] }),
  ),
  "compressed-tensors fp8, a scale a row": fp8(
    compressed("float-quantized", { num_bits: 8, type: "float", strategy: "channel" }),
    "weight_scale",
    ({ cols }) => ({ block: [1, cols] }),
  ),
  "compressed-tensors fp8, blocks": fp8(
    compressed("float-quantized", {
      num_bits: 8,
      type: "float",
      strategy: "block",
      block_structure: [128, 128],
    }),
    "weight_scale",
    () => ({ block: [128, 128] }),
    "BF16",
  ),
  "compressed-tensors nvfp4": nvfp4(
    compressed("nvfp4-pack-quantized", {
      num_bits: 4,
      type: "float",
      strategy: "tensor_group",
      group_size: 16,
    }),
    true,
  ),
  "modelopt nvfp4": nvfp4({ quant_method: "modelopt", quant_algo: "NVFP4" }, false),
};

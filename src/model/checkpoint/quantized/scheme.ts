/** The quantization of a checkpoint's weights, from its `quantization_config`. */
import { type Fields, flag, integer, nested, quote, unusable, value } from "../../files/fields.ts";

/**
 * Where the numbers of a matrix are stored. `gptq` and `awq`: 4-bit, transposed; `packed`: rows of
 * integers in words; `integers` and `fp8`: rows of bytes.
 */
export type StoredLayout = "gptq" | "awq" | "packed" | "integers" | "fp8";

/** How the matrices of a checkpoint are quantized. */
export interface Scheme {
  /** For people: `GPTQ 4-bit`. */
  readonly method: string;
  readonly layout: StoredLayout;
  readonly bits: 4 | 8;
  /**
   * Weights that share a scale: rows by columns, Infinity for all. Undefined: the number of scales decides
   * between one per tensor and one per row.
   */
  readonly block: { readonly rows: number; readonly cols: number } | undefined;
  /** Added to stored zero points: 1 in the first format of GPTQ. */
  readonly zeroStep: 0 | 1;
  /** Modules that are not quantized, as the config lists them. */
  readonly kept: readonly string[];
}

const SUPPORTED =
  "awq, gptq, auto-round, compressed-tensors, fp8, fbgemm_fp8, mxfp4, mxfp8, modelopt, eyrie";

/**
 * `quant_algo` of ModelOpt whose modules are in FP8, NVFP4 or not quantized.
 *
 * Source: https://github.com/NVIDIA/Model-Optimizer, `modelopt/torch/export`
 */
const MODELOPT = [
  "NVFP4",
  "W4A16_NVFP4",
  "FP8",
  "FP8_PER_CHANNEL_PER_TOKEN",
  "MIXED_PRECISION",
] as const;

/** Where config.json says how a checkpoint is quantized; a model with images may say it of its text alone. */
export function quantizationOf(config: Fields): Fields | undefined {
  const text = nested(config, "text_config");
  return nested(config, "quantization_config") ?? nested(config, "compression_config") ??
    (text && nested(text, "quantization_config"));
}

/**
 * The scheme of a checkpoint, undefined where it is not quantized, or where its tensors alone tell how.
 *
 * @throws UsageError naming a method, or a setting of one, that is not supported.
 */
export function readScheme(config: Fields): Scheme | undefined {
  const found = quantizationOf(config);
  if (found === undefined) return undefined;
  const method = value(found, "quant_method") ??
    (value(found, "config_groups") === undefined ? undefined : "compressed-tensors");
  switch (method) {
    case "gptq":
      return gptq(found);
    case "awq":
      return awq(found);
    case "auto-round":
      return autoRound(found);
    case "fp8":
    case "fbgemm_fp8":
      return fp8(found);
    case "mxfp8": // Scales of e8m0.
      return fp8(found, { rows: 1, cols: 32 });
    case "compressed-tensors":
      return compressed(found);
    case "modelopt":
      // Null where only the KV cache is quantized. FP8 and NVFP4 modules are known by their tensors.
      expect(found, "quant_algo", [...MODELOPT, undefined]);
      return undefined;
    case "mxfp4":
      return undefined; // See expert_stacks.ts.
  }
  throw unusable(found, `has quant_method ${quote(method ?? null)}, supported are ${SUPPORTED}`);
}

function gptq(found: Fields): Scheme {
  expect(found, "bits", [4]);
  // GPTQModel writes either; `format` is the later one.
  const keys = ["checkpoint_format", "format"];
  for (const key of keys) expect(found, key, ["gptq", "gptq_v2", undefined]);
  expect(found, "is_marlin_format", [false, undefined]);
  const second = keys.some((key) => value(found, key) === "gptq_v2");
  return {
    method: "GPTQ 4-bit",
    layout: "gptq",
    bits: 4,
    block: { rows: 1, cols: groupSize(found, "group_size") },
    zeroStep: second ? 0 : 1,
    kept: [],
  };
}

/** AutoRound stores the tensors of GPTQ's first format or of AWQ. https://github.com/intel/auto-round */
function autoRound(found: Fields): Scheme {
  const [likeGptq, likeAwq] = ["auto_round:auto_gptq", "auto_round:auto_awq"];
  expect(found, "packing_format", [likeGptq, likeAwq, undefined]);
  expect(found, "data_type", ["int", undefined]);
  const stored = value(found, "packing_format") === likeAwq ? awq(found) : gptq(found);
  return { ...stored, method: "AutoRound 4-bit" };
}

function awq(found: Fields): Scheme {
  // transformers and GPTQModel write these keys; AutoAWQ has w_bit and q_group_size in a separate file.
  expect(found, "bits", [4]);
  for (const key of ["version", "format", "checkpoint_format"]) {
    expect(found, key, ["gemm", "GEMM", undefined]);
  }
  flag(found, "zero_point", true);
  return {
    method: "AWQ 4-bit",
    layout: "awq",
    bits: 4,
    block: { rows: 1, cols: groupSize(found, "group_size") },
    zeroStep: 0,
    kept: strings(found, "modules_to_not_convert"),
  };
}

/** @param usual the block where config.json does not say it. */
function fp8(found: Fields, usual?: Scheme["block"]): Scheme {
  expect(found, "fmt", ["e4m3", "float8_e4m3fn", undefined]);
  const size = value(found, "weight_block_size");
  return {
    method: "FP8 (e4m3)",
    layout: "fp8",
    bits: 8,
    block: size === undefined ? usual : blockOf(found, "weight_block_size"),
    zeroStep: 0,
    kept: strings(found, "modules_to_not_convert"),
  };
}

/** What FP8 tensors are where config.json does not say it: the number of their scales tells what shares one. */
export const FP8_OF_TENSORS: Scheme = {
  method: "FP8 (e4m3)",
  layout: "fp8",
  bits: 8,
  block: undefined,
  zeroStep: 0,
  kept: [],
};

const NVFP4 = "nvfp4-pack-quantized";

/** https://github.com/vllm-project/compressed-tensors, `QuantizationConfig` */
function compressed(found: Fields): Scheme | undefined {
  const groups = nested(found, "config_groups");
  if (groups === undefined) throw unusable(found, "has no config_groups");
  const transforms = nested(found, "transform_config");
  const rotated = transforms && nested(transforms, "config_groups");
  if (rotated && Object.keys(rotated.values).length > 0) {
    throw unusable(rotated, "has rotations of weights and activations, which are not supported");
  }
  const schemes = Object.keys(groups.values).flatMap((key) => {
    const group = nested(groups, key);
    const weights = group && nested(group, "weights");
    if (!group || !weights) return []; // It quantizes activations, or the KV cache, alone.
    const format = value(group, "format") ?? value(found, "format");
    if (format === NVFP4) return []; // Tensors show it: see nvfp4.ts.
    return compressedWeights(found, weights, format);
  });
  const [first] = schemes;
  if (first === undefined) return undefined;
  if (schemes.some((other) => JSON.stringify(other) !== JSON.stringify(first))) {
    throw unusable(groups, "quantizes weights in more than one way, supported is one for all");
  }
  const sparsity = nested(found, "sparsity_config");
  if (sparsity !== undefined) expect(sparsity, "format", ["dense", undefined]);
  return { ...first, kept: strings(found, "ignore") };
}

function compressedWeights(found: Fields, weights: Fields, format: unknown): Scheme {
  expect(weights, "actorder", ["weight", "static", undefined, false]);
  const type = value(weights, "type") ?? "int";
  const bits = integer(weights, "num_bits", { min: 1, max: 16 });
  const symmetric = flag(weights, "symmetric", true);
  const layout = LAYOUTS[`${format} ${type}${bits}`];
  if (layout === undefined || !symmetric && layout !== "packed") {
    throw unusable(
      found,
      `has ${symmetric ? "" : "asymmetric "}${type}${bits} weights of format ${quote(format)}, ` +
        `supported are ${Object.keys(LAYOUTS).join(", ")}`,
    );
  }
  const name = type === "float" ? "FP8 (e4m3)" : `int${bits}`;
  return {
    method: `compressed-tensors ${name}`,
    layout,
    bits: bits as 4 | 8,
    block: strategyBlock(weights),
    zeroStep: 0,
    kept: [],
  };
}

/** Layouts by format, type and bits. */
const LAYOUTS: Readonly<Record<string, StoredLayout>> = {
  "pack-quantized int4": "packed",
  "pack-quantized int8": "packed",
  "int-quantized int8": "integers",
  "naive-quantized int8": "integers",
  "float-quantized float8": "fp8",
  "naive-quantized float8": "fp8",
  "mxfp8-quantized float8": "fp8",
};

function strategyBlock(weights: Fields): Scheme["block"] {
  const fallback = value(weights, "group_size") === undefined ? "tensor" : "group";
  const strategy = value(weights, "strategy") ?? fallback;
  switch (strategy) {
    case "tensor":
      return { rows: Infinity, cols: Infinity };
    case "channel":
      return { rows: 1, cols: Infinity };
    case "group":
      return { rows: 1, cols: groupSize(weights, "group_size") };
    case "block":
      return blockOf(weights, "block_structure");
  }
  const known = "tensor, channel, group, block";
  throw unusable(weights, `has strategy ${quote(strategy)}, supported are ${known}`);
}

/** Number of weights along k that share a scale, -1 for all. On the GPU a scale belongs to whole groups of 32. */
function groupSize(fields: Fields, key: string): number {
  if (value(fields, key) === -1) return Infinity;
  return integer(fields, key, { min: 32, max: 1 << 20, multipleOf: 32 });
}

function blockOf(fields: Fields, key: string): { readonly rows: number; readonly cols: number } {
  const size = value(fields, key);
  // Also written as "128x128".
  const sides = typeof size === "string" ? size.split("x").map(Number) : size;
  const [rows, cols] = Array.isArray(sides) && sides.length === 2 ? sides : [];
  if (
    !Number.isSafeInteger(rows) || !Number.isSafeInteger(cols) || rows < 1 || cols < 32 ||
    cols % 32 !== 0
  ) {
    throw unusable(fields, `has ${key} ${quote(size)}, expected [rows, a multiple of 32]`);
  }
  return { rows, cols };
}

function strings(fields: Fields, key: string): readonly string[] {
  const found = value(fields, key) ?? [];
  if (Array.isArray(found) && found.every((item) => typeof item === "string")) return found;
  throw unusable(fields, `has ${key} ${quote(found)}, expected a list of names`);
}

/** @throws UsageError if a field has a value that Eyrie does not support. */
function expect(fields: Fields, key: string, known: readonly unknown[]): void {
  const found = value(fields, key);
  if (known.includes(found)) return;
  const list = known.filter((item) => item !== undefined).map(quote).join(", ");
  throw unusable(fields, `has ${key} ${quote(found ?? null)}, supported: ${list}`);
}

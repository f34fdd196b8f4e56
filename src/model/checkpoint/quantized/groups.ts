/** The words of the groups of a quantized matrix: a scale, and for u4 its zero point. */
import { UsageError } from "../../../errors.ts";
import { GROUP } from "../../../gpu/weight_format.ts";
import type { Checkpoint } from "../../files/checkpoint_type.ts";
import type { TensorInfo } from "../../files/safetensors.ts";
import { quote } from "../../files/fields.ts";
import { widen } from "../../files/widen.ts";

/**
 * Scales of activations and of the KV cache, which are not used: neither is quantized. Modules whose weights are not
 * quantized may have them too.
 */
export const ACTIVATIONS: RegExp =
  /\.((input|output|[qkv]|kv)_(scale|zero_point)|input_global_scale|input_scale_ub|(experts\.(gate_up|down)_proj_)?activation_scale)$/;

/** Scales [ceil(rows / block.rows), ceil(cols / block.cols)]. */
export interface Scales {
  /** f32 bits of the scales alone: u4's zero points are not in them yet. */
  readonly bits: Uint32Array;
  readonly block: { readonly rows: number; readonly cols: number };
  /** Blocks along k. */
  readonly width: number;
}

type Source = Pick<Checkpoint, "name" | "read">;

export function readBytes(from: Source, tensor: TensorInfo): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(tensor.size);
  from.read(tensor, 0, bytes);
  return bytes;
}

/** Reads a tensor of 32-bit words, such as packed 4-bit integers. @throws UsageError */
export function readWords(from: Source, tensor: TensorInfo): Uint32Array {
  if (tensor.dtype !== "I32") {
    throw badTensor(from, tensor, `has dtype ${quote(tensor.dtypeName)}, expected I32`);
  }
  return new Uint32Array(readBytes(from, tensor).buffer);
}

/** Whether a tensor holds powers of two, 2^(byte - 127). Files older than the dtype say U8. */
function isE8m0({ dtypeName }: TensorInfo): boolean {
  return dtypeName === "F8_E8M0" || dtypeName === "U8";
}

/** Reads floats of 8 (e8m0), 16 or 32 bits as f32 bits. @throws UsageError if they have another dtype. */
export function readScales(from: Source, tensor: TensorInfo): Uint32Array {
  const { dtype, dtypeName } = tensor;
  if (dtype !== "F32" && dtype !== "F16" && dtype !== "BF16" && !isE8m0(tensor)) {
    const expected = "expected F32, F16, BF16, F8_E8M0";
    throw badTensor(from, tensor, `has dtype ${quote(dtypeName)}, ${expected}`);
  }
  const bytes = readBytes(from, tensor);
  const scales = isE8m0(tensor)
    ? Float32Array.from(bytes, (byte) => byte === 255 ? NaN : 2 ** (byte - 127))
    : widen(bytes, dtype);
  if (!scales.every(Number.isFinite)) {
    throw badTensor(from, tensor, "has a scale that is no number");
  }
  return new Uint32Array(scales.buffer);
}

/** u4 stores zero points in the five lowest bits of the scales. @throws UsageError if a scale uses these bits. */
export function checkNarrow(from: Source, tensor: TensorInfo, bits: Uint32Array): void {
  if (bits.every((word) => (word & 31) === 0)) return;
  const why = "has a scale of more than 19 bits, expected those of F16 or BF16";
  throw badTensor(from, tensor, why);
}

/** Writes the scale bits of a row's groups to `into`. */
export function rowScales({ bits, block, width }: Scales, row: number, into: Uint32Array): void {
  const first = Number.isFinite(block.rows) ? Math.floor(row / block.rows) * width : 0;
  const share = block.cols / GROUP;
  for (let group = 0; group < into.length; group++) {
    into[group] = bits[first + Math.floor(group / share)] ?? 0;
  }
}

/**
 * What a module of a width that is no multiple of GROUP shows as its `weight`: a tensor that can be named, but not
 * used, as its dtype says.
 */
export function withoutGroups(
  stored: TensorInfo,
  { name, method, rows, cols }: {
    readonly name: string;
    readonly method: string;
    readonly rows: number;
    readonly cols: number;
  },
): TensorInfo {
  const dtypeName = `${method} of ${cols} columns, which are no multiple of ${GROUP}`;
  const shape = stored.shape.length === 2 ? [rows, cols] : stored.shape;
  return { ...stored, name, dtype: "OTHER", dtypeName, shape };
}

export function badTensor(
  { name }: Pick<Checkpoint, "name">,
  tensor: TensorInfo,
  why: string,
): UsageError {
  const path = quote(`${name}/${tensor.file}`);
  return new UsageError(`Cannot use ${path}: tensor ${quote(tensor.name)} ${why}`);
}

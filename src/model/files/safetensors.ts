/**
 * The header of a safetensors file: 8 bytes little-endian N, N bytes of JSON
 * `{name: {dtype, shape, data_offsets: [begin, end]}}`, then the data the offsets count from.
 * Source: https://github.com/huggingface/safetensors#format
 */
import { UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import { quote } from "./fields.ts";

/** Element types a safetensors header may name; `OTHER` is kept but cannot be used. */
export type DType = "F32" | "F16" | "BF16" | "I64" | "I32" | "BOOL" | "OTHER" | GroupedDType;

/**
 * Dtypes of the views of src/model/checkpoint/quantized: rows of weights with the words of their groups. The last
 * two are blocks of a scale and 32 integers, as `eyrie convert --quantize` stores them.
 */
export type GroupedDType =
  | "GROUPED_U4"
  | "GROUPED_I8"
  | "GROUPED_F8"
  | "GROUPED_MXFP4"
  | "GROUPED_NVFP4"
  | "GROUPED_Q8"
  | "GROUPED_Q4";

/** One tensor of a checkpoint: where its bytes are. */
export interface TensorInfo {
  readonly name: string;
  readonly dtype: DType;
  /** The file's own name of the dtype; for a grouped one how it is quantized: `GPTQ 4-bit`. */
  readonly dtypeName: string;
  readonly shape: readonly number[];
  /** File within the checkpoint folder. */
  readonly file: string;
  /** First byte, absolute within the file. */
  readonly begin: number;
  /** Bytes. */
  readonly size: number;
  /**
   * Rows of a head, if weights are made of its rows in another order: of each head the even rows come first, then the
   * odd ones (src/model/weights/even_rows.ts). Absent: in the order of the file.
   */
  readonly evenRowsFirst?: number;
}

/** The file a header belongs to. */
export interface SafetensorsFile {
  /** For messages: folder and file. */
  readonly path: string;
  /** File within the checkpoint folder. */
  readonly file: string;
  /** Bytes of the whole file. */
  readonly size: number;
}

/** Bytes before the JSON header. */
export const HEADER_START = 8;

/** Beginning of the Git LFS pointer that stands for a large file. */
const LFS_POINTER = "version ";

/** The format's own limit on the JSON header, bytes. */
export const MAX_HEADER_BYTES = 100_000_000;

/** A dtype's name, also of one that is not known. Reports print it, so it has no line breaks or codes of terminals. */
const NAME = /^\w{1,32}$/;

const READABLE: ReadonlySet<string> = new Set(["F32", "F16", "BF16", "I64", "I32", "BOOL"]);

/** Bytes an element, of every whole-byte dtype the format knows. */
export const DTYPE_BYTES: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E5M2: 1,
  F8_E4M3: 1,
  F8_E8M0: 1,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I32: 4,
  U32: 4,
  F32: 4,
  I64: 8,
  U64: 8,
  F64: 8,
  C64: 8,
};

/**
 * Bytes of the JSON header, from the first 8 bytes of the file.
 * @throws UsageError when the file is too short or the header cannot fit in it.
 */
export function headerSize(first: Uint8Array, file: SafetensorsFile): number {
  if (first.length < HEADER_START) {
    throw broken(file, `truncated: ${file.size} bytes, too short for a safetensors header`);
  }
  if (new TextDecoder().decode(first) === LFS_POINTER) {
    throw broken(file, "it is a Git LFS pointer, not the file itself; run git lfs pull");
  }
  const size = new DataView(first.buffer, first.byteOffset).getBigUint64(0, true);
  if (size > MAX_HEADER_BYTES) {
    throw broken(file, `not a safetensors file (it claims a header of ${size} bytes)`);
  }
  if (HEADER_START + Number(size) > file.size) {
    throw broken(file, `truncated: ${file.size} bytes, but the header alone has ${size}`);
  }
  return Number(size);
}

/**
 * The tensors a JSON header names, in file order. They are checked to be inside the file, without
 * overlaps and without gaps between them.
 * @throws UsageError naming file and tensor.
 */
export function parseHeader(header: Uint8Array, file: SafetensorsFile): TensorInfo[] {
  const dataStart = HEADER_START + header.length;
  const tensors = Object.entries(parseJson(header, file))
    .filter(([name]) => name !== "__metadata__")
    .map(([name, entry]) => parseTensor(name, entry, { ...file, dataStart }))
    .sort((a, b) => a.begin - b.begin || a.size - b.size);
  checkPlaces(tensors, { ...file, dataStart });
  return tensors;
}

function parseJson(header: Uint8Array, file: SafetensorsFile): Readonly<Record<string, unknown>> {
  let text: string;
  let parsed: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(header);
    parsed = JSON.parse(text);
  } catch (cause) {
    throw broken(file, "the header is not JSON", cause);
  }
  if (!isObject(parsed)) throw broken(file, "the header is not a JSON object");
  const twice = duplicateKey(text);
  if (twice !== undefined) throw broken(file, `tensor ${quote(twice)} is named twice`);
  return parsed;
}

function parseTensor(
  name: string,
  entry: unknown,
  file: SafetensorsFile & { readonly dataStart: number },
): TensorInfo {
  const fail = (why: string): UsageError => broken(file, `tensor ${quote(name)} ${why}`);
  if (!isObject(entry)) throw fail("is not described by an object");
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== "string" || !NAME.test(dtype)) throw fail(`has dtype ${quote(dtype)}`);
  if (!isCounts(shape)) throw fail(`has shape ${quote(shape)}`);
  if (!isCounts(offsets) || offsets.length !== 2) throw fail(`has offsets ${quote(offsets)}`);
  const [from = 0, to = 0] = offsets;
  if (to < from) throw fail(`ends at byte ${to} before it begins at ${from}`);
  const expected = tensorBytes(dtype, shape);
  if (Number.isNaN(expected)) throw fail(`has shape ${quote(shape)}, too large`);
  if (expected !== undefined && expected !== to - from) {
    throw fail(`has ${to - from} bytes, but ${dtype} ${quote(shape)} takes ${expected}`);
  }
  const begin = file.dataStart + from;
  if (file.dataStart + to > file.size) {
    const needed = file.dataStart + to;
    throw fail(`is truncated: it ends at byte ${needed}, the file at ${file.size}`);
  }
  return { name, ...namedDType(dtype), shape, file: file.file, begin, size: to - from };
}

/** A dtype by the format's word for it. */
export function namedDType(dtypeName: string): Pick<TensorInfo, "dtype" | "dtypeName"> {
  return { dtype: READABLE.has(dtypeName) ? dtypeName as DType : "OTHER", dtypeName };
}

/** Bytes of a tensor; undefined for a dtype of unknown width, NaN past 2^53 - 1. */
function tensorBytes(dtype: string, shape: readonly number[]): number | undefined {
  let bytes = Object.hasOwn(DTYPE_BYTES, dtype) ? DTYPE_BYTES[dtype] : undefined;
  for (const count of shape) {
    if (bytes === undefined) return undefined;
    bytes *= count;
    if (!Number.isSafeInteger(bytes)) return NaN;
  }
  return bytes;
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);
}

/** Like the reference library it refuses bytes that no tensor claims: something was cut, inserted or appended. */
function checkPlaces(
  sorted: readonly TensorInfo[],
  file: SafetensorsFile & { readonly dataStart: number },
): void {
  let before: TensorInfo | undefined;
  let end = file.dataStart;
  for (const tensor of sorted) {
    if (tensor.size === 0) continue;
    if (before !== undefined && tensor.begin < end) {
      throw broken(file, `tensors ${quote(before.name)} and ${quote(tensor.name)} overlap`);
    }
    if (tensor.begin > end) {
      const count = tensor.begin - end;
      throw broken(file, `${count} bytes before tensor ${quote(tensor.name)} belong to none`);
    }
    before = tensor;
    end = tensor.begin + tensor.size;
  }
  if (end === file.size) return;
  throw broken(file, `${file.size - end} bytes after the last tensor belong to none`);
}

/** The first key that occurs twice in a valid JSON object; JSON.parse would silently keep the last. */
function duplicateKey(json: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  let keyNext = false;
  for (let at = 0; at < json.length; at++) {
    const letter = json[at];
    if (letter === '"') {
      const end = closingQuote(json, at);
      if (keyNext) {
        const key = String(JSON.parse(json.slice(at, end + 1)));
        if (seen.has(key)) return key;
        seen.add(key);
      }
      keyNext = false;
      at = end;
    } else if (letter === "{" || letter === "[") keyNext = ++depth === 1;
    else if (letter === "}" || letter === "]") depth--;
    else if (letter === ",") keyNext = depth === 1;
  }
  return undefined;
}

function closingQuote(json: string, open: number): number {
  let at = open + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at;
}

function broken(file: SafetensorsFile, why: string, cause?: unknown): UsageError {
  return new UsageError(`Cannot read ${quote(file.path)}: ${why}`, { cause });
}

// The tokens that a draft's head leads to, from the partial results that its matmul stores and from its logits.

import assert from "node:assert/strict";
import { draftChoose } from "../../kernels/sample/draft_choose.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { matmulPartialCount, matmulPartials } from "../../kernels/matmul/matmul_partials.ts";
import { PARTIAL_WORDS, type PartialKind } from "../../kernels/lib/partial.ts";
import {
  slicePartialCount,
  slicePartials,
  slicePartialWords,
} from "../../kernels/sample/slice_partials.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import { DRAFT_TOKENS, draftWords } from "../../src/model/device_layout.ts";
import type { Device } from "../gpu/device.ts";
import { uploadMatrix } from "./matrices.ts";
import { uploadQuantized } from "./quantized.ts";

const LARGE = { maxComputeInvocationsPerWorkgroup: 1024, maxComputeWorkgroupStorageSize: 32768 };
/** A GPU with much workgroup memory. */
export const HARDWARE: Tuning = tuning(false, LARGE);

/** A matmul whose outputs are logits. */
export interface Case {
  readonly matrix: Matrix;
  /** [rows, matrix.cols] */
  readonly x: Float32Array;
  /** Columns that count; default: all. */
  readonly vocab?: number;
  readonly tuning?: Tuning;
}

/** What the draft chooses for each row, and the bits of its confidence where it tells it. */
export interface Choice {
  readonly tokens: number[];
  readonly confidences: number[];
}

/** The choice of each row, from the partial results that `plan` stores. */
async function chosen(
  device: Device,
  plan: Dispatch[],
  partials: Operand,
  { kind, rows, count }: {
    readonly kind: PartialKind;
    readonly rows: number;
    readonly count: number;
  },
): Promise<Choice> {
  const drafts = device.filled(rows * draftWords(2));
  const choice = draftChoose({
    partials,
    offsets: device.words(Array(1 << 13).fill(0)),
    batchSlots: device.words([...Array(rows).keys()]),
    drafts,
  }, { kind, batch: rows, count, step: 0, maxRows: 2, lanes: 16, label: "choose" });
  await device.run([...plan, choice]);
  const words = await device.readWords(drafts);
  const all = (word: number) =>
    Array.from({ length: rows }, (_, row) => words[row * draftWords(2) + word] ?? NaN);
  return { tokens: all(DRAFT_TOKENS), confidences: all(DRAFT_TOKENS + 1) };
}

/** The choices from logits that are written, and the logits of the columns that count. */
export async function fromLogits(
  device: Device,
  { matrix, x, tuning = HARDWARE, vocab = matrix.rows }: Case,
): Promise<{ readonly tokens: number[]; readonly logits: Float32Array[] }> {
  const rows = x.length / matrix.cols;
  const logits = device.filled(rows * matrix.rows);
  const partials = device.filled(rows * slicePartialWords(vocab));
  const shape = { rows, tuning, label: "head" };
  const kind = "argmax";
  const slices = { kind, rows, vocab, stride: matrix.rows, lanes: 16, label: "partials" } as const;
  const plan = [
    ...matmul({ matrix, x: device.floats(x), out: logits }, { ...shape, epilogue: "store" }),
    slicePartials({ logits, partials }, slices),
  ];
  const { tokens } = await chosen(device, plan, partials, {
    kind,
    rows,
    count: slicePartialCount(vocab),
  });
  const values = await device.readFloats(logits);
  const row = (r: number) => values.subarray(r * matrix.rows, r * matrix.rows + vocab);
  return { tokens, logits: tokens.map((_, r) => row(r)) };
}

/** From partial results of the matmul; all of them are made, and nothing else. */
export async function fromPartials(
  device: Device,
  { matrix, x, tuning = HARDWARE, vocab = matrix.rows }: Case,
  kind: PartialKind = "argmax",
): Promise<Choice> {
  const rows = x.length / matrix.cols;
  const count = matmulPartialCount(matrix, { rows, tuning });
  const words = PARTIAL_WORDS[kind] * rows * count;
  const UNTOUCHED = 0xffffffff; // better than any argmax
  const partials = device.words(Array(words + 8).fill(UNTOUCHED));
  const shape = { kind, rows, tuning, vocab, label: "head" };
  const plan = matmulPartials({ matrix, x: device.floats(x), partials }, shape);
  const choice = await chosen(device, plan, partials, { kind, rows, count });
  const rest = (await device.readWords(partials)).subarray(words);
  assert.ok(rest.every((word) => word === UNTOUCHED));
  return choice;
}

/** Uploads the matrix in shards of these rows. */
export function matrixOf(
  device: Device,
  values: Float32Array,
  cols: number,
  shards: readonly number[],
): Matrix {
  return uploadMatrix(device, values, { format: "bf16", cols, lanes: HARDWARE.lanes, shards });
}

/** Quantized, in shards of these rows. */
export function quantized(
  device: Device,
  values: Float32Array,
  { format, cols, shards }: {
    readonly format: "q8" | "q4";
    readonly cols: number;
    readonly shards: readonly number[];
  },
): Matrix {
  let first = 0;
  const parts = shards.map((rows) => {
    const part = values.subarray(first * cols, (first + rows) * cols);
    const matrix = uploadQuantized(device, part, { format, cols, most: HARDWARE.lanes });
    const at = first;
    first += rows;
    return { ...matrix, shards: matrix.shards.map((shard) => ({ ...shard, first: at })) };
  });
  const [whole] = parts;
  assert.ok(whole);
  return { ...whole, rows: first, shards: parts.flatMap((part) => part.shards) };
}

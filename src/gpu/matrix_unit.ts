/** Matrix units: what subgroups of an adapter multiply in one instruction. */

import { UsageError } from "../errors.ts";

/** The WebGPU feature, Chromium's until WebGPU has one. */
export const MATRIX_FEATURE = "chromium-experimental-subgroup-matrix";

/** The variable that says whether matrix units are used. */
const VARIABLE = "EYRIE_MATRIX_UNITS";

/** The variable that says whether attention is computed on them. */
const ATTENTION_VARIABLE = "EYRIE_ATTENTION_UNITS";

const CHOICES = ["auto", "on", "off"] as const;

/**
 * Contexts up to here are left to the other kernels: on an H200 a single token's attention takes 1.7 times as long on
 * units, a prompt's 0.42, so that units are faster where prompts are many times as long as answers.
 */
const SHORT_CONTEXT = 32768;

/**
 * Whether matrix units are to be used: "on" and "off" are what they say. Default: except on a software
 * adapter, which plays a product of tiles element by element: there the other kernels are faster.
 *
 * @param value the variable's. @throws UsageError on another one.
 */
export function wantsUnits(
  software: boolean,
  value: string | undefined = Deno.env.get(VARIABLE),
): boolean {
  const choice = choiceOf(VARIABLE, value);
  return choice === "auto" ? !software : choice === "on";
}

/**
 * Whether attention is to be computed on matrix units: "on" and "off" are what they say. Default: where
 * sequences may be long, whose prompts are then faster and single tokens slower.
 *
 * @param contextLength tokens that a sequence may hold. @param value the variable's.
 * @throws UsageError on another value.
 */
export function wantsAttentionUnits(
  contextLength: number,
  value: string | undefined = Deno.env.get(ATTENTION_VARIABLE),
): boolean {
  const choice = choiceOf(ATTENTION_VARIABLE, value);
  return choice === "auto" ? contextLength > SHORT_CONTEXT : choice === "on";
}

function choiceOf(variable: string, value: string | undefined): typeof CHOICES[number] {
  const choice = CHOICES.find((one) => one === (value || "auto"));
  if (choice === undefined) {
    throw new UsageError(`Cannot use ${variable} "${value}": it is ${CHOICES.join(", ")}`);
  }
  return choice;
}

/** Fewest requests at a time for which quantized matrices go to matrix units. */
const QUANTIZED_BATCH = 16;

/**
 * Whether quantized matrices go to matrix units, which take them at any number of rows or at none: they are
 * faster there in prompts and at many rows, and slower at one. "on" is that they do; default: where an
 * engine answers several requests at a time.
 *
 * @param batch most of them. @param value the variable's. @throws UsageError as `wantsUnits`.
 */
export function takesQuantized(
  batch: number,
  value: string | undefined = Deno.env.get(VARIABLE),
): boolean {
  return takesQuantizedExperts(value) || batch >= QUANTIZED_BATCH;
}

/**
 * Whether quantized experts go to matrix units: with "on" alone. A round of many requests has few rows for each
 * expert, so that only prompts would gain. Those of 4-bit floats (MXFP4, NVFP4) go there in any case.
 */
export function takesQuantizedExperts(value: string | undefined = Deno.env.get(VARIABLE)): boolean {
  return wantsUnits(true, value);
}

/** A product [m, k] x [k, n] of f16 numbers that is added to [m, n] f32, by `lanes` lanes together. */
export interface MatrixUnit {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly lanes: number;
  /** Fewer columns that a unit of the same m and k has: for one row. Absent where there is none. */
  readonly narrow?: number;
}

/** An entry of the list in Dawn's `GPUAdapterInfo`; other implementations have no such field. */
interface MatrixConfig {
  readonly M: number;
  readonly N: number;
  readonly K: number;
  readonly componentType: string;
  readonly resultComponentType: string;
}

/**
 * The adapter's largest unit of f16 products and f32 sums; undefined where it has none, or subgroups
 * of several sizes, of which a kernel would not know which it gets.
 */
export function matrixUnit(
  info: GPUAdapterInfo & { readonly subgroupMatrixConfigs?: Iterable<MatrixConfig> },
): MatrixUnit | undefined {
  const { subgroupMatrixConfigs = [], subgroupMinSize, subgroupMaxSize } = info;
  if (subgroupMinSize !== subgroupMaxSize) return undefined;
  const units = [...subgroupMatrixConfigs]
    .filter(({ componentType, resultComponentType }) =>
      componentType === "f16" && resultComponentType === "f32"
    )
    .map(({ M: m, N: n, K: k }) => ({ m, n, k, lanes: subgroupMaxSize }))
    .toSorted((a, b) => b.m * b.n * b.k - a.m * a.n * a.k);
  const [unit] = units;
  const narrow = units.findLast(({ m, n, k }) =>
    m === unit?.m && k === unit.k && n < unit.n && n % 8 === 0
  );
  return unit && narrow ? { ...unit, narrow: narrow.n } : unit;
}

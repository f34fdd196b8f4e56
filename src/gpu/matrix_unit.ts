/** Matrix units: hardware that multiplies a small matrix product per subgroup instruction. */

import { UsageError } from "../errors.ts";

/** The WebGPU feature, Chromium's until WebGPU has one. */
export const MATRIX_FEATURE = "chromium-experimental-subgroup-matrix";

/** The variable that says whether matrix units are used. */
const VARIABLE = "EYRIE_MATRIX_UNITS";

/** The variable that says whether attention is computed on them. */
const ATTENTION_VARIABLE = "EYRIE_ATTENTION_UNITS";

const CHOICES = ["auto", "on", "off"] as const;

/**
 * Up to this context length attention uses the other kernels. On an H200 a single token's attention takes 1.7 times as
 * long on matrix units, a prompt's 0.42 times, so units are faster where prompts are many times as long as answers.
 */
const SHORT_CONTEXT = 32768;

/**
 * Whether matrix units are to be used. Default: on every adapter but a software one, which emulates a
 * product of tiles element by element, so that the other kernels are faster.
 *
 * @param value of the variable: "on", "off" or "auto". @throws UsageError on another value.
 */
export function wantsUnits(
  software: boolean,
  value: string | undefined = Deno.env.get(VARIABLE),
): boolean {
  const choice = choiceOf(VARIABLE, value);
  return choice === "auto" ? !software : choice === "on";
}

/**
 * Whether attention is to be computed on matrix units. Default: where sequences may be long. Their prompts
 * are then faster, and single tokens slower.
 *
 * @param contextLength tokens that a sequence may hold. @param value of the variable: "on", "off" or "auto".
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
 * Whether matrix units multiply quantized matrices, which must be so for every number of rows or for none.
 * Units are faster for prompts and for many rows, and slower for one row. "on": always. Otherwise where the
 * engine answers many requests at a time.
 *
 * @param batch most requests at a time. @param value of the variable. @throws UsageError as `wantsUnits`.
 */
export function takesQuantized(
  batch: number,
  value: string | undefined = Deno.env.get(VARIABLE),
): boolean {
  return takesQuantizedExperts(value) || batch >= QUANTIZED_BATCH;
}

/**
 * Whether matrix units multiply quantized experts: only with "on". A round of many requests has few rows for each
 * expert, so only prompts would be faster. Experts of 4-bit floats (MXFP4, NVFP4) always run on matrix units.
 */
export function takesQuantizedExperts(value: string | undefined = Deno.env.get(VARIABLE)): boolean {
  return wantsUnits(true, value);
}

/** One matrix instruction: f16 [m, k] x [k, n], added to f32 [m, n], by a subgroup of `lanes` lanes. */
export interface MatrixUnit {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly lanes: number;
  /** The n of a narrower instruction with the same m and k, used for few rows. Absent where there is none. */
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
 * Returns the adapter's largest unit of f16 products and f32 sums. Returns undefined where it has none, or
 * has subgroups of several sizes: a kernel could not know which size it gets.
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

/** Matrix units: hardware that multiplies a small matrix product per subgroup instruction. */

import { UsageError } from "../errors.ts";

/** The WebGPU feature, Chromium's until WebGPU has one. */
export const MATRIX_FEATURE = "chromium-experimental-subgroup-matrix";

/** The variable that says whether matrix units are used, and for what. */
const VARIABLE = "EYRIE_MATRIX_UNITS";

const USES = ["auto", "on", "prompts", "bf16", "off"] as const;

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
 * @param value of the variable: "auto", "off", or for what they are used. @throws UsageError on another value.
 */
export function wantsUnits(
  software: boolean,
  value: string | undefined = Deno.env.get(VARIABLE),
): boolean {
  const use = useOf(value);
  return use === "auto" ? !software : use !== "off";
}

function useOf(value: string | undefined): typeof USES[number] {
  return choiceOf(VARIABLE, value, USES);
}

function choiceOf<Choice extends string>(
  variable: string,
  value: string | undefined,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((one) => one === (value || "auto"));
  if (choice === undefined) {
    throw new UsageError(`Cannot use ${variable} "${value}": it is ${choices.join(", ")}`);
  }
  return choice;
}

/** Fewest requests at a time for which matrices go to matrix units in rounds too, whatever the model. */
const MANY_REQUESTS = 16;

/** Forwards in which matrix units multiply a matrix. */
export type UnitForwards = "all" | "prompts" | "none";

/** Forwards in which matrix units multiply the matrices of a model, by their kind. */
export interface UnitsByKind {
  /** Matrices in bf16, dense ones and experts. */
  readonly bf16: UnitForwards;
  /** Quantized matrices. */
  readonly dense: UnitForwards;
  readonly experts: UnitForwards;
  /** Experts of 4-bit floats (MXFP4, NVFP4). */
  readonly fp4Experts: UnitForwards;
}

/**
 * Forwards in which matrix units multiply the matrices of a target. Units are faster for prompts and for many rows, and
 * slower for one row, so by default prompts use them, and rounds only where the engine answers many requests at a time.
 * Quantized experts have few rows each even then; of these only 4-bit floats are faster on units. A model in bf16
 * without experts uses units in rounds too, because eight rows of a draft then cost little more than one.
 *
 * Nothing here depends on the draft, so that the text does not either.
 *
 * @param of.batch most requests at a time. @param of.mixture whether the target has experts.
 * @param value of the variable. @throws UsageError as `wantsUnits`.
 */
export function targetUnits(
  { batch, mixture }: { readonly batch: number; readonly mixture: boolean },
  value: string | undefined = Deno.env.get(VARIABLE),
): UnitsByKind {
  const use = useOf(value);
  const all = (forwards: UnitForwards) => ({
    bf16: forwards,
    dense: forwards,
    experts: forwards,
    fp4Experts: forwards,
  });
  switch (use) {
    case "on":
      return all("all");
    case "off":
      return all("none");
    case "bf16":
      return { ...all("none"), bf16: "all" };
    case "prompts":
      return all("prompts");
    case "auto":
      return batch < MANY_REQUESTS
        ? { ...all("prompts"), bf16: mixture ? "prompts" : "all" }
        : { ...all("all"), experts: "prompts" };
  }
}

/** The same for a draft, which has the same kernels in all forwards. */
export function draftUnits({ bf16, dense, experts, fp4Experts }: UnitsByKind): UnitsByKind {
  const inRounds = (forwards: UnitForwards) => forwards === "prompts" ? "none" : forwards;
  return {
    bf16: bf16 === "prompts" ? "all" : bf16,
    dense: inRounds(dense),
    experts: inRounds(experts),
    fp4Experts: inRounds(fp4Experts),
  };
}

/**
 * Forwards in which attention is computed on matrix units. Default: those of prompts if these have kernels of their own
 * anyway. Otherwise all where sequences may be long: their prompts are then faster, and single tokens slower.
 *
 * @param contextLength tokens that a sequence may hold.
 * @param promptKernels whether forwards of prompts multiply other matrices on units than rounds do.
 * @param value of the variable: "on", "off" or "auto". @throws UsageError on another value.
 */
export function attentionForwards(
  { contextLength, promptKernels }: {
    readonly contextLength: number;
    readonly promptKernels: boolean;
  },
  value: string | undefined = Deno.env.get(ATTENTION_VARIABLE),
): UnitForwards {
  const choice = choiceOf(ATTENTION_VARIABLE, value, CHOICES);
  if (choice !== "auto") return choice === "on" ? "all" : "none";
  if (promptKernels) return "prompts";
  return contextLength > SHORT_CONTEXT ? "all" : "none";
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

/** The fields of an adaptive config: how each is read and what is refused. */
import { PolicyError } from "./policy.ts";
import type { DraftShape } from "./round_shape.ts";
import { treeShape } from "./tree_shape.ts";

/** An adaptive config or argument that cannot be used. */
export class AdaptiveConfigError extends PolicyError {
  override readonly name = "AdaptiveConfigError";
}

export type Json = Readonly<Record<string, unknown>>;

/** Numbers of a batch-size entry. */
export interface NumberFields {
  /** `ema_alpha`: weight of the newest round. */
  readonly emaAlpha: number;
  /** `update_interval`: rounds between decisions. */
  readonly updateInterval: number;
  /** `warmup_batches`: rounds before which nothing is decided. */
  readonly warmupBatches: number;
  /** `down_hysteresis`, added to the threshold below which steps fall. */
  readonly downHysteresis: number;
  /** `up_hysteresis`, added to the threshold above which steps rise. */
  readonly upHysteresis: number;
  /** `ceiling_coeff`: when not rising, at most ceil(EMA * coefficient) steps; 0 = off. */
  readonly ceilingCoeff: number;
}

interface NumberRule {
  readonly fallback: number;
  readonly integer?: true;
  readonly min?: number;
  readonly max?: number;
}

/** Defaults of `AdaptiveSpeculativeParams`. SGLang checks no ranges; these are where it works. */
export const NUMBERS = {
  ema_alpha: { fallback: 0.2, min: 0, max: 1 },
  update_interval: { fallback: 5, integer: true, min: 1 },
  warmup_batches: { fallback: 10, integer: true, min: 0 },
  down_hysteresis: { fallback: -0.25 },
  up_hysteresis: { fallback: 0 },
  ceiling_coeff: { fallback: 0 },
} as const;
NUMBERS satisfies Readonly<Record<string, NumberRule>>;

/** SGLang takes `true` for 1. */
export function candidates(
  value: unknown,
  { min, where }: { readonly min: 0 | 1; readonly where: string },
): readonly number[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const steps = items.map((item) => typeof item === "boolean" ? Number(item) : item);
  if (steps.length > 0 && steps.every((step) => isIntegerFrom(step, min))) {
    return ascending(steps);
  }
  throw new AdaptiveConfigError(
    `${where}candidate_steps must be a list of ${
      min === 0 ? "non-negative" : "positive"
    } integers, ` +
      `got ${shown(value)}`,
  );
}

/** Trees of a bracket, [steps, topk, rows] each: one for each number of steps. */
export function trees(value: unknown, where: string): readonly DraftShape[] {
  if (value === undefined) return [];
  const items: readonly unknown[] = Array.isArray(value) ? value : [undefined];
  const found = items.map((item): DraftShape => {
    const numbers: readonly unknown[] = Array.isArray(item) ? item : [];
    const [depth, width, rows] = numbers;
    if (
      numbers.length === 3 && isIntegerFrom(depth, 1) && isIntegerFrom(width, 2) &&
      isIntegerFrom(rows, 2)
    ) {
      return treeShape({ depth, width, rows }, where);
    }
    throw new AdaptiveConfigError(
      `${where}candidate_trees must be a list of [steps, topk, draft tokens], e.g. [[5, 4, 8]], ` +
        `got ${shown(value)}`,
    );
  });
  const twice = found.find(({ depth }, i) => found.findIndex((one) => one.depth === depth) < i);
  if (twice === undefined) return Object.freeze(found);
  throw new AdaptiveConfigError(`${where}candidate_trees has two trees of ${twice.depth} steps`);
}

export function numbers(json: Json, where: string): NumberFields {
  const read = (key: keyof typeof NUMBERS) => number(json, key, where);
  return {
    emaAlpha: read("ema_alpha"),
    updateInterval: read("update_interval"),
    warmupBatches: read("warmup_batches"),
    downHysteresis: read("down_hysteresis"),
    upHysteresis: read("up_hysteresis"),
    ceilingCoeff: read("ceiling_coeff"),
  };
}

function number(json: Json, key: keyof typeof NUMBERS, where: string): number {
  const rule: NumberRule = NUMBERS[key];
  const { fallback, integer = false, min = -Infinity, max = Infinity } = rule;
  const value = Object.hasOwn(json, key) ? json[key] : fallback;
  const isNumber = typeof value === "number" && Number.isFinite(value);
  if (isNumber && value >= min && value <= max && (!integer || Number.isSafeInteger(value))) {
    return value;
  }
  const kind = integer ? "an integer" : "a number";
  const range = max < Infinity ? ` from ${min} to ${max}` : ` of at least ${min}`;
  throw new AdaptiveConfigError(
    `${where}${key} must be ${kind}${min > -Infinity ? range : ""}, got ${shown(value)}`,
  );
}

export function ascending(steps: readonly number[]): readonly number[] {
  return Object.freeze([...new Set(steps)].toSorted((a, b) => a - b));
}

function isIntegerFrom(value: unknown, min: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= min;
}

/** A value as the file has it. */
export function shown(value: unknown): string {
  return JSON.stringify(value) ?? "nothing";
}

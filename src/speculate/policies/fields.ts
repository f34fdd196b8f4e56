import { PolicyError } from "../policy.ts";
import { MAX_STEPS } from "../round_shape.ts";

/**
 * A policy's options as a plain object with these keys at most.
 *
 * @throws PolicyError naming what is wrong.
 */
export function readOptions<Key extends string>(
  given: unknown,
  known: readonly Key[],
): { readonly [key in Key]?: unknown } {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new PolicyError("its options must be an object");
  }
  const unknown = Object.keys(given).find((key) => !known.some((each) => each === key));
  if (unknown === undefined) return given;
  throw new PolicyError(`unknown option "${unknown}", known: ${known.join(", ")}`);
}

/** Default depths that a policy chooses among. */
export const DEFAULT_STEPS: readonly number[] = [0, 1, 2, 3, 5, 7];

/**
 * The option `steps`: the depths to choose among, rising and distinct. A number alone is a list of one.
 *
 * @throws PolicyError for anything but distinct integers from 0 to MAX_STEPS.
 */
export function stepsOf(given: unknown, absent: readonly number[] = DEFAULT_STEPS): number[] {
  if (given === undefined) return [...absent];
  const steps: readonly unknown[] = Array.isArray(given) ? given : [given];
  const fits = (each: unknown) =>
    typeof each === "number" && Number.isInteger(each) && each >= 0 && each <= MAX_STEPS;
  if (steps.length === 0 || !steps.every(fits) || new Set(steps).size < steps.length) {
    throw new PolicyError(
      `steps must be distinct integers from 0 to ${MAX_STEPS}, got ${JSON.stringify(given)}`,
    );
  }
  return steps.map(Number).toSorted((a, b) => a - b);
}

/** What a number may be. */
export interface NumberRange {
  readonly absent: number;
  readonly min: number;
  readonly max: number;
  readonly integer?: true;
}

/** An option that is a number. @throws PolicyError for anything else, and outside its range. */
export function numberOf(
  given: unknown,
  name: string,
  { absent, min, max, integer }: NumberRange,
): number {
  if (given === undefined) return absent;
  if (
    typeof given === "number" && given >= min && given <= max &&
    (integer === undefined || Number.isInteger(given))
  ) return given;
  const what = integer === undefined ? "a number" : "an integer";
  const range = max === Infinity ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new PolicyError(`${name} must be ${what} ${range}, got ${JSON.stringify(given)}`);
}

/** The option `num_steps` of policies that cut chains: drafts of each request, by default 7. @throws PolicyError */
export function numStepsOf(given: unknown): number {
  return numberOf(given, "num_steps", { absent: 7, min: 1, max: MAX_STEPS, integer: true });
}

/** An option that is one of these words. @throws PolicyError for any other. */
export function wordOf<Word extends string>(
  given: unknown,
  name: string,
  words: readonly [absent: Word, ...others: Word[]],
): Word {
  if (given === undefined) return words[0];
  const found = words.find((word) => word === given);
  if (found !== undefined) return found;
  throw new PolicyError(
    `${name} must be one of ${words.join(", ")}, got ${JSON.stringify(given)}`,
  );
}

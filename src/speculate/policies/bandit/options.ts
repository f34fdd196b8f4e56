import { DEFAULT_NUM_STEPS } from "../../fixed_shape.ts";
import {
  DEFAULT_STEPS,
  numberOf,
  type NumberRange,
  readOptions,
  stepsOf,
  wordOf,
} from "../fields.ts";
import type { ExplorationSchedule } from "./bins.ts";

/** Default number of rounds that an arm is kept for: they are launched together. */
export const HOLD: NumberRange = { absent: 4, min: 1, max: 1024, integer: true };

/** Weight of what was known before a round, where a policy forgets nothing by default. */
export const NO_DISCOUNT: NumberRange = { absent: 1, min: 0.5, max: 1 };

/** `steps`, and numbers by their names. */
export type NumberOptions<Name extends string> =
  & { readonly steps: readonly number[] }
  & { readonly [name in Name]: number };

/** Options with an exploration schedule in addition to the numbers. */
export type ExploringOptions<Name extends string> = NumberOptions<Name> & {
  readonly exploration: ExplorationSchedule;
};

/** Reads options that are `steps` and numbers. @throws PolicyError for any other, or out of range. */
export function readNumbers<Name extends string>(
  given: unknown,
  ranges: Readonly<Record<Name, NumberRange>>,
): NumberOptions<Name> {
  return fields(readOptions(given, ["steps", ...namesOf(ranges)]), ranges);
}

/** Reads options that are `steps`, numbers and `exploration`. @throws PolicyError as `readNumbers`. */
export function readExploring<Name extends string>(
  given: unknown,
  ranges: Readonly<Record<Name, NumberRange>>,
  schedules: readonly [absent: ExplorationSchedule, ...others: ExplorationSchedule[]],
): ExploringOptions<Name> {
  const options = readOptions(given, ["steps", "exploration", ...namesOf(ranges)]);
  return {
    ...fields(options, ranges),
    exploration: wordOf(options.exploration, "exploration", schedules),
  };
}

/** The steps to begin with. */
export function firstSteps(numSteps: number | undefined): number {
  return numSteps ?? DEFAULT_NUM_STEPS;
}

function fields<Name extends string>(
  options: { readonly [key in Name | "steps"]?: unknown },
  ranges: Readonly<Record<Name, NumberRange>>,
): NumberOptions<Name> {
  const numbers = namesOf(ranges).map((
    name,
  ) => [name, numberOf(options[name], name, ranges[name])]);
  return { ...Object.fromEntries(numbers), steps: stepsOf(options.steps, DEFAULT_STEPS) };
}

function namesOf<Name extends string>(ranges: Readonly<Record<Name, NumberRange>>): Name[] {
  return Object.keys(ranges) as Name[];
}

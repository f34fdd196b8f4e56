import { PolicyError } from "../policy.ts";

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

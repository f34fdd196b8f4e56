import { PolicyError } from "../../policy.ts";
import { MOST_STEPS } from "../../round_shape.ts";

/** Default number of drafts for policies that cut them afterwards. */
export const DEEPEST_STEPS = 7;

/** The option `num_steps`: drafts of each request. @throws PolicyError for what is no depth. */
export function depthOf(given: unknown, absent: number): number {
  if (given === undefined) return absent;
  if (typeof given === "number" && Number.isInteger(given) && given >= 1 && given <= MOST_STEPS) {
    return given;
  }
  throw new PolicyError(
    `num_steps must be an integer from 1 to ${MOST_STEPS}, got ${JSON.stringify(given)}`,
  );
}

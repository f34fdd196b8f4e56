import { MAX_STEPS } from "../../../speculate/round_shape.ts";
import { refuseImpossibleBench } from "./bench_refusals.ts";

/** What `eyrie profile` measures. */
export const PROFILE = {
  maxBatch: {
    flag: "--max-batch",
    common: true,
    type: "integer",
    min: 1,
    max: 128,
    default: 8,
    help: "maximum number of requests that run at a time; smaller batches are measured too",
    example: "--max-batch 32",
  },
  numSteps: {
    flag: "--num-steps",
    common: true,
    type: "integer",
    min: 0,
    max: MAX_STEPS as number,
    help: "maximum number of draft steps",
    absent: "7, or 0 if there is no draft",
    example: "--num-steps 5",
  },
  seconds: {
    flag: "--duration",
    type: "number",
    min: 0,
    above: true,
    max: 3600,
    default: 12,
    help:
      "seconds that measuring may take; costs that there is no time to measure are interpolated and listed",
    example: "--duration 60",
  },
} as const;

export const PROFILE_OUTPUT = {
  output: {
    flag: "--output",
    common: true,
    type: "file",
    help: "file for the cost table in JSON, which --costs of other commands reads",
    absent: "it is stored in the cache, where other commands find it",
    example: "--output cost.json",
  },
} as const;

/** Flags of `profile` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleProfile(given: Readonly<Record<string, unknown>>): void {
  const { numSteps, ...others } = given;
  const axis = numSteps === undefined ? {} : { numSteps: [numSteps] };
  refuseImpossibleBench({ ...others, ...axis });
}

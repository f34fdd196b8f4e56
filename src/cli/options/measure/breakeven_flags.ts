import { UsageError } from "../../../errors.ts";
import { clash } from "../clash.ts";
import { BENCH_AXES } from "./bench_flags.ts";
import { refuseImpossibleBench } from "./bench_refusals.ts";

/** The terms of the equation. */
export const BREAKEVEN = {
  alpha: {
    flag: "--alpha",
    common: true,
    type: "number",
    min: 0,
    max: 1,
    help: "alpha: probability that a draft token is accepted if all before it were",
    absent: "none; --measure measures it",
    example: "--alpha 0.6",
  },
  draftCost: {
    flag: "--draft-cost",
    common: true,
    type: "number",
    min: 0,
    max: 1000,
    help: "c: time of one draft step divided by that of a plain decoding step",
    absent: "none; --measure measures it",
    example: "--draft-cost 0.05",
  },
  verifyCost: {
    flag: "--verify-cost",
    common: true,
    type: "number",
    min: 0,
    above: true,
    max: 1000,
    help: "v: time of a verification divided by that of a plain decoding step",
    absent: "1; --measure measures it",
    example: "--verify-cost 1.2",
  },
  steps: {
    flag: "--num-steps",
    common: true,
    type: "axis",
    min: 1,
    max: 64,
    whole: true,
    help: "K: tokens that are drafted in a round",
    absent: "1-16, or 1-7 with --measure",
    example: "--num-steps 1-16",
  },
} as const;

/** How the terms are measured. */
export const BREAKEVEN_MEASURE = {
  measure: {
    flag: "--measure",
    common: true,
    type: "switch",
    help: "measure alpha, c and v for the model on this machine",
    example: "--measure",
  },
  batchSize: {
    flag: "--batch-sizes",
    common: true,
    type: "integer",
    min: 1,
    max: 128,
    default: 1,
    help: "requests that run at a time; the more there are, the more verification costs",
    example: "--batch-sizes 8",
  },
  outputTokens: {
    flag: "--output-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000,
    default: 128,
    help: "maximum tokens of an answer",
    example: "--output-tokens 64",
  },
  repeat: {
    flag: "--repeat",
    type: "integer",
    min: 1,
    max: 1000,
    default: 6,
    help: "number of blocks, each of which measures every number of steps once in random order",
    example: "--repeat 10",
  },
} as const;

export const BREAKEVEN_OUTPUT = {
  format: {
    flag: "--format",
    common: true,
    type: "choice",
    choices: ["text", "json", "html"],
    help: "output format; html is a page with sliders",
    absent: "text",
    example: "--format html",
  },
  output: {
    flag: "--output",
    common: true,
    type: "file",
    help: "file for the results; the table is printed to standard output as well",
    absent: "standard output",
    example: "--format html --output breakeven.html",
  },
} as const;

/** Flags of `breakeven` that are of use without `--measure`. */
const ALWAYS = new Set([
  ...Object.keys(BREAKEVEN),
  ...Object.keys(BREAKEVEN_OUTPUT),
  "force",
  "quiet",
]);

/** Flags of `breakeven` that contradict each other. `given` has only what was typed, no defaults. */
export function refuseImpossibleBreakeven(
  given: Readonly<Record<string, unknown>>,
  flagOf: (key: string) => string,
): void {
  const { measure, steps } = given;
  if (measure !== true) {
    const [other] = Object.keys(given).filter((key) => !ALWAYS.has(key));
    if (other === undefined) return;
    throw new UsageError(`Cannot use "${flagOf(other)}": it needs --measure`);
  }
  for (const key of ["alpha", "draftCost", "verifyCost"] as const) {
    if (given[key] === undefined) continue;
    clash(BREAKEVEN[key].flag, "--measure", "it is measured");
  }
  const most = BENCH_AXES.numSteps.max;
  if (Array.isArray(steps) && steps.some((one) => one > most)) {
    clash(`--num-steps ${steps}`, "--measure", `allowed is integers from 1 to ${most}`);
  }
  refuseImpossibleBench(given);
}

import { MAX_ARRIVALS } from "../../../arrivals/arrival.ts";
import { UsageError } from "../../../errors.ts";
import { clash } from "../clash.ts";

/**
 * When requests arrive and how long they are: what the flags of `bench load` and `simulate` have in
 * common. Their texts, and defaults that differ, are each command's own.
 */
const ARRIVALS = {
  requestRate: { flag: "--request-rate", common: true, type: "text" },
  burstiness: {
    flag: "--burstiness",
    type: "number",
    min: 0,
    above: true,
    max: 1_000_000,
    default: 1,
    example: "--burstiness 0.25",
  },
  trace: {
    flag: "--trace",
    type: "file",
    absent: "none",
    example: "--trace AzureLLMInferenceTrace_conv.csv",
  },
  concurrency: { flag: "--concurrency", common: true, min: 1, max: 4096 },
  numRequests: {
    flag: "--num-requests",
    type: "integer",
    min: 1,
    max: MAX_ARRIVALS as number,
  },
  duration: {
    flag: "--duration",
    common: true,
    type: "number",
    min: 0,
    above: true,
    max: 1_000_000,
    absent: "no limit: --num-requests ends the arrivals",
    example: "--duration 180",
  },
  promptTokens: {
    flag: "--prompt-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000,
    example: "--prompt-tokens 512",
  },
  outputTokens: {
    flag: "--output-tokens",
    type: "integer",
    min: 1,
    max: 1_000_000,
    example: "--output-tokens 64",
  },
} as const;

/** A command's rows: what they have in common with the other's, and what it adds. */
export type ArrivalFlags<Own> = {
  readonly [K in keyof Own]:
    & Own[K]
    & (K extends keyof typeof ARRIVALS ? typeof ARRIVALS[K] : unknown);
};

/** Completes a command's rows, in its order; one that the commands do not share stays as it is. */
export function arrivalFlags<Own extends Readonly<Record<string, object>>>(
  own: Own,
): ArrivalFlags<Own> {
  const shared: Readonly<Record<string, object>> = ARRIVALS;
  const rows = Object.entries(own).map(([key, row]) => [key, { ...shared[key], ...row }]);
  return Object.fromEntries(rows);
}

/**
 * Refuses flags of arrivals that contradict each other, by the rules that the commands share.
 *
 * @param rules.loads of which one at most can be given; without any, requests arrive at a rate.
 * @param rules.ofTrace what a trace has itself, and what to give for it.
 */
export function refuseImpossibleArrivals(
  given: Readonly<Record<string, unknown>>,
  { loads, flagOf, ofTrace }: {
    readonly loads: readonly string[];
    readonly flagOf: (key: string) => string;
    readonly ofTrace: { readonly keys: readonly string[]; readonly allowed: string };
  },
): void {
  const [load, other] = loads.filter((key) => given[key] !== undefined);
  const refuse = (key: string, other: string, why: string) =>
    clash(flagOf(key), flagOf(other), why);
  if (load !== undefined && other !== undefined) refuse(load, other, "allowed is one of them");
  if (given["burstiness"] !== undefined && (load ?? "requestRate") !== "requestRate") {
    throw new UsageError('Cannot use "--burstiness": it needs --request-rate');
  }
  if (load === "concurrency" && given["duration"] !== undefined) {
    refuse("duration", "concurrency", "a closed loop ends after --num-requests");
  }
  const own = ofTrace.keys.find((key) => given[key] !== undefined);
  if (load === "trace" && own !== undefined) {
    refuse(own, "trace", `the lengths are those of the trace${ofTrace.allowed}`);
  }
}

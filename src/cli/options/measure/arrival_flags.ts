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
    max: 1_000_000,
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

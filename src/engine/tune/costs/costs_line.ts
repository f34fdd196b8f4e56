import { catchUpMs, roundMs } from "../../../speculate/costs/lookup.ts";
import type { MeasuredCosts } from "./measure.ts";

/** What was measured, in a line: rounds, and c_prefill, the draft's prefill of tokens it missed. */
export function costsLine(
  { table, seconds }: Pick<MeasuredCosts, "table" | "seconds">,
  depths: readonly number[],
): string {
  const deepest = depths.at(-1) ?? 0;
  const batches = ends(table.buckets);
  const rounds = batches.map((batch) => {
    const [plain, deep] = [0, deepest].map((steps) => roundMs(table, { batch, steps, cells: 0 }));
    const drafting = deepest > 0 ? `, ${ms(deep)} with ${deepest} drafts` : "";
    return `a round of ${batch} takes ${ms(plain)}${drafting}`;
  });
  const lags = table.catchUp.length === 0 ? [] : [
    `c_prefill is ${
      batches.map((batch) => `${ms(catchUpMs(table, 16 * batch))} for 16 tokens of ${batch}`)
        .join(", ")
    }`,
  ];
  return `costs, measured in ${seconds.toFixed(1)} s: ${[...rounds, ...lags].join("; ")}`;
}

function ends(values: readonly number[]): number[] {
  return [...new Set([values[0] ?? 1, values.at(-1) ?? 1])];
}

function ms(value: number | undefined): string {
  return `${(value ?? 0).toPrecision(3)} ms`;
}

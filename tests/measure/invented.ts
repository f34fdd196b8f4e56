import type { BenchRow } from "../../src/measure/row.ts";
import { pairedRatio } from "../../src/measure/statistics.ts";
import { sampleRows } from "./fake.ts";

const [BASE] = await sampleRows({ batch: [1], numSteps: [], blocks: 3 });

/** A row of `numSteps` with these speed-ups over plain, one for each block. Plain runs at 100 tokens/s. */
export function invented(
  numSteps: number,
  speedups: readonly number[],
  rest: Partial<BenchRow> = {},
): BenchRow {
  const logs = speedups.map(Math.log);
  const mean = 100 * speedups.reduce((sum, speedup) => sum + speedup, 0) / speedups.length;
  return {
    ...BASE as BenchRow,
    num_steps: numSteps,
    setting: numSteps === 0 ? "plain" : `${numSteps} steps`,
    setting_kind: numSteps === 0 ? "plain" : "static",
    blocks: speedups.length,
    tokens_per_second: { mean, sd: 0, samples: speedups.map((speedup) => 100 * speedup) },
    speedup: { ...pairedRatio(logs), log_ratios: logs },
    ...rest,
  };
}

/** A row of plain decoding compared with itself. */
export function noise(speedups: readonly number[], rest: Partial<BenchRow> = {}): BenchRow {
  return invented(0, speedups, { setting: "plain (A/A)", setting_kind: "plain again", ...rest });
}

export function adaptive(speedups: readonly number[], rest: Partial<BenchRow> = {}): BenchRow {
  const setting = "policy ema";
  return invented(0, speedups, { setting, setting_kind: "policy", num_steps: null, ...rest });
}

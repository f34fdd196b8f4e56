import { emitConfig as configOf, type SlotEntry } from "../speculate/emit_config.ts";
import type { BenchRow } from "./row.ts";
import { fixedWinner } from "./verdict.ts";

/** An adaptive config by smallest batch size, as `--speculative-adaptive-config` takes it. */
export type EmittedConfig = Readonly<Record<string, SlotEntry>>;

/** For each batch size what the verdict names of fixed steps and trees; 0 steps where it names none. */
export function emitConfig(rows: readonly BenchRow[]): EmittedConfig {
  const byBatch = Map.groupBy(rows, ({ batch }) => batch);
  const winners = [...byBatch].toSorted(([a], [b]) => a - b)
    .map(([batchSize, rows]) => {
      const { numSteps, tree } = fixedWinner(rows) ?? { numSteps: 0, tree: null };
      return tree ? { batchSize, steps: [], tree } : { batchSize, steps: [numSteps ?? 0] };
    });
  return configOf(winners);
}

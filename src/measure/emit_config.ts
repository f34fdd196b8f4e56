import { emitConfig as configOf, type SlotEntry } from "../speculate/emit_config.ts";
import type { BenchRow } from "./row.ts";
import { fixedWinner } from "./verdict.ts";

/** An adaptive config, keyed by the smallest batch size of each slot, as `--speculative-adaptive-config` reads it. */
export type EmittedConfig = Readonly<Record<string, SlotEntry>>;

/** The fastest fixed steps or tree for each batch size, as the verdict names it; 0 steps if it names none. */
export function emitConfig(rows: readonly BenchRow[]): EmittedConfig {
  const byBatch = Map.groupBy(rows, ({ batch }) => batch);
  const winners = [...byBatch].toSorted(([a], [b]) => a - b)
    .map(([batchSize, rows]) => {
      const { numSteps, tree } = fixedWinner(rows) ?? { numSteps: 0, tree: null };
      return tree ? { batchSize, steps: [], tree } : { batchSize, steps: [numSteps ?? 0] };
    });
  return configOf(winners);
}

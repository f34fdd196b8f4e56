import { emitConfig as configOf, type SlotEntry } from "../speculate/emit_config.ts";
import type { BenchRow } from "./row.ts";
import { fixedSteps } from "./verdict.ts";

/** An adaptive config by smallest batch size, as `--speculative-adaptive-config` takes it. */
export type EmittedConfig = Readonly<Record<string, SlotEntry>>;

/** For each batch size the fixed steps that the verdict names; 0, no drafting, where it names none. */
export function emitConfig(rows: readonly BenchRow[]): EmittedConfig {
  const byBatch = Map.groupBy(rows, ({ batch }) => batch);
  const winners = [...byBatch].toSorted(([a], [b]) => a - b)
    .map(([batchSize, rows]) => ({ batchSize, steps: [fixedSteps(rows)] }));
  return configOf(winners);
}

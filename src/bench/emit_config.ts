import { emitConfig as configOf, type SlotEntry } from "../speculate/emit_config.ts";
import { type BenchRow, isStatic } from "./row.ts";
import { average, standardError } from "./statistics.ts";

/** An adaptive config by smallest batch size, as `--speculative-adaptive-config` takes it. */
export type EmittedConfig = Readonly<Record<string, SlotEntry>>;

/**
 * For each batch size the steps that were fastest. Where fewer steps are within one standard error
 * of the paired difference they win (the one-standard-error rule): less work at the same speed. All
 * cases of a batch size (depths, temperatures, ...) count alike. 0 = no drafting.
 */
export function emitConfig(rows: readonly BenchRow[]): EmittedConfig {
  const byBatch = Map.groupBy(rows.filter(isStatic), ({ batch }) => batch);
  const winners = [...byBatch].toSorted(([a], [b]) => a - b)
    .map(([batchSize, rows]) => ({ batchSize, steps: [winner(rows)] }));
  return configOf(winners);
}

/** The log-ratios of one setting by case. */
type Ratios = ReadonlyMap<string, readonly number[]>;

function winner(rows: readonly BenchRow[]): number {
  const bySteps = [...Map.groupBy(rows, ({ num_steps }) => num_steps ?? 0)]
    .toSorted(([a], [b]) => a - b)
    .map(([steps, rows]) => ({ steps, ratios: ratiosOf(rows) }));
  const cases = Math.max(...bySteps.map(({ ratios }) => ratios.size));
  // A setting that was not measured in every case cannot be compared.
  const whole = bySteps.filter(({ ratios }) => ratios.size === cases);
  const mean = ({ ratios }: { ratios: Ratios }) => average([...ratios.values()].map(average));
  const best = whole.toSorted((a, b) => mean(b) - mean(a))[0];
  if (best === undefined) return 0;
  return whole.find(({ ratios }) => within(ratios, best.ratios))?.steps ?? best.steps;
}

function ratiosOf(rows: readonly BenchRow[]): Ratios {
  return new Map(rows.map((row) => {
    const { workload, prompt_tokens, output_tokens, temperature, depth, rounds_per_sync } = row;
    const key = [workload, prompt_tokens, output_tokens, temperature, depth, rounds_per_sync]
      .join("|");
    return [key, row.speedup.log_ratios];
  }));
}

function within(own: Ratios, best: Ratios): boolean {
  if (own === best) return true;
  const losses = [...best].flatMap(([key, ratios]) =>
    ratios.map((ratio, block) => ratio - (own.get(key)?.[block] ?? NaN))
      .filter((loss) => !Number.isNaN(loss))
  );
  return average(losses) <= (standardError(losses) ?? 0);
}

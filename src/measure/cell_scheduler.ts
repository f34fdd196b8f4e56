import type { LocalEngine } from "../engine/open.ts";
import { type EngineLoop, engineLoop } from "../engine/schedule/loop.ts";
import type { PrefillSample } from "../engine/schedule/prefill.ts";
import { cacheOf } from "../engine/schedule/prefix_cache.ts";
import type { RoundSample } from "../engine/schedule/rounds/round_sample.ts";
import {
  openScheduler,
  type SchedulerCounts,
  type SchedulerRunner,
} from "../engine/schedule/scheduler.ts";
import type { Speculation } from "../engine/schedule/speculation.ts";
import type { RoundsPerSync } from "../engine/schedule/sync_interval.ts";
import { learningCosts, learnPrefill } from "../engine/tune/costs/learning.ts";

/** What a cell's scheduler takes of an engine; tests have one without a device. */
export interface ScheduledEngine
  extends Pick<LocalEngine, "outputs" | "costs" | "chunkRows" | "maxBatchedRows" | "sloItlMs"> {
  readonly runner: SchedulerRunner & Pick<LocalEngine["runner"], "pool" | "draft">;
}

/** What runs the requests of a cell. Disposal empties its prefix cache. */
export interface CellScheduler extends Disposable {
  readonly loop: EngineLoop;
  readonly counts: Readonly<SchedulerCounts>;
}

/** Opens a scheduler like the engine's own, on its runner, with a policy and a prefix cache of its own. */
export function openCellScheduler(
  { runner, outputs, costs, chunkRows, maxBatchedRows, sloItlMs }: ScheduledEngine,
  { speculation, roundsPerSync = "auto", onPrefill, onRound }: {
    readonly speculation: Speculation;
    readonly roundsPerSync?: RoundsPerSync | undefined;
    readonly onPrefill: (forward: PrefillSample) => void;
    readonly onRound: (round: RoundSample) => void;
  },
): CellScheduler {
  const cache = cacheOf(runner);
  const learn = learnPrefill(costs);
  const scheduler = openScheduler({
    runner,
    cache,
    outputs,
    speculation: learningCosts(speculation, costs),
    costs: () => costs.table,
    roundsPerSync,
    chunkRows,
    maxBatchedRows,
    sloItlMs,
    onPrefill(forward) {
      learn(forward);
      onPrefill(forward);
    },
    onRound,
  });
  return {
    loop: engineLoop(scheduler),
    counts: scheduler.counts,
    [Symbol.dispose]: () => cache.clear(),
  };
}

import type { MeasuredCosts } from "../../engine/tune/costs/measure.ts";
import type { EngineOptions } from "../../engine/options.ts";
import { costsPath } from "../../engine/tune/costs/costs_file.ts";
import { chains } from "../../speculate/round_shape.ts";
import { costsTokens } from "../sizes.ts";
import { openMeasured } from "../bench_engine.ts";

/** The models whose round costs are measured, and the range of the measurement. */
export interface CostsRequest extends EngineOptions {
  readonly maxBatch: number;
  /** The largest number of draft steps. */
  readonly numSteps: number;
}

/** An engine opened for measuring what its rounds cost. */
export interface CostsSession extends Disposable {
  measure(asked: {
    readonly seconds: number;
    /** True to write the table into the cache. */
    readonly keep: boolean;
    readonly signal: AbortSignal;
    readonly onProgress?: (done: number) => void;
  }): Promise<MeasuredCosts>;
  /** Path of the cache's file; undefined if no home folder is known. */
  readonly cache: string | undefined;
}

/** Opens a session that measures round costs. */
export type OpenCosts = (request: CostsRequest) => Promise<CostsSession>;

/** Opens model and device with every number of draft steps up to the largest compiled. */
export async function openCostsSession(request: CostsRequest): Promise<CostsSession> {
  const { maxBatch, numSteps } = request;
  const engine = await openMeasured(request, {
    tiers: chains(Array.from({ length: numSteps + 1 }, (_, steps) => steps)),
    limits: {
      maxBatch,
      maxKvTokens: costsTokens(maxBatch),
      sizeFlags: { maxBatch: "--max-batch" },
    },
    profile: true,
  });
  return {
    measure: (asked) => engine.costs.measure(asked),
    cache: costsPath(),
    [Symbol.dispose]: () => engine[Symbol.dispose](),
  };
}

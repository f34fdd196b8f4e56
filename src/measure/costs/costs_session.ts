import type { MeasuredCosts } from "../../engine/tune/costs/measure.ts";
import { costsPath } from "../../engine/tune/costs/costs_file.ts";
import { chains } from "../../speculate/round_shape.ts";
import { costsTokens } from "../sizes.ts";
import { openMeasured } from "../subject.ts";
import type { ModelRequest } from "../runner.ts";

/** What is measured, of which models. */
export interface CostsRequest extends ModelRequest {
  readonly maxBatch: number;
  /** Draft steps, the most. */
  readonly numSteps: number;
}

/** An engine opened for measuring what its rounds cost. */
export interface CostsSession extends Disposable {
  measure(asked: {
    readonly seconds: number;
    /** Whether the cache is to have it. */
    readonly keep: boolean;
    readonly signal: AbortSignal;
    readonly onProgress?: (done: number) => void;
  }): Promise<MeasuredCosts>;
  /** File of the cache; undefined where no home folder is known. */
  readonly cache: string | undefined;
}

export type OpenCosts = (request: CostsRequest) => Promise<CostsSession>;

/** Opens model and device with every number of steps up to the most. */
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

import {
  catchUpMs,
  type PricedChunk,
  type PricedRound,
  promptsMs,
  type RoundParts,
  roundParts,
} from "../../speculate/costs/lookup.ts";
import type { CostTable } from "../../speculate/costs/table.ts";

/** Milliseconds of the operations of the simulated machine. */
export interface Pricing {
  readonly name: string;
  /** The cost table that policies get; undefined where there is none. */
  readonly table: CostTable | undefined;
  /** Batch sizes that rounds are padded to, which policies get. */
  readonly buckets: readonly number[];
  /** Depths that rounds may have; undefined: any. */
  readonly steps: readonly number[] | undefined;
  round(round: PricedRound): RoundParts;
  /** The draft's prefill, of tokens missed over all sequences. */
  catchUp(tokens: number): number;
  /** A forward of chunks of prompts. */
  prefill(chunks: readonly PricedChunk[]): number;
}

/** The prices of a cost table; src/speculate/costs/lookup.ts has the formula. */
export function tablePricing(table: CostTable): Pricing {
  return {
    name: `${table.adapter}, ${table.model}`,
    table,
    buckets: table.buckets,
    steps: undefined,
    round: (round) => roundParts(table, round),
    catchUp: (tokens) => catchUpMs(table, tokens),
    prefill: (chunks) => promptsMs(table, chunks),
  };
}

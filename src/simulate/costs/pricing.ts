import {
  catchUpMs,
  type PricedChunk,
  promptsMs,
  roundParts,
} from "../../speculate/costs/lookup.ts";
import type { CostTable } from "../../speculate/costs/table.ts";

/** A round whose time is asked for. */
export interface SimulatedRound {
  readonly batch: number;
  readonly steps: number;
  /** Drafts verified over all sequences; absent: batch * steps. */
  readonly drafts: number | undefined;
  /** Tokens stored, over all sequences. */
  readonly cells: number;
  readonly roundsPerSync: number;
}

/** Milliseconds of a round, by part. */
export interface RoundPrice {
  readonly draft: number;
  readonly verify: number;
  readonly extend: number;
  readonly host: number;
}

/** Milliseconds of the operations of the simulated machine. */
export interface Pricing {
  readonly name: string;
  /** The cost table that policies get; undefined where there is none. */
  readonly table: CostTable | undefined;
  /** Batch sizes that rounds are padded to, which policies get. */
  readonly buckets: readonly number[];
  /** Depths that rounds may have; undefined: any. */
  readonly steps: readonly number[] | undefined;
  round(round: SimulatedRound): RoundPrice;
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
    round(round) {
      const { drafts, ...whole } = round;
      return roundParts(table, drafts === undefined ? whole : { ...whole, drafts });
    },
    catchUp: (tokens) => catchUpMs(table, tokens),
    prefill: (chunks) => promptsMs(table, chunks),
  };
}

/** Milliseconds of a round, all parts together. */
export function totalMs({ draft, verify, extend, host }: RoundPrice): number {
  return draft + verify + extend + host;
}

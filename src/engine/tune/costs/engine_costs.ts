import type { CostTable } from "../../../speculate/costs/table.ts";
import type { DraftKind, Runner } from "../../device/runner.ts";
import { batchBuckets } from "../../device/buckets.ts";
import {
  costsKey,
  type CostsOf,
  costsPath,
  readCostFile,
  readCosts,
  writeCosts,
} from "./costs_file.ts";
import { type CostsRequest, measureCosts, type MeasuredCosts } from "./measure.ts";
import { promptLengths } from "./plan.ts";

export interface MeasureCostsRequest
  extends Pick<CostsRequest, "seconds" | "onProgress" | "signal" | "prompts"> {
  readonly keep?: boolean;
}

/** What rounds of an engine cost: read, measured, refined by running. */
export interface EngineCosts {
  /** Undefined where it was neither measured nor given. */
  readonly table: CostTable | undefined;
  /** Whether the table has prompts as long as a chunk, or as a sequence may be. */
  readonly hasPrompts: boolean;
  /** Measures it again, while nothing else runs, and stores it in the cache unless `keep` is false. */
  measure(asked: MeasureCostsRequest): Promise<MeasuredCosts>;
  /** Measures prompts of all lengths that programs are made for, and puts them into the table that there is. */
  measurePrompts(asked: Pick<CostsRequest, "seconds" | "signal">): Promise<void>;
  /** Replaces the table by what `change` makes of it. */
  refine(change: (table: CostTable) => CostTable): void;
  /** Writes the refined table into the cache, if there were enough changes to be worth it. */
  keep(): void;
}

/** The caller's choice of costs: a file, or "off" for none; absent: the cache's. */
export type CostsChoice = string;

export interface CostsOptions {
  readonly runner: Runner;
  readonly of: CostsOf;
  readonly choice: CostsChoice | undefined;
  /** Draft levels that rounds may have, rising. */
  readonly depths: readonly number[];
  /** Rows of a prefill's chunk. */
  readonly chunkRows: number;
  readonly onWarning?: (line: string) => void;
  /** Path of the cache; undefined: there is none. */
  readonly path?: string | undefined;
}

/** Number of changes after which the table is written again. */
const ENOUGH_CHANGES = 200;

/** Looks at a file before anything is loaded. @throws UsageError where it cannot be used. */
export function checkCosts(choice: CostsChoice | undefined): void {
  given(choice);
}

/** @throws UsageError for a file of the caller's that cannot be used. */
export function openCosts(
  { runner, of, choice, depths, chunkRows, onWarning = () => {}, path = costsPath() }: CostsOptions,
): EngineCosts {
  const { batch } = runner.capacity;
  const buckets = batchBuckets(batch);
  const key = costsKey(of);
  // If the caller names a file, the cache is neither read nor written.
  const cache = choice === undefined ? path : undefined;
  const cached = cache === undefined ? undefined : readCosts(cache, key, onWarning);
  const rows = batch * ((depths.at(-1) ?? 0) + 1);
  const drafts = { draft: runner.draft, deepest: depths.at(-1) ?? 0 };
  const known = cached && reaches(cached, rows, drafts) ? cached : given(choice);
  let table: CostTable | undefined = known && { ...known, buckets };
  let changes = 0;
  return {
    get table() {
      return table;
    },
    get hasPrompts() {
      const longest = promptLengths(runner.capacity, chunkRows).at(-1) ?? 0;
      return (table?.prefill.at(-1)?.at ?? 0) >= longest;
    },
    async measure({ keep = true, ...asked }) {
      const { adapter, model, draft } = of;
      const names = { adapter, model, draft, buckets };
      const measured = await measureCosts(runner, {
        ...asked,
        names,
        maxBatch: batch,
        depths,
        chunkRows,
      });
      // Stopped, or no room for a single round.
      if (asked.signal?.aborted || measured.table.verify.length === 0) return measured;
      table = measured.table;
      if (keep && cache !== undefined) writeCosts(cache, key, measured.table, onWarning);
      return measured;
    },
    async measurePrompts(asked) {
      if (table === undefined) throw new Error("there is no table to add prompts to");
      const names = { adapter: table.adapter, model: table.model, draft: table.draft, buckets };
      const { table: { prefill } } = await measureCosts(runner, {
        ...asked,
        names,
        maxBatch: batch,
        depths,
        chunkRows,
        prompts: "only",
      });
      if (asked.signal?.aborted || prefill.length < 2) return;
      const { refined } = table;
      table = { ...table, prefill, ...refined && { refined: { ...refined, prefill: 1 } } };
      if (cache !== undefined) writeCosts(cache, key, table, onWarning);
    },
    refine(change) {
      if (table === undefined) return;
      table = change(table);
      changes++;
    },
    keep() {
      if (table === undefined || cache === undefined || changes < ENOUGH_CHANGES) return;
      changes = 0;
      writeCosts(cache, key, table, () => {});
    },
  };
}

/** The file that the choice names. */
function given(choice: CostsChoice | undefined): CostTable | undefined {
  return choice === undefined || choice === "off" ? undefined : readCostFile(choice);
}

/**
 * Whether this number of rows is at most twice the largest that was measured, and the draft's times are there if it
 * drafts: a table from an engine that never drafted would make drafts free.
 */
function reaches(
  { verify, level, extend, catchUp }: CostTable,
  rows: number,
  { draft, deepest }: { readonly draft: DraftKind; readonly deepest: number },
): boolean {
  if (2 * (verify.at(-1)?.at ?? 0) < rows) return false;
  if (draft === "none" || deepest === 0) return true;
  return extend.length > 0 && (deepest === 1 || level.length > 0) &&
    (draft !== "catches up" || catchUp.length > 0);
}

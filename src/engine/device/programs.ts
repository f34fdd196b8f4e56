import type { Gpu } from "../../gpu/device.ts";
import { compiler, type Created, type Program, within } from "../../gpu/program.ts";
import type { Capacity, RoundBuffers } from "./buffers.ts";
import { RESULT_WORDS } from "../../model/plan/rows_layout.ts";
import type { Models } from "./models.ts";
import type { Work } from "./submit.ts";
import { catchUpPlan, draftHeadPlan, promptPlans, roundPlans } from "./tier.ts";

export interface PromptPrograms {
  readonly body: Program;
  readonly head: Program;
  readonly draft: Program;
  readonly draftHead: Program;
}

export interface CatchUpPrograms {
  readonly body: Program;
  readonly head: Program;
}

/** A round compiled: what a tier is at one batch bucket. */
export interface RoundPrograms extends Work {
  readonly draft: Program;
  readonly verify: Program;
  readonly extend: Program;
}

/**
 * Every program of an engine, each made once: by `Core.warmUp`, or when first wanted. `cells`
 * is what the longest slot has pages for, see `mostCells`; absent: any number.
 */
export interface Programs {
  readonly created: Readonly<Created>;
  /** The same object each time for up to CELL_BUCKET more cells. */
  round(tier: Tier & { readonly cells?: number }): Promise<RoundPrograms>;
  /** For a chunk of at most `rows` rows. */
  prompt(rows: number, cells?: number): Promise<PromptPrograms>;
  /** For at most `rows` draft rows, of which `batch` lanes want a draft token. */
  catchUp(rows: number, batch: number, cells?: number): Promise<CatchUpPrograms>;
  /** Makes all of `prompt` and `catchUp`. */
  makePrompts(): Promise<void>;
}

interface Tier {
  readonly batch: number;
  readonly numSteps: number;
}

/** Cells by which programs grow. */
const CELL_BUCKET = 256;

/** Row counts that prefill programs are made for; a chunk takes the smallest that holds it. */
const ROW_BUCKETS = [8, 16, 32, 64, 128, 256];

/** Batch sizes that round programs are made for; between them lanes stay empty. */
const BATCH_BUCKETS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/** The batch sizes an engine of `most` lanes makes programs for. */
export function batchBuckets(most: number): number[] {
  return [...BATCH_BUCKETS.filter((size) => size < most), most];
}

export function batchBucket(batch: number, most: number): number {
  return batchBuckets(most).find((size) => size >= batch) ?? most;
}

export function rowBucket(rows: number): number {
  return ROW_BUCKETS.find((size) => size >= rows) ?? rows;
}

export function enginePrograms(
  gpu: Gpu,
  { models, buffers, capacity, acceptance }: {
    readonly models: Models;
    readonly buffers: RoundBuffers;
    readonly capacity: Capacity;
    readonly acceptance: readonly number[] | undefined;
  },
): Programs {
  const { compile, created } = compiler(gpu);
  const { draft } = models;
  const whole = once(async (batch = 0, numSteps = 0) => {
    const plans = roundPlans(models, buffers, { batch, numSteps, acceptance });
    return {
      draft: await compile(plans.draft),
      verify: await compile(plans.verify),
      extend: await compile(plans.extend),
    };
  });
  const round = once(async (batch = 0, numSteps = 0, cells = 0) => {
    const { draft, verify, extend } = allWithin(await whole(batch, numSteps), cells);
    const programs = [draft, verify, extend];
    return { draft, verify, extend, programs, words: batch * RESULT_WORDS };
  });
  const prompt = once(async (rows = 0) => {
    const plans = promptPlans(models, buffers, rows);
    return {
      body: await compile(plans.body),
      head: await compile(plans.head),
      draft: await compile(plans.draft),
    };
  });
  const catchUp = once((rows = 0) => compile(draft ? catchUpPlan(draft, buffers, rows) : []));
  const draftHead = once((batch = 0) => compile(draft ? draftHeadPlan(draft, buffers, batch) : []));
  return {
    created,
    round: ({ batch, numSteps, cells }) =>
      round(batchBucket(batch, capacity.batch), numSteps, cellBucket(cells)),
    async prompt(rows, cells) {
      const programs = { ...await prompt(rowBucket(rows)), draftHead: await draftHead(1) };
      return allWithin(programs, cellBucket(cells));
    },
    async catchUp(rows, batch, cells) {
      return allWithin({
        body: await catchUp(rowBucket(rows)),
        head: await draftHead(batchBucket(batch, capacity.batch)),
      }, cellBucket(cells));
    },
    async makePrompts() {
      for (const rows of ROW_BUCKETS) {
        await prompt(rows);
        if (draft?.store) await catchUp(rows);
      }
      for (const batch of draft ? batchBuckets(capacity.batch) : []) await draftHead(batch);
    },
  };
}

function cellBucket(cells = Infinity): number {
  return Math.ceil(cells / CELL_BUCKET) * CELL_BUCKET;
}

function allWithin<Name extends string>(
  programs: Readonly<Record<Name, Program>>,
  cells: number,
): Record<Name, Program> {
  const entries = Object.entries<Program>(programs);
  return Object.fromEntries(
    entries.map(([name, program]) => [name, within(program, cells)]),
  ) as Record<
    Name,
    Program
  >;
}

/** Remembers what `make` made for each list of numbers. */
function once<T>(make: (...key: number[]) => Promise<T>): (...key: number[]) => Promise<T> {
  const made = new Map<string, Promise<T>>();
  return (...key) => made.getOrInsertComputed(key.join(), () => make(...key));
}

import type { Gpu } from "../../gpu/device.ts";
import { compiler, type Created, type Program, within } from "../../gpu/program.ts";
import { resultWords } from "../../model/plan/rows_layout.ts";
import { chain, type RoundShape } from "../../speculate/round_shape.ts";
import { type Capacity, firstRowsAt, mostRows, type RoundBuffers } from "./buffers.ts";
import type { DeviceDrafter } from "./device_drafter.ts";
import { type Choice, type ChoiceKind, GREEDY_CHOICE, PLAIN_CHOICE } from "./choice/choice.ts";
import type { Relaxed } from "./choice/relax.ts";
import { eagleDrafter } from "./eagle_drafter.ts";
import type { Models } from "./models.ts";
import { allocation, joined, packedPrograms } from "./packed/packed_round.ts";
import { standaloneDrafter } from "./standalone/drafter.ts";
import type { Work } from "./submit/submit.ts";
import { promptPlans, roundPlans, tells } from "./tier.ts";

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
  /** Whether its results tell the draft's confidences. */
  readonly told: boolean;
}

/**
 * Every program of an engine, each made once: by `Core.warmUp`, or when first wanted. `cells`
 * is what the longest slot has pages for, see `mostCells`; absent: any number.
 */
export interface Programs {
  readonly created: Readonly<Created>;
  /** Whether rounds of chains may be packed. */
  readonly packs: boolean;
  /** Whether the device may choose the drafts that are verified, by the draft's confidence. */
  readonly ranks: boolean;
  /** The same object each time for cells of the same bucket, see `cellBucket`. */
  round(of: RoundOf): Promise<RoundPrograms>;
  /** Chains of the device of so many tokens for a batch, before a round that the host drafted for. */
  levels(depth: number, batch: number, cells?: number): Promise<Program>;
  /** For a chunk of at most `rows` rows; the same object each time as of `round`. */
  prompt(rows: number, cells?: number, choice?: ChoiceKind): Promise<PromptPrograms>;
  /** For at most `rows` draft rows, of which `batch` sequences want a draft token. */
  catchUp(rows: number, batch: number, cells?: number): Promise<CatchUpPrograms>;
  /** See Compiler. */
  replace(from: GPUBuffer, to: GPUBuffer | undefined): void;
  /** Makes all of `prompt` and `catchUp`. */
  makePrompts(): Promise<void>;
}

/** Which round. */
export interface RoundOf extends RoundShape {
  /** Whether the host has drafted; default false. */
  readonly proposed?: boolean;
  /** Default: the greedy one. Others than that and the plain one are made when first wanted. */
  readonly choice?: ChoiceKind;
  /** Verify rows of all sequences of a packed round of chains, see packed_round.ts; default: it is none. */
  readonly packed?: number | undefined;
  /** Whether the device chooses the drafts that are verified, by `RoundBuffers.budget`; default false. */
  readonly allocates?: boolean;
  readonly cells?: number;
}

/** Cells by which programs grow. */
const CELL_BUCKET = 256;
/** The same from 512 to 1,024, where a split of attention more may be a turn of workgroups more. */
const SHORT_CELL_BUCKET = 64;

/** Row counts that prefill programs are made for; a chunk takes the smallest that holds it. */
const ROW_BUCKETS = [8, 16, 32, 64, 128, 256, 384, 512, 768, 1024];

/** Batch sizes that round programs are made for; a batch between two of them is padded. */
const BATCH_BUCKETS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/** The batch sizes an engine for `most` sequences makes programs for. */
export function batchBuckets(most: number): number[] {
  return [...BATCH_BUCKETS.filter((size) => size < most), most];
}

export function batchBucket(batch: number, most: number): number {
  return batchBuckets(most).find((size) => size >= batch) ?? most;
}

export function rowBucket(rows: number): number {
  return ROW_BUCKETS.find((size) => size >= rows) ?? rows;
}

/** What drafts on the device. */
export function drafterOf(
  { target, draft, standalone }: Models,
  buffers: RoundBuffers,
): DeviceDrafter | undefined {
  if (draft) return eagleDrafter(draft, buffers);
  return standalone && standaloneDrafter(standalone, target, buffers);
}

export function enginePrograms(
  gpu: Gpu,
  { models, buffers, choice, capacity, acceptance, relaxed }: {
    readonly models: Models;
    readonly buffers: RoundBuffers;
    readonly choice: Choice;
    readonly capacity: Capacity;
    readonly acceptance: readonly number[] | undefined;
    readonly relaxed: Relaxed | undefined;
  },
): Programs {
  const { target, elastic } = models;
  const moving = elastic ? [...elastic.paged, ...elastic.weights, ...elastic.kv] : [];
  const { compile, created, replace } = compiler(gpu, new Set(moving));
  const drafter = drafterOf(models, buffers);
  const parts = {
    ...{ target, drafter, buffers, relaxed },
    ...{ mostRows: mostRows(capacity), firstRows: firstRowsAt(capacity) },
    keepAll: elastic !== undefined,
    told: capacity.confident === true && models.draft !== undefined,
  };
  const packs = drafter?.extendPacked !== undefined && relaxed === undefined;
  const levels = once((depth = 0, batch = 0) =>
    compile(drafter?.levels({ ...chain(depth), batch }) ?? [])
  );
  const draftHead = once((batch = 0) => compile(drafter?.head(batch) ?? []));
  const plansOf = (kind: number, proposed: number, key: readonly number[]) =>
    roundPlans(parts, {
      ...{ shape: shapeOf(key), proposed: proposed === 1, acceptance },
      ...{ choice: choice.buffers(kindOf(kind)), greedy: kindOf(kind).greedy ?? false },
    });
  // What does not depend on the kind of choice is compiled once for all kinds.
  const forwards = once(async (proposed = 0, ...key) => {
    const { draft, target, extend } = plansOf(PLAIN_KEY, proposed, key);
    return {
      draft: await compile(draft),
      target: await compile(target),
      extend: await compile(extend),
    };
  });
  const whole = once(async (kind = 0, proposed = 0, ...key) => {
    const { draft, target, extend } = await forwards(proposed, ...key);
    const accept = await compile(plansOf(kind, proposed, key).accept);
    return { draft, verify: joined(target, accept), extend };
  });
  const packedRound = packedPrograms(parts, {
    ...{ compile, acceptance, head: draftHead },
    levels: ({ depth, batch }) => levels(depth, batch),
  });
  const packedWhole = once((packed = 0, ...key) => packedRound({ ...shapeOf(key), packed }));
  const allocates = once((...key) => compile([allocation(parts, shapeOf(key))]));
  const round = once(async (cells = 0, allocated = 0, packed = 0, ...key) => {
    const [kind = 0, proposed = 0, ...ofShape] = key;
    const shape = shapeOf(ofShape);
    const made = packed > 0 ? await packedWhole(packed, ...ofShape) : await whole(...key);
    const { draft, verify, extend } = allWithin({
      ...made,
      ...allocated === 1 ? { draft: joined(made.draft, await allocates(...ofShape)) } : {},
    }, cells);
    const { batch, rows, depth } = shape;
    const told = tells(parts, { shape, proposed: proposed === 1 });
    return {
      ...{ draft, verify, extend, told, programs: [draft, verify, extend] },
      words: batch * resultWords(rows, told),
      ...choice.read(kindOf(kind), batch * (depth + 1)),
    };
  });
  const prompt = once(async (rows = 0) => {
    const plans = promptPlans(parts, rows);
    return {
      body: await compile(plans.body),
      draft: await compile(plans.draft),
    };
  });
  const promptHead = once(async (kind = 0) =>
    await compile(promptPlans(parts, 1, choice.buffers(kindOf(kind))).head)
  );
  const wholePrompt = once(async (cells = 0, rows = 0, kind = 0) => {
    const parts = { ...await prompt(rows), head: await promptHead(kind) };
    return allWithin({ ...parts, draftHead: await draftHead(1) }, cells);
  });
  const catchUp = once((rows = 0) => compile(drafter?.catchUp?.rows(rows) ?? []));
  return {
    created,
    replace,
    packs,
    ranks: packs && parts.told,
    round({ batch, depth, width, rows, proposed = false, choice = GREEDY_CHOICE, ...of }) {
      // Without a drafter on the device it is one round, whoever might have drafted.
      const host = drafter && proposed ? 1 : 0;
      const bucket = batchBucket(batch, capacity.batch);
      const { cells, packed = 0, allocates = false } = of;
      const how = [cellBucket(cells), Number(allocates), packed, kindKey(choice), host];
      return round(...how, bucket, depth, width, rows);
    },
    async levels(depth, batch, cells) {
      return within(await levels(depth, batchBucket(batch, capacity.batch)), cellBucket(cells));
    },
    prompt(rows, cells, choice = PLAIN_CHOICE) {
      // One row a prompt: its logits are stored whatever it takes of them.
      return wholePrompt(cellBucket(cells), rowBucket(rows), kindKey({ ...choice, greedy: false }));
    },
    async catchUp(rows, batch, cells) {
      return allWithin({
        body: await catchUp(rowBucket(rows)),
        head: await draftHead(batchBucket(batch, capacity.batch)),
      }, cellBucket(cells));
    },
    async makePrompts() {
      const buckets = ROW_BUCKETS.filter((size) => size <= rowBucket(capacity.prefillRows));
      await Promise.all([
        ...buckets.flatMap((rows) =>
          drafter?.catchUp ? [prompt(rows), catchUp(rows)] : [prompt(rows)]
        ),
        ...drafter ? batchBuckets(capacity.batch).map((batch) => draftHead(batch)) : [],
      ]);
    },
  };
}

function shapeOf([batch = 0, depth = 0, width = 0, rows = 0]: readonly number[]): RoundShape {
  return { batch, depth, width, rows };
}

/** A kind as a number, and back. */
function kindKey({ masked, penalized, logprobs = -1, greedy = false }: ChoiceKind): number {
  return Number(masked) + 2 * Number(penalized) + 4 * Number(greedy) + 8 * (logprobs + 1);
}

function kindOf(key: number): ChoiceKind {
  const logprobs = key < 8 ? undefined : Math.floor(key / 8) - 1;
  return {
    ...{ masked: key % 2 === 1, penalized: key % 4 >= 2, greedy: key % 8 >= 4 },
    logprobs,
  };
}

const PLAIN_KEY = kindKey(PLAIN_CHOICE);

function cellBucket(cells = Infinity): number {
  const bucket = cells > 512 && cells <= 1024 ? SHORT_CELL_BUCKET : CELL_BUCKET;
  return Math.ceil(cells / bucket) * bucket;
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

/** Makes rounds without draft-extend of those that have it, each once; the host's drafts may be in them. */
export function withoutDraft(): (work: RoundPrograms) => RoundPrograms {
  const known = new WeakMap<RoundPrograms, RoundPrograms>();
  return (work) =>
    known.getOrInsertComputed(work, ({ draft, verify }) => {
      const extend = { steps: [] };
      return { ...work, extend, programs: [draft, verify, extend] };
    });
}

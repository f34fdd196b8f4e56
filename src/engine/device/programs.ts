import type { Gpu } from "../../gpu/device.ts";
import type { Dispatch } from "../../gpu/kernel.ts";
import { compiler, type CreationCounts, type Program, within } from "../../gpu/program.ts";
import { PREFILL_ROWS, resultWords } from "../../model/device_layout.ts";
import { chain } from "../../speculate/round_shape.ts";
import { batchBucket, batchBuckets, rowBucket, rowBuckets } from "./buckets.ts";
import { type EngineSizes, firstRowsAt, maxRows, type RoundBuffers } from "./buffers.ts";
import type { DeviceDrafter } from "./device_drafter.ts";
import {
  GREEDY_SAMPLING,
  PLAIN_SAMPLING,
  type SamplingKind,
  type SamplingKinds,
} from "./choice/choice.ts";
import type { Relaxed } from "./choice/relax.ts";
import { eagleDrafter } from "./eagle_drafter.ts";
import type { Target } from "../../model/graph/target.ts";
import type { Models } from "./models.ts";
import { standaloneDrafter } from "./standalone/drafter.ts";
import type { Submission } from "./submit/submit.ts";
import { promptBody, promptDraft, promptHead } from "./prompt_plans.ts";
import { promptRun } from "./prompt_rows.ts";
import {
  hasConfidences,
  type RoundParts,
  type RoundPlans,
  roundPlans,
  type RoundSpec,
  verifyRowsOf,
} from "./round_plans.ts";

/** Which forward of prompts. */
export interface PromptSpec {
  /** At most; see `promptRows`. */
  readonly rows: number;
  /** Neighbouring rows of one slot; absent: all. */
  readonly perSlot?: number | undefined;
  /** Prompts that end in it; default 1. */
  readonly heads?: number;
  /** Default: the plain one. */
  readonly choice?: SamplingKind;
  /** Whether it stores again what rounds had stored, by the kernels of rounds; default false. */
  readonly answers?: boolean;
}

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
export interface RoundPrograms extends Submission {
  readonly draft: Program;
  readonly verify: Program;
  readonly extend: Program;
  /** Whether its results tell the draft's confidences. */
  readonly withConfidences: boolean;
}

/**
 * All programs of an engine, each made once: by `Runner.warmUp`, or when first needed. `cells` is the number of cells
 * that the longest slot has pages for, see `maxCells`; absent: any number.
 */
export interface Programs {
  readonly created: Readonly<CreationCounts>;
  /** Whether rounds of chains may be packed. */
  readonly packs: boolean;
  /** Whether the device may choose the drafts that are verified, by the draft's confidence. */
  readonly ranks: boolean;
  /** Returns the same object for cells of the same bucket, see `cellBucket`. */
  round(of: RoundSpec & { readonly cells?: number }): Promise<RoundPrograms>;
  /** Drafts chains of this many tokens on the device for a batch, before a round that the host drafted for. */
  levels(depth: number, batch: number, cells?: number): Promise<Program>;
  /** Returns the same object for the same forward, as `round` does. */
  prompt(of: PromptSpec & { readonly cells?: number }): Promise<PromptPrograms>;
  /** The programs for at most `rows` draft rows of `batch` sequences, each of which needs a draft token. */
  catchUp(rows: number, batch: number, cells?: number): Promise<CatchUpPrograms>;
  /** See Compiler. */
  replace(from: GPUBuffer, to: GPUBuffer | undefined): void;
  /** Makes all of `prompt` and `catchUp`. */
  makePrompts(): Promise<void>;
  /**
   * The dispatches of a round's verification up to the target's choice. They neither draft nor accept, so they may run
   * any number of times. The rewrites `without` are turned off, in addition to those that are turned off for the
   * target.
   */
  verifyPlan(of: RoundSpec, without: ReadonlySet<string>): Dispatch[];
  /** The same for a chunk of a prompt, of at most `rows` rows, without the head. */
  promptPlan(rows: number, without: ReadonlySet<string>): Dispatch[];
}

/** Bucket size of cells: programs are made for multiples of it. */
const CELL_BUCKET = 256;
/** Bucket size from 512 to 1,024 cells, where one more split of attention may need one more turn of workgroups. */
const SHORT_CELL_BUCKET = 64;

/** What drafts on the device. */
export function deviceDrafterOf(
  { target, draft, standalone }: Models,
  buffers: RoundBuffers,
): DeviceDrafter | undefined {
  if (draft) return eagleDrafter(draft, buffers);
  return standalone && standaloneDrafter(standalone, target, buffers);
}

export function enginePrograms(
  gpu: Gpu,
  { models, buffers, choice: choiceKinds, capacity, acceptance, relaxed }: {
    readonly models: Models;
    readonly buffers: RoundBuffers;
    readonly choice: SamplingKinds;
    readonly capacity: EngineSizes;
    readonly acceptance: readonly number[] | undefined;
    readonly relaxed: Relaxed | undefined;
  },
): Programs {
  const { target, promptTarget, elastic } = models;
  const moving = elastic ? [...elastic.paged, ...elastic.weights, ...elastic.kv] : [];
  const { compile, created, replace } = compiler(gpu, new Set(moving));
  const drafter = deviceDrafterOf(models, buffers);
  const choiceBuffers = (kind: SamplingKind) => choiceKinds.buffers(kind);
  const parts: RoundParts = {
    target,
    drafter,
    buffers,
    relaxed,
    acceptance,
    maxRows: maxRows(capacity),
    firstRows: firstRowsAt(capacity),
    keepAll: elastic !== undefined,
    withConfidences: capacity.confident === true && models.draft !== undefined,
  };
  const partsOf = (answers: boolean): RoundParts =>
    answers ? parts : { ...parts, target: promptTarget };
  const packs = drafter?.packs === true && relaxed === undefined;
  const compiled = new Map<string, Promise<Program>>();

  /** Compiles a plan once. @param of all that it depends on. */
  function once(part: string, of: object, plan: () => Dispatch[]): Promise<Program> {
    return compiled.getOrInsertComputed(keyOf(part, of), () => compile(plan()));
  }

  const draftHead = (batch: number) =>
    once("draft head", { batch }, () => drafter?.head(batch) ?? []);

  /** The programs of a round for any number of cells, each part made once for all rounds that have the same. */
  async function phasesOf(spec: CanonicalSpec): Promise<Record<Phase, Program>> {
    const { batch, depth, width, rows, packed, proposed, choice, allocates } = spec;
    const shape = { batch, depth, width, rows };
    const grid = { ...shape, packed };
    // Packed rounds of several sequences share the programs that have one row for each verified token.
    const forward = packed === undefined ? shape : verifyRowsOf(spec);
    const chosen = { ...forward, proposed, choice };
    let made: RoundPlans | undefined;
    const plan = (part: keyof RoundPlans) => () =>
      (made ??= roundPlans(parts, spec, choiceBuffers(choice)))[part];
    const draft = await once("draft", { ...shape, proposed }, plan("draft"));
    const chosenDrafts = await once("allocate", { batch, rows, allocates }, plan("allocate"));
    const verifyRows = await once("rows", grid, plan("rows"));
    const target = await once("target", forward, plan("target"));
    const extend = await once("extend", forward, plan("extend"));
    const head = await once("head after extend", { batch, depth }, plan("head"));
    const choose = await once("choose", chosen, plan("choose"));
    const accept = await once("accept", { ...grid, proposed, choice }, plan("accept"));
    return {
      draft: joined(draft, chosenDrafts),
      verify: joined(verifyRows, target, choose, accept),
      extend: joined(extend, head),
    };
  }

  const rounds = new Map<string, Promise<RoundPrograms>>();

  async function makeRound(spec: CanonicalSpec, cells: number): Promise<RoundPrograms> {
    const { draft, verify, extend } = allWithin(await phasesOf(spec), cells);
    const { batch, rows, depth, choice } = spec;
    const withConfidences = hasConfidences(parts, spec);
    return {
      draft,
      verify,
      extend,
      withConfidences,
      programs: [draft, verify, extend],
      words: batch * resultWords(rows, withConfidences),
      ...choiceKinds.read(choice, batch * (depth + 1)),
    };
  }

  const prompts = new Map<string, Promise<PromptPrograms>>();

  const promptForward = async (
    count: number,
    { perSlot = count, answers = false }: { perSlot?: number; answers?: boolean } = {},
  ): Promise<Pick<PromptPrograms, "body" | "draft">> => {
    const forward = { count, perSlot };
    const body = () => promptBody(partsOf(answers), forward);
    return {
      body: await once("prompt", { ...forward, answers }, body),
      draft: await once("prompt draft", forward, () => promptDraft(parts, forward)),
    };
  };

  const promptEnd = (heads: number, choice: SamplingKind, answers = false) =>
    once(
      "prompt head",
      { heads, choice, answers },
      () => promptHead(partsOf(answers), heads, choiceBuffers(choice)),
    );

  async function makePrompt(
    { rows, perSlot, heads, choice, answers }: CanonicalPrompt,
    cells: number,
  ): Promise<PromptPrograms> {
    const made = {
      ...await promptForward(rows, { perSlot, answers }),
      head: await promptEnd(heads, choice, answers),
      draftHead: await draftHead(heads),
    };
    return allWithin(made, cells);
  }

  const targetWithout = (of: Target, names: ReadonlySet<string>): RoundParts => {
    const without = names.union(of.without ?? new Set<string>());
    return { ...parts, target: { ...of, without } };
  };

  const lagging = (rows: number) =>
    once("catch up", { rows }, () => drafter?.catchUp?.rows(rows) ?? []);

  return {
    created,
    replace,
    packs,
    ranks: packs && parts.withConfidences === true,
    round({ cells, ...of }) {
      const spec = canonical(of, { capacity, drafter });
      const bucket = cellBucket(cells);
      const make = () => makeRound(spec, bucket);
      return rounds.getOrInsertComputed(keyOf(String(bucket), spec), make);
    },
    async levels(depth, batch, cells) {
      const shape = { batch: batchBucket(batch, capacity.batch), ...chain(depth) };
      const levels = once(
        "draft",
        { ...shape, proposed: false },
        () => drafter?.levels(shape) ?? [],
      );
      return within(await levels, cellBucket(cells));
    },
    prompt({ rows, perSlot, heads = 1, choice = PLAIN_SAMPLING, answers = false, cells }) {
      const of: CanonicalPrompt = {
        rows: rowBucket(rows),
        perSlot: perSlot ?? rowBucket(rows),
        heads: batchBucket(heads, capacity.batch),
        // One row for each prompt: its logits are always stored.
        choice: canonicalChoice({ ...choice, greedy: false }),
        answers: answers && promptTarget !== target,
      };
      const bucket = cellBucket(cells);
      const make = () => makePrompt(of, bucket);
      return prompts.getOrInsertComputed(keyOf(String(bucket), of), make);
    },
    async catchUp(rows, batch, cells) {
      return allWithin({
        body: await lagging(rowBucket(rows)),
        head: await draftHead(batchBucket(batch, capacity.batch)),
      }, cellBucket(cells));
    },
    async makePrompts() {
      const buckets = rowBuckets(rowBucket(capacity.prefillRows));
      const batches = batchBuckets(capacity.batch);
      const run = promptRun(capacity);
      const shared = capacity.batch > 1 ? buckets.filter((rows) => rows >= 2 * run) : [];
      const plain = canonicalChoice(PLAIN_SAMPLING);
      const answers = promptTarget === target ? [] : buckets.filter((rows) => rows <= PREFILL_ROWS);
      await Promise.all([
        ...buckets.flatMap((rows) =>
          drafter?.catchUp ? [promptForward(rows), lagging(rows)] : [promptForward(rows)]
        ),
        ...shared.map((rows) => promptForward(rows, { perSlot: run })),
        ...batches.map((heads) => promptEnd(heads, plain)),
        ...answers.flatMap((rows) => [
          promptForward(rows, { answers: true }),
          ...shared.includes(rows) ? [promptForward(rows, { perSlot: run, answers: true })] : [],
        ]),
        ...answers.length > 0 ? batches.map((heads) => promptEnd(heads, plain, true)) : [],
        ...drafter ? batches.map((batch) => draftHead(batch)) : [],
      ]);
    },
    verifyPlan(of, without) {
      const spec = canonical(of, { capacity, drafter });
      const plans = roundPlans(targetWithout(target, without), spec, choiceBuffers(spec.choice));
      return [...plans.rows, ...plans.target, ...plans.choose];
    },
    promptPlan(rows, without) {
      const count = rowBucket(rows);
      return promptBody(targetWithout(promptTarget, without), { count, perSlot: count });
    },
  };
}

/** The groups of a round's programs, which are timed separately. */
type Phase = "draft" | "verify" | "extend";

/** A forward of prompts with its defaults, for buckets of rows and of heads. */
type CanonicalPrompt = Required<PromptSpec> & { readonly perSlot: number };

/** A spec with its defaults, for a batch that programs are made for. */
type CanonicalSpec = Required<Omit<RoundSpec, "packed">> & Pick<RoundSpec, "packed">;

/** Returns the fields in a fixed order, so that equal rounds have the same key. */
function canonical(
  { batch, depth, width, rows, packed, proposed = false, allocates = false, choice }: RoundSpec,
  { capacity, drafter }: {
    readonly capacity: EngineSizes;
    readonly drafter: DeviceDrafter | undefined;
  },
): CanonicalSpec {
  return {
    batch: batchBucket(batch, capacity.batch),
    depth,
    width,
    rows,
    packed,
    // Without a drafter on the device, rounds with and without proposals are the same.
    proposed: drafter !== undefined && proposed,
    allocates,
    choice: canonicalChoice(choice ?? GREEDY_SAMPLING),
  };
}

function canonicalChoice(
  { masked, penalized, logprobs, greedy = false }: SamplingKind,
): SamplingKind {
  return { masked, penalized, logprobs, greedy };
}

/** Fields that are undefined do not count. */
function keyOf(part: string, of: object): string {
  return `${part} ${JSON.stringify(of)}`;
}

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
  ) as Record<Name, Program>;
}

/** Programs that run one after the other, as one. */
function joined(...programs: readonly Program[]): Program {
  return { steps: programs.flatMap(({ steps }) => steps) };
}

/**
 * Returns a function that makes rounds without draft-extend from rounds with it, each once; they may verify the host's
 * drafts.
 */
export function withoutDraft(): (work: RoundPrograms) => RoundPrograms {
  const known = new WeakMap<RoundPrograms, RoundPrograms>();
  return (work) =>
    known.getOrInsertComputed(work, ({ draft, verify }) => {
      const extend = { steps: [] };
      return { ...work, extend, programs: [draft, verify, extend] };
    });
}

import { NOT_A_TOKEN } from "../../../shaders/choose/choose.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Created } from "../../gpu/program.ts";
import {
  MOST_STOPS,
  PAGE,
  RESULT_CHOICES,
  resultWords,
  SLOT_LIMIT,
  SLOT_SEED,
  SLOT_STOPS,
  SLOT_WORDS,
} from "../../model/plan/rows_layout.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import type { TierShape } from "../../speculate/round_shape.ts";
import type { Proposal } from "../../speculate/trees.ts";
import { type Capacity, mostRows, type RoundBuffers, roundBuffers, tablePages } from "./buffers.ts";
import { type Inputs, openInputs } from "./inputs.ts";
import { lagGroups } from "./lag.ts";
import { type LoadedWeights, type Models, prepareModels } from "./models.ts";
import { type PagePool, pagePool } from "./pages.ts";
import { batchBuckets, enginePrograms, type Programs } from "./programs.ts";
import { type RoundResult, roundResult } from "./round_result.ts";
import { mostCells, rewind, type Sequence, slotOf } from "./sequence.ts";
import { throwDeviceErrors } from "./event_loop.ts";
import { openSubmitter, type Submitter } from "./submit.ts";

/** The device side of decoding: slots, prefill and rounds. It knows nothing of text or requests. */
export interface Core {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: Capacity;
  readonly created: Readonly<Created>;
  /** What rounds and prefill run, for the profile. */
  readonly programs: Programs;
  /** The KV pages of all sequences. */
  readonly pool: PagePool;
  readonly draft: DraftKind;
  /** Gives the sequence a batch slot that has the pages it holds; false when all are taken. */
  openSlot(sequence: Sequence): boolean;
  /** Takes the slot back and releases the sequence's pages: nothing of it is stored any more. */
  closeSlot(sequence: Sequence): void;
  /**
   * Makes the programs of prefill and of these tiers at every batch bucket, and runs them once with
   * no lane: adapters compile at the first run.
   *
   * @param proposed rounds that the host drafts for; default false.
   */
  warmUp(shapes: readonly TierShape[], proposed?: boolean): Promise<void>;
  /** Gives the sequence KV pages for `cells` tokens; false when there are not enough left. */
  reserve(sequence: Sequence, cells: number): boolean;
  /** Replaces the sequence's first pages by others that hold the same. */
  setPages(sequence: Sequence, pages: readonly number[]): void;
  /**
   * Sets how the sequence's tokens are chosen, and the tokens after which the device does no further
   * round of it, up to MOST_STOPS of them: until this is called again.
   */
  setSampling(sequence: Sequence, sampling: Sampling, stopIds?: readonly number[]): void;
  /**
   * Stores the next chunk of the sequence's ids, up to `to`; their pages are reserved. The chunk that
   * stores all of them adds the first token to the ids and returns it; the others return undefined.
   */
  prefill(sequence: Sequence, to: number): Promise<number | undefined>;
  /** Brings the draft's keys and values of these sequences up to what is stored. */
  catchUp(sequences: readonly Sequence[]): Promise<void>;
  /**
   * Rounds of these sequences without the host between them, in their order; pages are reserved for
   * all of them. All tokens are added to `ids`, even where the host will not have them as output.
   */
  rounds(sequences: readonly Sequence[], asked: RoundsAsked): Promise<RoundResult[]>;
}

/** Which rounds. */
export interface RoundsAsked {
  /** One of the capacity's. */
  readonly shape: TierShape;
  /** 1 to MOST_ROUNDS. */
  readonly count: number;
  /** Draft tokens to verify of each sequence, 0 to the shape's depth; default: all. Chains only. */
  readonly depths?: readonly number[];
  /**
   * What the host drafted for each sequence, which fits the shape (`proposalFault`); absent: the
   * device drafts. For one round: `count` is 1.
   */
  readonly proposals?: readonly Proposal[];
}

/**
 * Whether there is a draft, and whether it can catch up on tokens that were decoded without it: the
 * target's features are kept only where a tier decodes without the draft. A standalone draft needs
 * but the tokens.
 */
export type DraftKind = "none" | "always" | "catches up";

export async function openCore(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: Capacity,
  { profile = false, acceptance, mail }: {
    readonly profile?: boolean;
    readonly mail?: () => boolean;
    /** Probabilities to draw accepted counts with, instead of verifying: for timing. */
    readonly acceptance?: readonly number[];
  } = {},
): Promise<Core> {
  const buffers = roundBuffers(gpu, capacity);
  const models = prepareModels(gpu, loaded, capacity, buffers);
  // A buffer that could not be allocated would be used from here on.
  await throwDeviceErrors(gpu);
  const programs = enginePrograms(gpu, { models, buffers, capacity, acceptance });
  const words = capacity.batch * resultWords(mostRows(capacity));
  const submitter = await openSubmitter(gpu, buffers.results.buffer, {
    ...{ words, profile },
    ...mail ? { mail } : {},
  });
  return new DeviceCore({ gpu, models, capacity, buffers, programs, submitter });
}

interface Parts {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: Capacity;
  readonly buffers: RoundBuffers;
  readonly programs: Programs;
  readonly submitter: Submitter;
}

class DeviceCore implements Core {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: Capacity;
  readonly programs: Programs;
  readonly #submitter: Submitter;
  readonly pool: PagePool;
  /** Slots that no sequence has; the last is given next. */
  readonly #free: number[];
  readonly #inputs: Inputs;

  constructor({ gpu, models, capacity, buffers, programs, submitter }: Parts) {
    this.gpu = gpu;
    this.models = models;
    this.capacity = capacity;
    this.programs = programs;
    this.#submitter = submitter;
    this.pool = pagePool(capacity.pages);
    this.#free = Array.from({ length: capacity.batch }, (_, i) => capacity.batch - 1 - i);
    this.#inputs = openInputs(gpu, buffers, capacity);
  }

  get created(): Readonly<Created> {
    return this.programs.created;
  }

  get draft(): DraftKind {
    const { draft, standalone } = this.models;
    if (standalone) return "catches up";
    return draft === undefined ? "none" : draft.store === undefined ? "always" : "catches up";
  }

  openSlot(sequence: Sequence): boolean {
    const slot = this.#free.pop();
    if (slot === undefined) return false;
    sequence.slot = slot;
    this.#inputs.writePages(sequence, 0);
    return true;
  }

  closeSlot(sequence: Sequence): void {
    this.#free.push(slotOf(sequence));
    sequence.slot = undefined;
    this.pool.release(sequence.pages.splice(0));
    rewind(sequence, 0);
  }

  async warmUp(shapes: readonly TierShape[], proposed = false): Promise<void> {
    this.#inputs.setBatch([]);
    for (const batch of batchBuckets(this.capacity.batch)) {
      for (const shape of shapes) {
        await this.#submitter.run(await this.programs.round({ ...shape, batch, proposed }));
      }
    }
    await this.programs.makePrompts();
    const { body, draft } = await this.programs.prompt(1);
    await this.#submitter.run({ programs: [body, draft], words: 0 });
  }

  reserve(sequence: Sequence, cells: number): boolean {
    const { pages } = sequence;
    const missing = Math.ceil(cells / PAGE) - pages.length;
    if (missing <= 0) return true;
    const most = tablePages(this.capacity);
    if (pages.length + missing > most) {
      throw new Error(`a sequence holds ${most * PAGE} cells, not ${cells}`);
    }
    if (missing > this.pool.free) return false;
    const first = pages.length;
    for (let i = 0; i < missing; i++) pages.push(this.pool.take() as number);
    this.#inputs.writePages(sequence, first);
    return true;
  }

  setPages(sequence: Sequence, pages: readonly number[]): void {
    if (pages.every((page, i) => page === sequence.pages[i])) return;
    sequence.pages.splice(0, pages.length, ...pages);
    this.#inputs.writePages(sequence, 0);
  }

  setSampling(sequence: Sequence, sampling: Sampling, stopIds: readonly number[] = []): void {
    const words = new Uint32Array(SLOT_WORDS - SLOT_SEED).fill(NOT_A_TOKEN);
    words.set([sampling.seed, sampling.topK]);
    new Float32Array(words.buffer).set([sampling.temperature, sampling.topP, sampling.minP], 2);
    words[SLOT_LIMIT - SLOT_SEED] = sequence.pages.length * PAGE;
    words.set(stopIds.slice(0, MOST_STOPS), SLOT_STOPS - SLOT_SEED);
    this.#inputs.writeSlot(sequence, SLOT_SEED, words);
  }

  async prefill(sequence: Sequence, to: number): Promise<number | undefined> {
    const { ids, stored: from } = sequence;
    const cells = mostCells([sequence]);
    const { body, head, draft, draftHead } = await this.programs.prompt(to - from, cells);
    const done = to === ids.length;
    this.#inputs.writePrompt(sequence, from, to);
    const programs = done ? [body, head, draft, draftHead] : [body, draft];
    const { words } = await this.#submitter.run({ programs, words: resultWords(1) });
    if (this.draft !== "none" && sequence.draftStored === from) sequence.draftStored = to;
    sequence.stored = to;
    if (!done) return undefined;
    const token = words[RESULT_CHOICES] ?? 0;
    ids.push(token);
    return token;
  }

  async catchUp(sequences: readonly Sequence[]): Promise<void> {
    for (const group of lagGroups(sequences, this.capacity.prefillRows)) {
      const rows = group.reduce((sum, { from, to }) => sum + to - from, 0);
      const most = mostCells(group.map(({ sequence }) => sequence));
      const { body, head } = await this.programs.catchUp(rows, group.length, most);
      this.#inputs.writeLags(group);
      await this.#submitter.run({ programs: [body, head], words: 0 });
      for (const { sequence, to } of group) sequence.draftStored = to;
    }
  }

  async rounds(
    sequences: readonly Sequence[],
    { shape, count, depths, proposals }: RoundsAsked,
  ): Promise<RoundResult[]> {
    const cells = mostCells(sequences);
    const proposed = proposals !== undefined;
    if (proposed && count !== 1) throw new Error(`${count} rounds of the same proposals`);
    const batch = sequences.length;
    const work = await this.programs.round({ ...shape, batch, proposed, cells });
    this.#inputs.setBatch(sequences.map(slotOf));
    if (proposals) this.#inputs.setProposals(sequences, proposals);
    else if (shape.depth > 0) this.#inputs.setDepths(sequences, depths);
    const runs = await this.#submitter.repeat(work, count);
    const asked = {
      shape,
      depths: proposals?.map(({ tokens }) => tokens.length) ?? depths,
      extended: this.draft !== "none" && shape.depth > 0,
    };
    return runs.map((ran) => roundResult(sequences, asked, ran));
  }
}

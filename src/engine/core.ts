import { NOT_A_TOKEN } from "../../shaders/choose.ts";
import type { Gpu } from "../gpu/device.ts";
import type { Created } from "../gpu/program.ts";
import {
  MOST_STOPS,
  NO_SLOT,
  PAGE,
  RESULT_CHOICES,
  RESULT_WORDS,
  ROW_WORDS,
  SLOT_LIMIT,
  SLOT_SEED,
  SLOT_STOPS,
  SLOT_WORDS,
} from "../model/rows_layout.ts";
import type { Sampling } from "../speculate/sampling.ts";
import { type Capacity, type RoundBuffers, roundBuffers, tablePages } from "./buffers.ts";
import { lagGroups, nextToken } from "./lag.ts";
import { type LoadedWeights, type Models, prepareModels } from "./models.ts";
import { type PagePool, pagePool } from "./pages.ts";
import { batchBuckets, enginePrograms, type Programs, rowBucket } from "./programs.ts";
import { type RoundResult, roundResult } from "./round_result.ts";
import { mostCells, type Slot, type Slots, slots } from "./slot.ts";
import { heard } from "./turns.ts";
import { openSubmitter, type Submitter } from "./submit.ts";

/** The device side of decoding: slots, prefill and rounds. It knows nothing of text or requests. */
export interface Core {
  readonly gpu: Gpu;
  readonly models: Models;
  readonly capacity: Capacity;
  readonly created: Readonly<Created>;
  /** What rounds and prefill run, for the profile. */
  readonly programs: Programs;
  /** KV pages that no sequence holds. */
  readonly freePages: number;
  /** A slot, or undefined when all are taken. */
  openSlot(): Slot | undefined;
  /**
   * Makes the programs of prefill and of these tiers at every batch bucket, and runs them once with
   * no lane: adapters compile at the first run.
   */
  warmUp(steps: readonly number[]): Promise<void>;
  /** Gives the slot KV pages for `cells` tokens; false when there are not enough left. */
  reserve(slot: Slot, cells: number): boolean;
  /**
   * Sets how the slot's tokens are chosen, and the tokens after which the device does no further
   * round of the slot, up to MOST_STOPS of them: until this is called again.
   */
  setSampling(slot: Slot, sampling: Sampling, stopIds?: readonly number[]): void;
  /**
   * Runs one chunk of a prompt: cells `from` to `to` of `ids`, whose pages are reserved. The chunk
   * that ends the prompt returns its first token; the others return undefined.
   */
  prefill(
    slot: Slot,
    ids: readonly number[],
    from: number,
    to: number,
  ): Promise<number | undefined>;
  /** Brings the draft's keys and values of these slots up to their tokens. */
  catchUp(slots: readonly Slot[]): Promise<void>;
  /**
   * `count` rounds of these slots (1 to MOST_ROUNDS) without the host between them, in their order;
   * pages are reserved for all of them. What a slot stored is in its `tokens`, even where the host
   * will not have it as output.
   */
  rounds(
    slots: readonly Slot[],
    of: { readonly numSteps: number; readonly count: number },
  ): Promise<RoundResult[]>;
}

export async function openCore(
  gpu: Gpu,
  loaded: LoadedWeights,
  capacity: Capacity,
  { profile = false, acceptance }: {
    readonly profile?: boolean;
    /** Probabilities to draw accepted counts with, instead of verifying: for timing. */
    readonly acceptance?: readonly number[];
  } = {},
): Promise<Core> {
  const buffers = roundBuffers(gpu, capacity);
  const models = prepareModels(gpu, loaded, capacity, buffers);
  // A buffer that could not be had would be used from here on.
  await heard(gpu);
  const programs = enginePrograms(gpu, { models, buffers, capacity, acceptance });
  const words = capacity.batch * RESULT_WORDS;
  const submitter = await openSubmitter(gpu, buffers.results.buffer, { words, profile });
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
  readonly #buffers: RoundBuffers;
  readonly programs: Programs;
  readonly #submitter: Submitter;
  readonly #pool: PagePool;
  readonly #slots: Slots;
  /** What `lanes` holds now: written only when the batch changes. */
  #lanes = "unset";

  constructor({ gpu, models, capacity, buffers, programs, submitter }: Parts) {
    this.gpu = gpu;
    this.models = models;
    this.capacity = capacity;
    this.#buffers = buffers;
    this.programs = programs;
    this.#submitter = submitter;
    this.#pool = pagePool(capacity.pages);
    this.#slots = slots(capacity.batch, this.#pool);
  }

  get created(): Readonly<Created> {
    return this.programs.created;
  }

  get freePages(): number {
    return this.#pool.free;
  }

  openSlot(): Slot | undefined {
    return this.#slots.open();
  }

  async warmUp(steps: readonly number[]): Promise<void> {
    this.#setLanes([]);
    for (const batch of batchBuckets(this.capacity.batch)) {
      for (const numSteps of steps) {
        await this.#submitter.run(await this.programs.round({ batch, numSteps }));
      }
    }
    await this.programs.makePrompts();
    const { body, draft } = await this.programs.prompt(1);
    await this.#submitter.run({ programs: [body, draft], words: 0 });
  }

  reserve(slot: Slot, cells: number): boolean {
    const missing = Math.ceil(cells / PAGE) - slot.pages.length;
    if (missing <= 0) return true;
    const most = tablePages(this.capacity);
    if (slot.pages.length + missing > most) {
      throw new Error(`a sequence holds ${most * PAGE} cells, not ${cells}`);
    }
    if (missing > this.#pool.free) return false;
    const taken = Array.from({ length: missing }, () => this.#pool.take() as number);
    const at = slot.id * most + slot.pages.length;
    this.#write(this.#buffers.pages.buffer, at * 4, Uint32Array.from(taken));
    slot.pages.push(...taken);
    this.#writeSlot(slot, SLOT_LIMIT, Uint32Array.of(slot.pages.length * PAGE));
    return true;
  }

  setSampling(slot: Slot, sampling: Sampling, stopIds: readonly number[] = []): void {
    const words = new Uint32Array(SLOT_WORDS - SLOT_SEED).fill(NOT_A_TOKEN);
    words.set([sampling.seed, sampling.topK]);
    new Float32Array(words.buffer).set([sampling.temperature, sampling.topP, sampling.minP], 2);
    words[SLOT_LIMIT - SLOT_SEED] = slot.pages.length * PAGE;
    words.set(stopIds.slice(0, MOST_STOPS), SLOT_STOPS - SLOT_SEED);
    this.#writeSlot(slot, SLOT_SEED, words);
  }

  async prefill(
    slot: Slot,
    ids: readonly number[],
    from: number,
    to: number,
  ): Promise<number | undefined> {
    const cells = mostCells([slot]);
    const { body, head, draft, draftHead } = await this.programs.prompt(to - from, cells);
    const done = to === ids.length;
    this.#writePrompt(slot, ids, from, to);
    const programs = done ? [body, head, draft, draftHead] : [body, draft];
    const { words } = await this.#submitter.run({ programs, words: RESULT_WORDS });
    slot.tokens.splice(from, Infinity, ...ids.slice(from, to));
    slot.draftLength = this.models.draft ? to : 0;
    if (!done) return undefined;
    slot.root = words[RESULT_CHOICES] ?? 0;
    return slot.root;
  }

  async catchUp(slots: readonly Slot[]): Promise<void> {
    for (const group of lagGroups(slots, this.capacity.prefillRows)) {
      const cells = group.flatMap(({ slot, from, to }) =>
        Array.from({ length: to - from }, (_, i) => ({ slot, cell: from + i }))
      );
      const most = mostCells(group.map(({ slot }) => slot));
      const { body, head } = await this.programs.catchUp(cells.length, group.length, most);
      this.#writeRows(this.#buffers.extendRows.buffer, rowBucket(cells.length), cells, nextToken);
      const ends = group.map((_, i) =>
        group.slice(0, i + 1).reduce((sum, { from, to }) => sum + to - from, 0) - 1
      );
      this.#write(this.#buffers.last.buffer, 0, Uint32Array.from(ends));
      this.#setLanes(group.map(({ slot }) => slot.id));
      await this.#submitter.run({ programs: [body, head], words: 0 });
      for (const { slot, to } of group) slot.draftLength = to;
    }
  }

  async rounds(
    slots: readonly Slot[],
    { numSteps, count }: { readonly numSteps: number; readonly count: number },
  ): Promise<RoundResult[]> {
    const cells = mostCells(slots);
    const work = await this.programs.round({ batch: slots.length, numSteps, cells });
    this.#setLanes(slots.map(({ id }) => id));
    const runs = await this.#submitter.repeat(work, count);
    return runs.map((ran) => roundResult(slots, numSteps, ran));
  }

  /** Rows of the chunk and of its draft-extend, whose tokens are one ahead. */
  #writePrompt(slot: Slot, ids: readonly number[], from: number, to: number): void {
    const { rows, extendRows, draftRows, last } = this.#buffers;
    const cells = Array.from({ length: to - from }, (_, i) => ({ slot, cell: from + i }));
    const bucket = rowBucket(cells.length);
    this.#writeRows(rows.buffer, bucket, cells, (_, cell) => ids[cell] ?? 0);
    this.#writeRows(extendRows.buffer, bucket, cells, (_, cell) => ids[cell + 1] ?? 0);
    // `choose` reads the row it chooses for: the chunk's last.
    this.#writeRows(draftRows.buffer, 1, cells.slice(-1), (_, cell) => ids[cell] ?? 0);
    this.#write(last.buffer, 0, Uint32Array.of(cells.length - 1));
    this.#setLanes([slot.id]);
  }

  /** `Row`s of these cells, causal, padded to `count`. */
  #writeRows(
    buffer: GPUBuffer,
    count: number,
    cells: readonly { readonly slot: Slot; readonly cell: number }[],
    token: (slot: Slot, cell: number) => number,
  ): void {
    const words = new Uint32Array(count * ROW_WORDS);
    for (const [i, { slot, cell }] of cells.entries()) {
      words.set([token(slot, cell), cell, slot.id, cell, cell + 1, 0, 0, 1], i * ROW_WORDS);
    }
    this.#write(buffer, 0, words);
  }

  #setLanes(ids: readonly number[]): void {
    const key = ids.join();
    if (key === this.#lanes) return;
    this.#lanes = key;
    const lanes = new Uint32Array(this.capacity.batch).fill(NO_SLOT);
    lanes.set(ids);
    this.#write(this.#buffers.lanes.buffer, 0, lanes);
  }

  /** Writes fields of the slot on the device, from word `field` on. */
  #writeSlot(slot: Slot, field: number, words: Uint32Array): void {
    this.#write(this.#buffers.slots.buffer, (slot.id * SLOT_WORDS + field) * 4, words);
  }

  #write(buffer: GPUBuffer, offset: number, words: Uint32Array): void {
    this.gpu.device.queue.writeBuffer(buffer, offset, words as Uint32Array<ArrayBuffer>);
  }
}

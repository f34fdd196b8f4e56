/** What the host writes for the device before it runs: rows, the batch, block tables, slots, drafts. */
import { NOT_A_TOKEN } from "../../../kernels/lib/rows.ts";
import type { Gpu } from "../../gpu/device.ts";
import {
  ALL_DRAFTS,
  chainRow,
  draftWords,
  MAX_STOPS,
  NO_SLOT,
  PAGE,
  ROW_WORDS,
  SLOT_LIMIT,
  SLOT_MAX_TOKENS,
  SLOT_SEED,
  SLOT_STOPS,
  SLOT_WORDS,
} from "../../model/device_layout.ts";
import type { VerifyBudget } from "../../speculate/policy.ts";
import type { Sampling } from "../../speculate/sampling.ts";
import type { Proposal } from "../../speculate/trees.ts";
import { type EngineSizes, maxRows, type RoundBuffers, tablePages } from "./buffers.ts";
import type { DraftLag } from "./draft_lag.ts";
import { rowBucket } from "./buckets.ts";
import { packBudget } from "./packed/budget.ts";
import { neighbours, packProposal } from "./proposals.ts";
import type { PromptRows } from "./prompt_rows.ts";
import type { PromptChunk, TextEnds } from "./runner.ts";
import { type Sequence, slotOf } from "./sequence.ts";

/** Writes the inputs of programs; what is on the device already is not written again. */
export interface Inputs {
  /**
   * Writes the rows of prompts' chunks and of their draft-extend, whose tokens are one ahead; for prompts that end,
   * also their last rows and slots.
   *
   * @param rows of the chunks.
   * @param heads prompts that end, padding included.
   */
  writePrompts(
    chunks: readonly PromptChunk[],
    rows: PromptRows,
    heads: number,
  ): void;
  /** Writes `rows` rows and `heads` last rows that are all padding, without a slot. */
  writeNoPrompts(rows: number, heads: number): void;
  /** Writes the rows of these cells and of their draft-extend, the last row of each, and their slots. */
  writeLags(lags: readonly DraftLag[]): void;
  /** Writes the sequence's pages from the `first` on into its block table. */
  writePages(sequence: Sequence, first: number): void;
  /** Writes how the sequence's tokens are chosen, and what ends it on the device. */
  writeSampling(sequence: Sequence, sampling: Sampling, ends: TextEnds): void;
  /** Writes the slot of each sequence. */
  setBatch(slots: readonly number[]): void;
  /** Writes the host's drafts of each sequence, undefined where it drafted none. Adjacent slots take one write. */
  setProposals(
    sequences: readonly Sequence[],
    proposals: readonly (Proposal | undefined)[],
  ): void;
  /** Writes how many drafts are verified of each sequence without a proposal; undefined: all. */
  setDepths(
    sequences: readonly Sequence[],
    depths: readonly number[] | undefined,
    proposals?: readonly (Proposal | undefined)[],
  ): void;
  /**
   * Writes the budget by which the device chooses how many drafts of each sequence are verified.
   *
   * @param most drafts of each sequence that may be verified, [sequences].
   */
  setBudget(sequences: readonly Sequence[], budget: VerifyBudget, most: readonly number[]): void;
}

/** Stands for a count of drafts that the device has chosen. */
const CHOSEN_THERE = -1;

export function openInputs(
  gpu: Pick<Gpu, "device">,
  buffers: RoundBuffers,
  capacity: EngineSizes,
): Inputs {
  return new WrittenInputs(gpu, buffers, capacity);
}

interface CellOf {
  readonly sequence: Sequence;
  readonly cell: number;
}

class WrittenInputs implements Inputs {
  readonly #gpu: Pick<Gpu, "device">;
  readonly #buffers: RoundBuffers;
  readonly #capacity: EngineSizes;
  /** What `batchSlots` holds now: written only when the batch changes. */
  #batch = "unset";
  /** How many drafts are verified of each slot of which not all are. */
  readonly #counts = new Map<number, number>();
  /** What `budget` holds now. */
  #budget = "unset";

  constructor(gpu: Pick<Gpu, "device">, buffers: RoundBuffers, capacity: EngineSizes) {
    this.#gpu = gpu;
    this.#buffers = buffers;
    this.#capacity = capacity;
    for (let slot = 0; slot < capacity.batch; slot++) this.#writeDraftCount(slot, ALL_DRAFTS);
  }

  writePrompts(
    chunks: readonly PromptChunk[],
    { firsts, count }: PromptRows,
    heads: number,
  ): void {
    const { rows, extendRows } = this.#buffers;
    const cells: CellOf[] = [];
    const ends: CellOf[] = [];
    const lasts: number[] = [];
    for (const [i, { sequence, to }] of chunks.entries()) {
      const first = (firsts[i] as number) - sequence.stored;
      for (let cell = sequence.stored; cell < to; cell++) cells[first + cell] = { sequence, cell };
      if (to < sequence.ids.length) continue;
      ends.push({ sequence, cell: to - 1 });
      lasts.push(first + to - 1);
    }
    this.#writeRows(rows.buffer, count, cells, 0);
    this.#writeRows(extendRows.buffer, count, cells, 1);
    if (heads > 0) this.#writeEnds(ends, lasts, heads);
  }

  writeNoPrompts(count: number, heads: number): void {
    const { rows, extendRows } = this.#buffers;
    this.#writeRows(rows.buffer, count, [], 0);
    this.#writeRows(extendRows.buffer, count, [], 1);
    this.#writeEnds([], [], Math.max(1, heads));
  }

  /** Writes what the target chooses tokens for: the last cells of prompts, and their rows in the forward. */
  #writeEnds(ends: readonly CellOf[], lasts: readonly number[], heads: number): void {
    const { draftRows, last } = this.#buffers;
    const words = new Uint32Array(heads);
    words.set(lasts);
    this.#writeRows(draftRows.buffer, heads, ends, 0);
    this.#write(last.buffer, 0, words);
    this.setBatch(ends.map(({ sequence }) => slotOf(sequence)));
  }

  writeLags(lags: readonly DraftLag[]): void {
    const { rows, extendRows, last } = this.#buffers;
    const cells: CellOf[] = [];
    const ends = lags.map(({ sequence, from, to }) => {
      for (let cell = from; cell < to; cell++) cells.push({ sequence, cell });
      return cells.length - 1;
    });
    const bucket = rowBucket(cells.length);
    this.#writeRows(rows.buffer, bucket, cells, 0);
    this.#writeRows(extendRows.buffer, bucket, cells, 1);
    this.#write(last.buffer, 0, Uint32Array.from(ends));
    this.setBatch(lags.map(({ sequence }) => slotOf(sequence)));
  }

  /**
   * Writes `count` causal `Row`s of these cells; rows without a cell are padding.
   *
   * @param cells may have holes.
   * @param ahead a row's token is the one this many cells after its own; 0 if it is not known yet.
   */
  #writeRows(buffer: GPUBuffer, count: number, cells: readonly CellOf[], ahead: 0 | 1): void {
    const words = new Uint32Array(count * ROW_WORDS);
    // Unlike a loop, `forEach` leaves holes out.
    cells.forEach(({ sequence, cell }, i) => {
      const token = sequence.ids[cell + ahead] ?? 0;
      words.set(chainRow(token, slotOf(sequence), cell), i * ROW_WORDS);
    });
    this.#write(buffer, 0, words);
  }

  writePages(sequence: Sequence, first: number): void {
    const { pages } = sequence;
    if (first === pages.length) return; // Deno 2.9.6 panics on an empty write
    const at = slotOf(sequence) * tablePages(this.#capacity) + first;
    this.#write(this.#buffers.pages.buffer, at * 4, Uint32Array.from(pages.slice(first)));
    this.#writeSlot(sequence, SLOT_LIMIT, Uint32Array.of(pages.length * PAGE));
  }

  writeSampling(
    sequence: Sequence,
    { seed, topK, temperature, topP, minP }: Sampling,
    { stopIds = [], maxTokens = Infinity }: TextEnds,
  ): void {
    const words = new Uint32Array(SLOT_WORDS - SLOT_SEED).fill(NOT_A_TOKEN);
    words.set([seed, topK]);
    new Float32Array(words.buffer).set([temperature, topP, minP], 2);
    words[SLOT_LIMIT - SLOT_SEED] = sequence.pages.length * PAGE;
    words.set(stopIds.slice(0, MAX_STOPS), SLOT_STOPS - SLOT_SEED);
    if (maxTokens < Infinity) words[SLOT_MAX_TOKENS - SLOT_SEED] = maxTokens;
    this.#writeSlot(sequence, SLOT_SEED, words);
  }

  /** Writes fields of the sequence's slot, from word `field` on. */
  #writeSlot(sequence: Sequence, field: number, words: Uint32Array): void {
    this.#write(this.#buffers.slots.buffer, (slotOf(sequence) * SLOT_WORDS + field) * 4, words);
  }

  setBatch(slots: readonly number[]): void {
    const key = slots.join();
    if (key === this.#batch) return;
    this.#batch = key;
    const batch = new Uint32Array(this.#capacity.batch).fill(NO_SLOT);
    batch.set(slots);
    this.#write(this.#buffers.batchSlots.buffer, 0, batch);
  }

  setProposals(
    sequences: readonly Sequence[],
    proposals: readonly (Proposal | undefined)[],
  ): void {
    const most = maxRows(this.#capacity);
    const size = draftWords(most);
    const given = proposals.flatMap((proposal, i) =>
      proposal ? [{ proposal, slot: slotOf(sequences[i] as Sequence) }] : []
    );
    for (const run of neighbours(given.map(({ slot }) => slot))) {
      const words = new Uint32Array(run.length * size);
      const group = run.map((at) => given[at] as typeof given[number]);
      for (const [i, { proposal, slot }] of group.entries()) {
        words.set(packProposal(proposal, most), i * size);
        this.#counts.set(slot, proposal.tokens.length);
      }
      this.#write(this.#buffers.drafts.buffer, (group[0]?.slot ?? 0) * size * 4, words);
    }
  }

  /** Writes only counts that change: none if all drafts are verified and always were. */
  setDepths(
    sequences: readonly Sequence[],
    depths: readonly number[] | undefined,
    proposals?: readonly (Proposal | undefined)[],
  ): void {
    if (depths === undefined && this.#counts.size === 0) return;
    for (const [i, sequence] of sequences.entries()) {
      if (proposals?.[i]) continue;
      const slot = slotOf(sequence);
      const count = depths?.[i] ?? ALL_DRAFTS;
      if (count === (this.#counts.get(slot) ?? ALL_DRAFTS)) continue;
      if (count === ALL_DRAFTS) this.#counts.delete(slot);
      else this.#counts.set(slot, count);
      this.#writeDraftCount(slot, count);
    }
  }

  setBudget(sequences: readonly Sequence[], budget: VerifyBudget, most: readonly number[]): void {
    for (const sequence of sequences) this.#counts.set(slotOf(sequence), CHOSEN_THERE);
    const words = packBudget(budget, most);
    const key = words.join();
    if (key === this.#budget) return;
    this.#budget = key;
    this.#write(this.#buffers.budget.buffer, 0, words);
  }

  #writeDraftCount(slot: number, count: number): void {
    const at = slot * draftWords(maxRows(this.#capacity)) * 4;
    this.#write(this.#buffers.drafts.buffer, at, Uint32Array.of(count));
  }

  #write(buffer: GPUBuffer, offset: number, words: Uint32Array): void {
    this.#gpu.device.queue.writeBuffer(buffer, offset, words as Uint32Array<ArrayBuffer>);
  }
}

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { NOT_A_TOKEN } from "../../kernels/lib/rows.ts";
import { type EngineSizes, tablePages } from "../../src/engine/device/buffers.ts";
import type { DraftKind, RoundRequest, TextEnds } from "../../src/engine/device/runner.ts";
import { type PagePool, pagePool } from "../../src/engine/device/pages.ts";
import type { RoundResult, SequenceResult } from "../../src/engine/device/round_result.ts";
import type { SchedulerRunner } from "../../src/engine/schedule/scheduler.ts";
import { type Sequence, slotOf } from "../../src/engine/device/sequence.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import { promptRows, promptRun } from "../../src/engine/device/prompt_rows.ts";
import { rowBucket } from "../../src/engine/device/buckets.ts";
import { proposalFault } from "../../src/engine/device/proposals.ts";
import type { DraftShape } from "../../src/speculate/round_shape.ts";
import { NO_PROPOSAL, pathTo, type Proposal } from "../../src/speculate/trees.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import type { Acceptance } from "../reference/acceptance.ts";
import { acceptTree } from "../reference/trees.ts";

export const VOCAB = 97;
export const FAKE_EOS = 1;
/** A prompt with this token gets broken logits some tokens later. */
export const POISON = 96;

const NOTHING: SequenceResult = { accepted: 0, ids: [], drafts: [] };

/** A cell's contents: the token, the draft's pair of this token and the next, whether it has the target's features. */
interface Cell {
  readonly token: number;
  draft: string | undefined;
  readonly features: boolean;
}

export interface FakeRunner extends SchedulerRunner {
  readonly pool: PagePool;
  /** Whether two groups may be in flight; default one. */
  overlaps?: boolean;
  /** Groups that began before a forward of prompts was read. */
  behindPrompts: number;
  states?: SchedulerRunner["states"];
  /** Called at the beginning of everything that takes time. */
  onWork: () => Promise<void>;
}

/** The token after `ids`: a pure function of them, so a text does not depend on who is beside it. */
export function tokenAfter(ids: readonly number[]): number {
  const poisoned = ids.indexOf(POISON);
  if (poisoned >= 0 && ids.length >= poisoned + 9) return NOT_A_TOKEN;
  const hash = ids.slice(-5).reduce((sum, id) => hash32(sum, id, 7), ids.length);
  return hash % 71 === 0 ? FAKE_EOS : 2 + hash % (POISON - 2);
}

/** What the target makes of a proposal after `text`. */
function verified(proposal: Proposal, shape: DraftShape, text: readonly number[]): Acceptance {
  assert.equal(proposalFault(proposal, { ...shape, vocabSize: VOCAB }), undefined);
  const choices = [0, ...proposal.tokens].map((_, row) => {
    const drafted = pathTo(proposal, row).slice(1).map((at) => proposal.tokens[at - 1] as number);
    return tokenAfter([...text, ...drafted]);
  });
  return acceptTree(proposal, choices);
}

/** What the target accepts of `depth` drafts that a drafter on the device makes. */
function drawn(text: readonly number[], depth: number): Acceptance {
  const accepted = hash32(text.length, text.at(-1) ?? 0, 3) % (depth + 1);
  const ids: number[] = [];
  for (let i = 0; i <= accepted; i++) ids.push(tokenAfter([...text, ...ids]));
  return { accepted, ids };
}

/**
 * A runner without a device. It keeps the tokens of every KV cell in pages, as the device would, and
 * reads each text from the pages of the sequence's slot: a page in wrong hands is a wrong text.
 */
export function fakeRunner(capacity: EngineSizes, draft: DraftKind = "catches up"): FakeRunner {
  const pool = pagePool(capacity.pages);
  const cells: (Cell | undefined)[] = Array(capacity.pages * PAGE);
  /** Block table by slot. */
  const tables = new Map<number, number[]>();
  const free = Array.from({ length: capacity.batch }, (_, i) => i);
  /** Pages and stored tokens of those that have left. */
  const left = new WeakMap<Sequence, { pages: readonly number[]; stored: number }>();
  const limits = new Map<number, Required<TextEnds> & { stopped: boolean }>();

  const at = (sequence: Sequence, cell: number): number => {
    const page = tables.get(slotOf(sequence))?.[Math.floor(cell / PAGE)];
    assert.ok(page !== undefined, `cell ${cell} has no page`);
    assert.ok(pool.references(page) > 0, `page ${page} is free`);
    return page * PAGE + cell % PAGE;
  };
  const write = (sequence: Sequence, cell: number, features: boolean, drafted: boolean) => {
    const [token, next] = [sequence.ids[cell], sequence.ids[cell + 1]];
    assert.ok(token !== undefined, `cell ${cell} has no token`);
    const place = at(sequence, cell);
    assert.ok(pool.references(place / PAGE | 0) === 1, "wrote into a shared page");
    cells[place] = { token, draft: drafted ? `${token} ${next}` : undefined, features };
  };
  /** The tokens of the cells, as attention would see them. */
  const read = (sequence: Sequence, length: number): number[] =>
    Array.from({ length }, (_, cell) => cells[at(sequence, cell)]?.token ?? -1);

  /** Asserts that the draft has the right entry for each cell that is said to be stored. */
  const checkDraft = (sequence: Sequence) => {
    if (draft === "none") return assert.equal(sequence.draftStored, 0);
    for (let cell = 0; cell < sequence.draftStored; cell++) {
      const pair = `${sequence.ids[cell]} ${sequence.ids[cell + 1]}`;
      assert.equal(cells[at(sequence, cell)]?.draft, pair, `draft of cell ${cell}`);
    }
  };

  /** Groups that have begun and are not read. */
  let begun = 0;
  const runner: FakeRunner = {
    ranks: false,
    compileMs: 0,
    capacity,
    pool,
    draft,
    behindPrompts: 0,
    onWork: () => Promise.resolve(),
    openSlot(sequence) {
      const slot = free.shift();
      if (slot === undefined) return false;
      sequence.slot = slot;
      tables.set(slot, [...sequence.pages]);
      return true;
    },
    closeSlot(sequence) {
      const slot = slotOf(sequence);
      left.set(sequence, { pages: [...sequence.pages], stored: sequence.stored });
      free.push(slot);
      tables.delete(slot);
      limits.delete(slot);
      sequence.slot = undefined;
      pool.release(sequence.pages.splice(0));
      sequence.stored = sequence.draftStored = 0;
    },
    reserve(sequence, count) {
      const missing = Math.ceil(count / PAGE) - sequence.pages.length;
      assert.ok(count <= tablePages(capacity) * PAGE, "more pages than a row of the block table");
      assert.ok(missing <= 0 || begun === 0 || !runner.states, "pages while a group is unread");
      if (missing > pool.free) return false;
      for (let i = 0; i < missing; i++) sequence.pages.push(pool.take() as number);
      tables.set(slotOf(sequence), [...sequence.pages]);
      return true;
    },
    setPages(sequence, pages) {
      sequence.pages.splice(0, pages.length, ...pages);
      tables.set(slotOf(sequence), [...sequence.pages]);
    },
    setSampling(sequence, _, { stopIds = [], maxTokens = Infinity } = {}) {
      limits.set(slotOf(sequence), { stopIds, maxTokens, stopped: false });
    },
    async prefill(chunks, _onCompile, whileRunning) {
      assert.equal(begun, 0, "what has begun is read first");
      await runner.onWork();
      assert.equal(new Set(chunks.map(({ sequence }) => slotOf(sequence))).size, chunks.length);
      const tokens = chunks.map(({ sequence, to }) => to - sequence.stored);
      const { count, firsts } = promptRows(tokens, promptRun(capacity));
      assert.ok(count <= rowBucket(capacity.prefillRows) && firsts.length === chunks.length);
      const tokensChosen = chunks.map(({ sequence, to }) => {
        assert.ok(to > sequence.stored && to <= sequence.ids.length);
        assert.deepEqual(read(sequence, sequence.stored), sequence.ids.slice(0, sequence.stored));
        const done = to === sequence.ids.length;
        const from = sequence.stored;
        if (done) sequence.ids.push(tokenAfter(sequence.ids));
        for (let cell = from; cell < to; cell++) write(sequence, cell, false, draft !== "none");
        if (draft !== "none" && sequence.draftStored === from) sequence.draftStored = to;
        sequence.stored = to;
        checkDraft(sequence);
        return done ? { id: sequence.ids.pop() as number, logprobs: undefined } : undefined;
      });
      if (runner.overlaps) {
        begun++;
        const before = begun;
        await whileRunning?.();
        if (begun > before) runner.behindPrompts++;
        begun--;
      }
      // The host knows the tokens only now.
      for (const [i, { sequence }] of chunks.entries()) {
        const chosen = tokensChosen[i];
        if (chosen) sequence.ids.push(chosen.id);
      }
      return tokensChosen;
    },
    async catchUp(sequences) {
      assert.equal(begun, 0, "what has begun is read first");
      await runner.onWork();
      for (const sequence of sequences) {
        for (let cell = sequence.draftStored; cell < sequence.stored; cell++) {
          const found = cells[at(sequence, cell)];
          assert.ok(found?.features, `no features of cell ${cell} to catch up from`);
          found.draft = `${sequence.ids[cell]} ${sequence.ids[cell + 1]}`;
        }
        sequence.draftStored = sequence.stored;
      }
    },
    begin(sequences, asked) {
      assert.ok(sequences.length > 0);
      assert.equal(new Set(sequences.map(slotOf)).size, sequences.length);
      assert.ok(begun < (runner.overlaps ? 2 : 1), "what has begun is read first");
      begun++;
      return Promise.resolve({
        results() {
          begun--;
          return run(sequences, asked);
        },
      });
    },
  };

  /** Writes what rounds in flight still write for a sequence that has left, into the pages that it had. */
  function goOn(sequence: Sequence, count: number): void {
    const { pages, stored } = left.get(sequence) ?? { pages: [], stored: 0 };
    const end = sequence.slot === undefined ? stored + count : stored;
    for (let cell = stored; cell < Math.min(end, pages.length * PAGE); cell++) {
      const page = pages[Math.floor(cell / PAGE)] as number;
      cells[page * PAGE + cell % PAGE] = { token: -1, draft: undefined, features: false };
    }
  }

  /** Runs rounds for the sequences that still have a slot. */
  async function run(
    sequences: readonly Sequence[],
    { shape, count, depths, proposals, deviceDepth = 0, maskFor }: RoundRequest,
  ): Promise<RoundResult[]> {
    await runner.onWork();
    assert.ok(capacity.shapes.some((one) => isDeepStrictEqual(one, shape)), "no such shape");
    if (proposals) {
      assert.deepEqual([count, proposals.length], [1, sequences.length]);
      assert.ok(deviceDepth <= shape.depth);
    }
    await maskFor?.(sequences.map((_, i) => proposals?.[i] ?? NO_PROPOSAL));
    for (const sequence of sequences) goOn(sequence, count * shape.rows);
    return Array.from({ length: count }, (): RoundResult => {
      const results = sequences.map((sequence, i) =>
        sequence.slot === undefined ? NOTHING : lane(sequence, shape, {
          depth: depths?.[i] ?? (proposals ? deviceDepth : shape.depth),
          proposal: proposals?.[i],
        })
      );
      return { sequences: results, draftMs: 1, verifyMs: 1, extendMs: 1 };
    });
  }

  function lane(
    sequence: Sequence,
    shape: DraftShape,
    { depth, proposal }: { readonly depth: number; readonly proposal: Proposal | undefined },
  ): SequenceResult {
    const limit = limits.get(slotOf(sequence));
    assert.ok(limit && sequence.stored === sequence.ids.length - 1);
    const room = sequence.pages.length * PAGE;
    if (limit.stopped || sequence.stored + shape.rows > room) {
      return NOTHING;
    }
    if (shape.depth > 0 && draft === "catches up") {
      assert.equal(sequence.draftStored, sequence.stored, "drafts without having caught up");
    }
    const text = [...read(sequence, sequence.stored), sequence.ids.at(-1) as number];
    assert.deepEqual(text, sequence.ids);
    const { accepted, ids } = proposal
      ? verified(proposal, shape, text)
      : drawn(text, Math.min(depth, shape.depth));
    const from = sequence.stored;
    sequence.ids.push(...ids);
    sequence.stored = sequence.ids.length - 1;
    const drafted = draft !== "none" && shape.depth > 0;
    // As the engine: where every tier drafts, nothing is kept for the draft to catch up from.
    const features = draft === "catches up" && shape.depth === 0;
    for (let cell = from; cell < sequence.stored; cell++) {
      write(sequence, cell, features, drafted);
    }
    if (drafted && sequence.draftStored === from) sequence.draftStored = sequence.stored;
    checkDraft(sequence);
    const ends = (id: number) => limit.stopIds.includes(id) || id === NOT_A_TOKEN;
    if (ids.some(ends) || sequence.ids.length >= limit.maxTokens) limit.stopped = true;
    return { accepted, ids, drafts: proposal?.tokens ?? Array(depth).fill(0) };
  }

  return runner;
}

/** Places for states, of which none is ever stored. */
export const NO_STATES: NonNullable<SchedulerRunner["states"]> = {
  count: 1,
  spaced: false,
  saving: undefined,
  mayHave: () => true,
  save: () => 0,
  load: () => {},
};

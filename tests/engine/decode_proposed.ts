/** Decodes on a runner with drafts that a test chooses, and keeps what must not depend on them. */
import assert from "node:assert/strict";
import type { Runner } from "../../src/engine/device/runner.ts";
import { newSequence, type Sequence } from "../../src/engine/device/sequence.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { chain, type DraftShape } from "../../src/speculate/round_shape.ts";
import type { Proposal } from "../../src/speculate/trees.ts";

export interface Decoded {
  readonly ids: number[];
  /** The log-probability of each id, compared to the bit. */
  readonly logprobs: number[];
}

/** How prompts are decoded together. */
export interface ProposedDecoding {
  /** Most rows of a prompt in a forward. */
  readonly chunk: number;
  /** Tokens decoded of each prompt. */
  readonly most: number;
  /** Cells reserved for each. */
  readonly context: number;
  /** Shape of the drafts; default: no drafts. */
  readonly shape?: DraftShape;
  /** What plain decoding gives of each prompt, from which drafts are made. */
  readonly expected?: readonly Decoded[];
  /**
   * Drafts for a sequence that goes on with `next`, of which the first `right` are right; `turn` changes with round and
   * sequence.
   */
  propose(next: readonly number[], right: number, turn: number): Proposal;
}

/** Decodes prompts together. Drafts are right up to a place, which changes with round and sequence. */
export async function decodeProposed(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  { chunk, most, context, shape = chain(0), expected = [], propose }: ProposedDecoding,
): Promise<Decoded[]> {
  const sequences = prompts.map((ids) => newSequence(ids));
  const found = prompts.map((): Decoded => ({ ids: [], logprobs: [] }));
  const put = (i: number, id: number, logprob: number | undefined) => {
    if (found[i]!.ids.length >= most) return;
    found[i]!.ids.push(id);
    found[i]!.logprobs.push(logprob ?? NaN);
  };
  for (const sequence of sequences) {
    assert.ok(runner.openSlot(sequence));
    assert.ok(runner.reserve(sequence, context));
    runner.setSampling(sequence, GREEDY);
  }
  const accepted = new Set<number>();
  try {
    await prefillAll(runner, sequences, chunk, put);
    for (let round = 0; found.some(({ ids }) => ids.length < most); round++) {
      const proposals = found.map(({ ids }, i) => {
        const next = expected[i]?.ids.slice(ids.length) ?? [];
        return propose(next, (3 * round + i) % (shape.depth + 1), round + i);
      });
      const asked = { shape, count: 1, logprobs: 0 };
      const [result] = await runner.rounds(sequences, {
        ...asked,
        ...shape.depth > 0 && { proposals },
      });
      for (const [i, { ids, logprobs, ...of }] of result!.sequences.entries()) {
        accepted.add(of.accepted);
        for (const [j, id] of ids.entries()) put(i, id, logprobs?.[j]?.logprob);
      }
    }
    assert.deepEqual([...accepted].toSorted(), [...Array(shape.depth + 1).keys()]);
    return found;
  } finally {
    for (const sequence of sequences) runner.closeSlot(sequence);
  }
}

/** Stores the prompts: each forward has a chunk of every prompt that is not stored yet. */
export async function prefillAll(
  runner: Runner,
  sequences: readonly Sequence[],
  chunk: number,
  put: (i: number, id: number, logprob: number | undefined) => void,
): Promise<void> {
  const left = new Set(sequences);
  while (left.size > 0) {
    const chunks = [...left].map((sequence) => ({
      sequence,
      to: Math.min(sequence.ids.length, sequence.stored + chunk),
      logprobs: 0,
    }));
    const tokens = await runner.prefill(chunks);
    for (const [i, { sequence }] of chunks.entries()) {
      const token = tokens[i];
      if (token === undefined) continue;
      left.delete(sequence);
      put(sequences.indexOf(sequence), token.id, token.logprobs?.logprob);
    }
  }
}

import { draftWords } from "../../../model/plan/rows_layout.ts";
import type { TierShape } from "../../../speculate/round_shape.ts";
import { NO_PROPOSAL, type Proposal } from "../../../speculate/trees.ts";
import { type Capacity, mostRows, type RoundBuffers } from "../buffers.ts";
import type { RoundPrograms } from "../programs.ts";
import { unpackProposal } from "../proposals.ts";
import { type Sequence, slotOf } from "../sequence.ts";
import type { Ran, Submitter } from "../submit.ts";

/** What runs a round in two submissions, and what it drafts into. */
interface Device {
  readonly submitter: Submitter;
  readonly buffers: Pick<RoundBuffers, "drafts">;
  readonly capacity: Capacity;
}

/** A round whose masks are made once its drafts are known: they are read where the device drafts. */
export async function maskedRound(
  { submitter, buffers: { drafts }, capacity }: Device,
  { draft, verify, extend, ...work }: RoundPrograms,
  { sequences, shape, proposals, setMasks }: {
    readonly sequences: readonly Sequence[];
    readonly shape: TierShape;
    readonly proposals: readonly Proposal[] | undefined;
    readonly setMasks: (proposals: readonly Proposal[]) => Promise<void>;
  },
): Promise<Ran> {
  if (proposals || shape.depth === 0) {
    await setMasks(proposals ?? sequences.map(() => NO_PROPOSAL));
    return await submitter.run(work);
  }
  const most = mostRows(capacity);
  const size = draftWords(most);
  const extra = { buffer: drafts.buffer, words: capacity.batch * size };
  const drafted = await submitter.run({ programs: [draft], words: 0, extra });
  await setMasks(sequences.map((sequence) => {
    const at = slotOf(sequence) * size;
    return unpackProposal(drafted.extra.subarray(at, at + size), shape, most);
  }));
  const verified = await submitter.run({ ...work, programs: [verify, extend] });
  return { ...verified, ms: [...drafted.ms, ...verified.ms] };
}

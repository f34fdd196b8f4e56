import { readsMasks } from "../../../../kernels/sample/adjust.ts";
import type { Gpu } from "../../../gpu/device.ts";
import { submit } from "../../../gpu/program.ts";
import { draftWords } from "../../../model/device_layout.ts";
import type { DraftShape } from "../../../speculate/round_shape.ts";
import { NO_PROPOSAL, type Proposal } from "../../../speculate/trees.ts";
import { type EngineSizes, maxRows, type RoundBuffers } from "../buffers.ts";
import type { RoundPrograms } from "../programs.ts";
import { unpackProposal } from "../proposals.ts";
import { type Sequence, slotOf } from "../sequence.ts";
import type { RunResult, Submitter } from "../submit/submit.ts";

/** What runs a round in several submissions, and what it drafts into. */
interface Device {
  readonly gpu: Gpu;
  readonly submitter: Submitter;
  /** Its programs are timed. */
  readonly profile: boolean;
  readonly buffers: Pick<RoundBuffers, "drafts">;
  readonly capacity: EngineSizes;
}

/**
 * Runs a round whose masks are made once its drafts are known; drafts of the device are read back for that. The
 * target's forward runs while the masks are made, unless each program is timed.
 */
export async function maskedRound(
  { gpu, submitter, profile, buffers: { drafts }, capacity }: Device,
  { draft, verify, extend, ...work }: RoundPrograms,
  { sequences, shape, proposals, setMasks }: {
    readonly sequences: readonly Sequence[];
    readonly shape: DraftShape;
    /** Proposals of the host; the device drafts for the other sequences. */
    readonly proposals: readonly (Proposal | undefined)[] | undefined;
    readonly setMasks: (proposals: readonly Proposal[]) => Promise<void>;
  },
): Promise<RunResult> {
  const verified = async (proposals: readonly Proposal[]) => {
    const at = profile ? 0 : verify.steps.findIndex(readsMasks);
    if (at > 0) submit(gpu, { steps: verify.steps.slice(0, at) });
    await setMasks(proposals);
    return await submitter.run({ ...work, programs: [{ steps: verify.steps.slice(at) }, extend] });
  };
  const known = shape.depth === 0
    ? sequences.map(() => NO_PROPOSAL)
    : proposals?.filter((proposal) => proposal !== undefined) ?? [];
  if (known.length === sequences.length) {
    const ran = await verified(known);
    return { ...ran, ms: profile ? [0, ...ran.ms] : [] };
  }
  const most = maxRows(capacity);
  const size = draftWords(most);
  const extra = { buffer: drafts.buffer, words: capacity.batch * size };
  const drafted = await submitter.run({ programs: [draft], words: 0, extra });
  const ran = await verified(sequences.map((sequence, i) => {
    if (proposals?.[i]) return proposals[i];
    const at = slotOf(sequence) * size;
    return unpackProposal(drafted.extra.subarray(at, at + size), shape, most);
  }));
  return { ...ran, ms: [...drafted.ms, ...ran.ms] };
}

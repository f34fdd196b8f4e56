import type { TierShape } from "../speculate/round_shape.ts";
import type { Proposal } from "../speculate/trees.ts";

/** How much a proposal may have in the round to come. */
export interface ProposalRoom {
  /** Tokens. */
  readonly count: number;
  /** Levels below the pending token; more could not become output. */
  readonly depth: number;
}

/**
 * Drafts on the host, from a sequence's text alone. Whatever it proposes, the text is that of plain
 * decoding; only the speed depends on it.
 */
export interface HostDrafter {
  /** For messages. */
  readonly name: string;
  /** The most that it proposes, for which the engine makes its programs and buffers. */
  readonly shape: TierShape;
  /**
   * A pure function of its arguments. `NO_PROPOSAL` where it has no idea: a round in which no
   * sequence has one goes to the device's drafter, or is one step of plain decoding.
   *
   * @param ids prompt and output so far, the last one is the pending token.
   */
  propose(ids: readonly number[], room: ProposalRoom): Proposal;
}

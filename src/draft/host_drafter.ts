import type { DraftShape } from "../speculate/round_shape.ts";
import type { Proposal } from "../speculate/trees.ts";

/** The limits of a proposal for the next round. */
export interface ProposalRoom {
  /** Tokens. */
  readonly count: number;
  /** The most levels below the pending token; deeper tokens could not become output. */
  readonly depth: number;
  /** Tokens that the device drafts where nothing is proposed; 0 where it has no drafter. */
  readonly device: number;
}

/**
 * Drafts on the host, from the text alone. Whatever it proposes, the text is that of plain decoding;
 * only the speed depends on it.
 */
export interface HostDrafter {
  /** For messages and statistics: the algorithm. */
  readonly name: string;
  /**
   * The round shapes that the engine makes programs and buffers for, rising in depth and rows. A round runs
   * with the first shape that holds its proposals; the last shape is the largest.
   */
  readonly shapes: readonly DraftShape[];
  /** Whether it drafts from a request's predicted output; "only": from nothing else. Default false. */
  readonly predicts?: boolean | "only";
  /**
   * Begins a request. A drafter with `predicts` "only" is not opened for requests without a prediction.
   *
   * @param prediction token ids, where the request has some and the drafter `predicts`.
   */
  open(promptIds: readonly number[], prediction?: readonly number[]): RequestDrafter;
  /** Called while the device works, for work that does not have to be done between two rounds. */
  readonly meanwhile?: () => void;
}

/** What the host drafts for a sequence. */
export interface HostProposal extends Proposal {
  /** Whether the proposal comes from the request's prediction; default false. */
  readonly predicted?: boolean | undefined;
}

/** Drafts for one request. */
export interface RequestDrafter {
  /**
   * Returns the drafts of the next round. `NO_PROPOSAL` leaves the sequence to the device's drafter; without
   * one the round is a step of plain decoding for it.
   *
   * @param ids prompt and output so far, the last one is the pending token. They begin with those of
   * the call before.
   */
  propose(ids: readonly number[], room: ProposalRoom): HostProposal;
  /** Called with the result of a round that the device drafted, before `propose` for the next round. */
  readonly learn?: (round: DeviceRound) => void;
  /** The request has ended with these ids, prompt and output. */
  readonly close?: (ids: readonly number[]) => void;
}

/** How many of the device's drafts of a sequence were accepted. */
export interface DeviceRound {
  readonly drafted: number;
  readonly accepted: number;
}

/** A drafter that remembers nothing: what it proposes is a function of text and room. */
export function pureDrafter(
  { propose, ...drafter }:
    & Pick<HostDrafter, "name" | "shapes">
    & Pick<RequestDrafter, "propose">,
): HostDrafter {
  return { ...drafter, open: () => ({ propose }) };
}

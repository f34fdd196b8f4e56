import type { DraftShape } from "../speculate/round_shape.ts";
import type { Proposal } from "../speculate/trees.ts";

/** How much a proposal may have in the round to come. */
export interface ProposalRoom {
  /** Tokens. */
  readonly count: number;
  /** Levels below the pending token; more could not become output. */
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
   * The rounds that the engine makes programs and buffers for, rising in depth and rows: a round has
   * the first that holds what is proposed for it, and the last holds the most.
   */
  readonly shapes: readonly DraftShape[];
  /** Whether it drafts from what an output is predicted to be, "only" from that; default false. */
  readonly predicts?: boolean | "only";
  /**
   * Begins with a request; one that predicts only is not asked for others.
   *
   * @param prediction token ids, where the request has some and the drafter `predicts`.
   */
  open(promptIds: readonly number[], prediction?: readonly number[]): RequestDrafter;
  /** Called while the device works: what does not have to be done between two rounds. */
  readonly meanwhile?: () => void;
}

/** What the host drafts for a sequence. */
export interface HostProposal extends Proposal {
  /** The request's prediction says so; default false. */
  readonly predicted?: boolean | undefined;
}

/** Drafts for one request. */
export interface RequestDrafter {
  /**
   * `NO_PROPOSAL` leaves the sequence to the device's drafter; where there is none the round is one
   * step of plain decoding for it.
   *
   * @param ids prompt and output so far, the last one is the pending token. They begin with those of
   * the call before.
   */
  propose(ids: readonly number[], room: ProposalRoom): HostProposal;
  /** A round that the device drafted for, before `propose` is asked for the next. */
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

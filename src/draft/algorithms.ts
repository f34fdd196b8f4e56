import { guessDrafter } from "./guess_drafter.ts";
import type { HostDrafter } from "./host_drafter.ts";
import { NGRAM_RANGE, ngramGuesser, type NgramRange } from "./ngram.ts";
import { suffixGuesser } from "./suffix.ts";

/** `--drafter`s that draft on the host; HYBRID together with a draft model if there is one. */
export const HOST_ALGORITHMS = ["NGRAM", "SUFFIX", "HYBRID"] as const;

export type HostAlgorithm = typeof HOST_ALGORITHMS[number];

/** Verify rows of each sequence, its pending token included; the same default as SGLang's NGRAM. */
export const HOST_DRAFT_TOKENS = 12;

/** How a drafter on the host is made. Plain data, which may be sent to a worker. */
export interface HostDraft extends Partial<NgramRange> {
  /** Most tokens of a proposal. */
  readonly depth?: number;
}

export function isHostAlgorithm(name: string | undefined): name is HostAlgorithm {
  return HOST_ALGORITHMS.some((each) => each === name);
}

export function hostDrafter(
  algorithm: HostAlgorithm,
  { depth = HOST_DRAFT_TOKENS - 1, min = NGRAM_RANGE.min, max = NGRAM_RANGE.max }: HostDraft = {},
): HostDrafter {
  const guessers = {
    NGRAM: () => [ngramGuesser({ min, max })],
    SUFFIX: () => [suffixGuesser()],
    HYBRID: () => [suffixGuesser(), ngramGuesser({ min, max })],
  };
  return guessDrafter(algorithm, guessers[algorithm](), { depth });
}

/** Drafts only for requests with a prediction; used if the engine has no other drafter on the host. */
export function predictionDrafter(): HostDrafter {
  return guessDrafter("PREDICTION", [], { depth: HOST_DRAFT_TOKENS - 1 });
}

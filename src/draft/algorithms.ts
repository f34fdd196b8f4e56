/** Drafters on the host by name: a new one takes its file and a row here. */
import { guessDrafter } from "./guess_drafter.ts";
import type { HostDrafter } from "./host_drafter.ts";
import { NGRAM_RANGE, ngramGuesser, type NgramRange } from "./ngram.ts";
import { suffixGuesser } from "./suffix.ts";

/** Verify rows of each sequence, its pending token included; the same default as SGLang's NGRAM. */
export const HOST_DRAFT_TOKENS = 12;

/** How a drafter on the host is made. Plain data, which may be sent to a worker. */
export interface HostDraft extends Partial<NgramRange> {
  /** Most tokens of a proposal. */
  readonly depth?: number;
}

/** A kind of drafter on the host. */
interface HostKind {
  readonly make: (options: Required<HostDraft>) => HostDrafter;
  /** Whether a draft model drafts where it proposes nothing, if there is one; default: it drafts alone. */
  readonly besideModel?: true;
  /** Whether `:min=N,max=N` behind the name bounds how many tokens match; default: it takes no options. */
  readonly ranged?: true;
}

// `as`, because isolatedDeclarations reads the names off the rows without inferring their types.
const KINDS = {
  NGRAM: {
    make: ({ depth, ...range }) => guessDrafter("NGRAM", [ngramGuesser(range)], { depth }),
    ranged: true,
  } as HostKind,
  SUFFIX: {
    make: ({ depth }) => guessDrafter("SUFFIX", [suffixGuesser()], { depth }),
  } as HostKind,
  HYBRID: {
    make: ({ depth, ...range }) =>
      guessDrafter("HYBRID", [suffixGuesser(), ngramGuesser(range)], { depth }),
    besideModel: true,
    ranged: true,
  } as HostKind,
};

/** A `--drafter` that drafts on the host. */
export type HostAlgorithm = keyof typeof KINDS;

export const HOST_ALGORITHMS: readonly HostAlgorithm[] = Object.keys(KINDS) as HostAlgorithm[];

/** The one that drafts where no draft model is known. */
export const DEFAULT_HOST_ALGORITHM: HostAlgorithm = "SUFFIX";

export function isHostAlgorithm(name: string | undefined): name is HostAlgorithm {
  return name !== undefined && Object.hasOwn(KINDS, name);
}

/** Whether this is the name of a host drafter that runs without a draft model. */
export function draftsAlone(name: string | undefined): boolean {
  return isHostAlgorithm(name) && KINDS[name].besideModel !== true;
}

/** Whether a drafter of this name takes `:min=N,max=N`. */
export function isRanged(name: string | undefined): boolean {
  return isHostAlgorithm(name) && KINDS[name].ranged === true;
}

export function hostDrafter(
  algorithm: HostAlgorithm,
  { depth = HOST_DRAFT_TOKENS - 1, min = NGRAM_RANGE.min, max = NGRAM_RANGE.max }: HostDraft = {},
): HostDrafter {
  return KINDS[algorithm].make({ depth, min, max });
}

/** Drafts only for requests with a prediction; used if the engine has no other drafter on the host. */
export function predictionDrafter(): HostDrafter {
  return guessDrafter("PREDICTION", [], { depth: HOST_DRAFT_TOKENS - 1 });
}

import { HOST_ALGORITHMS, type HostAlgorithm, isRanged } from "../../draft/algorithms.ts";
import { NGRAM_RANGE, type NgramRange } from "../../draft/ngram.ts";

/** Kinds of draft models, and none. */
export const MODEL_DRAFTERS = ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NONE"] as const;

/** Names of `--drafter`. */
export type DrafterName = typeof MODEL_DRAFTERS[number] | HostAlgorithm;

/** All that `--drafter` takes where requests are answered. */
export const DRAFTERS: readonly DrafterName[] = [
  ...MODEL_DRAFTERS.filter((name) => name !== "NONE"),
  ...HOST_ALGORITHMS,
  "NONE",
];

/** Who drafts. */
export interface DrafterChoice<Name extends DrafterName = DrafterName> {
  readonly name: Name;
  /** Fewest and most tokens that it matches; undefined where not given. */
  readonly ngram: NgramRange | undefined;
}

/** Longest match that can be asked for. */
const MAX_MATCH = 64;

/** Those that take `:min=N,max=N`. */
export const RANGED: string = HOST_ALGORITHMS.filter(isRanged).join(" and ");

/** What `--drafter` accepts, as a phrase. */
export const DRAFTER_TEXT: string = `one of ${DRAFTERS.join(", ")}; ${RANGED} with ` +
  `:min=N,max=N from 1 to ${MAX_MATCH}`;

/**
 * Reads a drafter as `--drafter` takes it: `NAME`, or `NAME:min=N,max=N` for one that matches n-grams. Case
 * does not matter. Undefined for anything else.
 */
export function drafterOf<Name extends DrafterName = DrafterName>(
  text: string | undefined,
  names: readonly Name[] = DRAFTERS as readonly Name[],
): DrafterChoice<Name> | undefined {
  const [typed = "", range] = text?.split(":") ?? [];
  const name = names.find((name) => name === typed.toUpperCase());
  if (name === undefined || text?.endsWith(":")) return undefined;
  if (range === undefined) return { name, ngram: undefined };
  const ngram = rangeOf(range);
  return ngram && isRanged(name) ? { name, ngram } : undefined;
}

function rangeOf(text: string): NgramRange | undefined {
  const range = { ...NGRAM_RANGE };
  for (const part of text.split(",")) {
    const [, key, value] = /^(min|max)=(\d+)$/.exec(part.trim()) ?? [];
    if (key === undefined) return undefined;
    range[key as "min" | "max"] = Number(value);
  }
  const { min, max } = range;
  return min >= 1 && min <= max && max <= MAX_MATCH ? range : undefined;
}

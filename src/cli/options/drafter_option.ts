import { NGRAM_RANGE, type NgramRange } from "../../draft/ngram.ts";

/** Kinds of draft models, and none. */
export const MODEL_DRAFTERS = ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NONE"] as const;

/** All that `--drafter` takes where requests are answered. */
export const DRAFTERS = [
  "EAGLE",
  "EAGLE3",
  "NEXTN",
  "STANDALONE",
  "NGRAM",
  "SUFFIX",
  "HYBRID",
  "NONE",
] as const;

/** Names of `--drafter`. */
export type DrafterName = typeof DRAFTERS[number];

/** Who drafts. */
export interface DrafterChoice<Name extends DrafterName = DrafterName> {
  readonly name: Name;
  /** Fewest and most tokens that NGRAM, or the n-gram part of HYBRID, matches; undefined where not given. */
  readonly ngram: NgramRange | undefined;
}

/** Longest match that can be asked for. */
const MOST_MATCH = 64;

/** What `--drafter` accepts, as a phrase. */
export const DRAFTER_TEXT: string = `one of ${DRAFTERS.join(", ")}; NGRAM and HYBRID with ` +
  `:min=N,max=N from 1 to ${MOST_MATCH}`;

/**
 * Reads a drafter as `--drafter` takes it: `NAME`, or `NAME:min=N,max=N` for one that matches n-grams. Case
 * does not matter. Undefined for anything else.
 */
export function drafterOf<Name extends DrafterName = DrafterName>(
  text: string | undefined,
  names: readonly Name[] = DRAFTERS as readonly DrafterName[] as readonly Name[],
): DrafterChoice<Name> | undefined {
  const [typed = "", range] = text?.split(":") ?? [];
  const name = names.find((name) => name === typed.toUpperCase());
  if (name === undefined || text?.endsWith(":")) return undefined;
  if (range === undefined) return { name, ngram: undefined };
  const ngram = rangeOf(range);
  return ngram && (name === "NGRAM" || name === "HYBRID") ? { name, ngram } : undefined;
}

function rangeOf(text: string): NgramRange | undefined {
  const range = { ...NGRAM_RANGE };
  for (const part of text.split(",")) {
    const [, key, value] = /^(min|max)=(\d+)$/.exec(part.trim()) ?? [];
    if (key === undefined) return undefined;
    range[key as "min" | "max"] = Number(value);
  }
  const { min, max } = range;
  return min >= 1 && min <= max && max <= MOST_MATCH ? range : undefined;
}

import leven from "leven";

/** Slips of the finger: at most so many letters, and a part of all of them. */
const MAX_SLIPS = 3;
const MAX_SLIPS_SHARE = 0.6;
/** Letters that say which name is meant, where they are a part of it. */
const FEWEST_LETTERS = 3;

/**
 * What a person may have meant, of `names`: those that begin with what was typed, else those that have
 * it in them, else those that differ least. In alphabetical order; none where all differ much. Dashes
 * before a name do not count.
 */
export function nearest(typed: string, names: readonly string[]): string[] {
  const letters = bare(typed);
  const near = [startsWith, includes, slipped].map((find) => find(letters, names));
  return near.find((found) => found.length > 0)?.toSorted() ?? [];
}

/** The end of an error message; empty where nothing is near. */
export function didYouMean(near: readonly string[]): string {
  return near.length === 0 ? "" : `, did you mean ${near.join(", ")}?`;
}

function startsWith(letters: string, names: readonly string[]): readonly string[] {
  if (letters.length < FEWEST_LETTERS) return [];
  return names.filter((name) => bare(name).startsWith(letters));
}

function includes(letters: string, names: readonly string[]): readonly string[] {
  return letters.length < FEWEST_LETTERS ? [] : names.filter((name) => name.includes(letters));
}

function slipped(letters: string, names: readonly string[]): readonly string[] {
  const slips = (name: string) => leven(letters, bare(name));
  const close = names.filter((name) =>
    slips(name) <= MAX_SLIPS &&
    slips(name) < MAX_SLIPS_SHARE * Math.max(letters.length, bare(name).length)
  );
  const least = Math.min(...close.map(slips));
  return close.filter((name) => slips(name) === least);
}

function bare(name: string): string {
  return name.replace(/^-+/, "");
}

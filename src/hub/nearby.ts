/** What a mistyped name may have meant. */
import leven from "leven";

/** Slips of the finger, and the part of the letters that they stay below. */
const MAX_SLIPS = 3;
const MAX_SLIPS_SHARE = 0.4;

/** Returns the `names` that are nearest to what was typed, by all of it or by what follows the last slash. */
export function nearest(typed: string, names: readonly string[]): string[] {
  const slips = new Map(names.map((name) => [name, slipsOf(typed, name)]));
  const least = Math.min(...slips.values());
  return names.filter((name) => least < Infinity && slips.get(name) === least);
}

/** Infinite where the two differ too much. */
function slipsOf(typed: string, name: string): number {
  const [a, b] = [typed.toLowerCase(), name.toLowerCase()];
  const [endA, endB] = [a, b].map((text) => text.slice(text.lastIndexOf("/") + 1)) as [
    string,
    string,
  ];
  if (endA !== "" && endB.startsWith(endA)) return 0;
  const slips = Math.min(leven(a, b), leven(endA, endB));
  const most = Math.min(MAX_SLIPS, MAX_SLIPS_SHARE * Math.max(endA.length, endB.length));
  return slips <= most ? slips : Infinity;
}

/** A set of characters: ranges of code points, rising and apart. */
export type CodePoints = readonly (readonly [from: number, to: number])[];

/** All of Unicode but the surrogates, which UTF-8 has not. */
export const ANY: CodePoints = [[0, 0xd7ff], [0xe000, 0x10ffff]];

/** The set of these ranges, which may be in any order and overlap. */
export function codePoints(ranges: CodePoints): CodePoints {
  const made: [number, number][] = [];
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    const last = made.at(-1);
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else made.push([from, to]);
  }
  return made;
}

/** The characters of a text. */
export function charactersOf(text: string): CodePoints {
  return codePoints([...text].map((character) => {
    const point = character.codePointAt(0) as number;
    return [point, point];
  }));
}

/** Returns the code points that are in both. */
export function both(a: CodePoints, b: CodePoints): CodePoints {
  return codePoints(
    a.flatMap(([from, to]) =>
      b.map(([start, end]) => [Math.max(from, start), Math.min(to, end)] as const)
        .filter(([first, last]) => first <= last)
    ),
  );
}

/** All but these. */
export function except(set: CodePoints): CodePoints {
  const bounds = [-1, ...codePoints(set).flat(), 0x110000];
  const gaps = Array.from(
    { length: bounds.length / 2 },
    (_, i) => [(bounds[2 * i] as number) + 1, (bounds[2 * i + 1] as number) - 1] as const,
  );
  return both(gaps.filter(([from, to]) => from <= to), ANY);
}

/** One way to write characters in UTF-8: a range of bytes at each place. */
export type ByteRanges = readonly (readonly [from: number, to: number])[];

/** The set in UTF-8. Each way stands for all combinations of its bytes. */
export function utf8Ranges(set: CodePoints): ByteRanges[] {
  return both(set, ANY).flatMap(([from, to]) => split(from, to));
}

/** Last code points of 1, 2 and 3 bytes. */
const LENGTHS = [0x7f, 0x7ff, 0xffff];

function split(from: number, to: number): ByteRanges[] {
  for (const last of LENGTHS) {
    if (from <= last && to > last) return [...split(from, last), ...split(last + 1, to)];
  }
  if (to <= 0x7f) return [[[from, to]]];
  // Bytes after the first of 6 bits each: a range is cut where those before it change.
  for (const bits of [6, 12, 18]) {
    const low = 2 ** bits - 1;
    if (from >> bits === to >> bits) continue;
    if ((from & low) !== 0) return [...split(from, from | low), ...split((from | low) + 1, to)];
    if ((to & low) !== low) return [...split(from, (to & ~low) - 1), ...split(to & ~low, to)];
  }
  const [first, last] = [encode(from), encode(to)];
  return [Array.from(first, (byte, i) => [byte, last[i] as number] as const)];
}

function encode(point: number): Uint8Array {
  return new TextEncoder().encode(String.fromCodePoint(point));
}

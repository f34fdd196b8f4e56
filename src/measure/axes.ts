/** A range as llama-bench writes it: `1-4`, `1-7+2` in steps of 2, `1-16*2` doubling each time. */
const RANGE = /^(\d+)-(\d+)(?:([+*])(\d+))?$/;
const NUMBER = /^(\d+\.?\d*|\.\d+)$/;
/** The most values of a range; a longer one is taken for a typing mistake. */
const MAX = 1000;

/**
 * The numbers of a list in the order written: `1,2,8-10` is 1, 2, 8, 9, 10. Undefined where the text
 * is no list of numbers and ranges.
 */
export function parseAxis(text: string): readonly number[] | undefined {
  const parts = text.split(",").map((part) => parsePart(part.trim()));
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}

function parsePart(part: string): number[] | undefined {
  if (NUMBER.test(part)) return [Number(part)];
  const range = RANGE.exec(part);
  if (range === null) return undefined;
  const [, first, last, sign = "+", by = "1"] = range;
  return walk(
    Number(first),
    Number(last),
    (at) => sign === "+" ? at + Number(by) : at * Number(by),
  );
}

/** Undefined for a range that descends, does not advance or is too long. */
function walk(first: number, last: number, next: (at: number) => number): number[] | undefined {
  const values: number[] = [];
  for (let at = first; at <= last; at = next(at)) {
    values.push(at);
    if (next(at) <= at || values.length > MAX) return undefined;
  }
  return values.length === 0 ? undefined : values;
}

/** All combinations of the axes' values, each once; the last axis changes fastest. */
export function combinations<T extends Record<string, unknown>>(
  axes: { readonly [K in keyof T]: readonly T[K][] },
): T[] {
  return Object.entries(axes).reduce<Record<string, unknown>[]>(
    (made, [name, values]) =>
      made.flatMap((one) =>
        [...new Set(values)].map((value: unknown) => ({ ...one, [name]: value }))
      ),
    [{}],
  ) as T[];
}

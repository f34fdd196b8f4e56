/** Covering arrays: few configurations in which every pair of values of two axes occurs. */

/** Axes by name, each with its values. */
export type Axes = Readonly<Record<string, readonly (string | number | boolean)[]>>;

/** One value of each axis. */
export type Configuration<A extends Axes> = { readonly [K in keyof A]: A[K][number] };

interface Pair {
  readonly a: number;
  readonly b: number;
  readonly valueA: number;
  readonly valueB: number;
}

/** Drawn rows of which the one that covers most is taken. */
const TRIALS = 12;

/** What may be said of an array beside its axes. */
export interface ArrayOptions<A extends Axes> {
  /** Configurations to begin with. */
  readonly given?: readonly Configuration<A>[];
  /** Axes whose first value is taken wherever another covers no more. */
  readonly firstPreferred?: readonly (keyof A)[];
}

/**
 * Configurations in which every pair of values occurs that `isPossible` allows at all: one after another, each the
 * best of several drawn ones, which begin with a pair that is still missing (as AETG does, Cohen et al. 1997).
 *
 * @param isPossible whether values may occur together; axes that are not chosen yet are undefined.
 * @param random numbers from 0 to below 1.
 * @throws Error where a pair that is allowed by itself is in no configuration.
 */
export function coveringArray<A extends Axes>(
  axes: A,
  isPossible: (chosen: Partial<Configuration<A>>) => boolean,
  random: () => number,
  { given = [], firstPreferred = [] }: ArrayOptions<A> = {},
): Configuration<A>[] {
  const names = Object.keys(axes);
  const valuesOf = (axis: number) => axes[names[axis] as string] as readonly unknown[];
  const chosenOf = (row: readonly (number | undefined)[]) =>
    Object.fromEntries(
      row.flatMap((value, axis) =>
        value === undefined ? [] : [[names[axis], valuesOf(axis)[value]]]
      ),
    ) as Partial<Configuration<A>>;
  const below = (count: number) => Math.floor(random() * count);
  const missing = new Map<string, Pair>();
  for (const a of names.keys()) {
    for (let b = a + 1; b < names.length; b++) {
      for (const valueA of valuesOf(a).keys()) {
        for (const valueB of valuesOf(b).keys()) {
          const row: (number | undefined)[] = names.map(() => undefined);
          row[a] = valueA;
          row[b] = valueB;
          if (isPossible(chosenOf(row))) {
            missing.set(keyOf(a, valueA, b, valueB), { a, b, valueA, valueB });
          }
        }
      }
    }
  }

  /** A whole row that begins with the pair, each further value the one that covers most. Undefined: there is none. */
  function drawn({ a, b, valueA, valueB }: Pair): number[] | undefined {
    const row: (number | undefined)[] = names.map(() => undefined);
    row[a] = valueA;
    row[b] = valueB;
    const rest = shuffled([...names.keys()].filter((axis) => axis !== a && axis !== b), below);
    for (const axis of rest) {
      let best: { readonly value: number; readonly gain: number } | undefined;
      const values = [...valuesOf(axis).keys()];
      const isOrdered = firstPreferred.includes(names[axis] as string);
      for (const value of isOrdered ? values : shuffled(values, below)) {
        row[axis] = value;
        if (!isPossible(chosenOf(row))) continue;
        const gain = row.filter((other, i) =>
          i !== axis && other !== undefined && missing.has(keyOf(axis, value, i, other))
        ).length;
        if (best === undefined || gain > best.gain) {
          best = { value, gain };
        }
      }
      if (best === undefined) return undefined;
      row[axis] = best.value;
    }
    return row as number[];
  }

  const found: Configuration<A>[] = [...given];
  for (const each of given) {
    const row = names.map((name, axis) => valuesOf(axis).indexOf(each[name]));
    for (const key of pairsOf(row)) missing.delete(key);
  }
  while (missing.size > 0) {
    const pairs = [...missing.values()];
    let best: { readonly row: number[]; readonly covers: string[] } | undefined;
    for (let trial = 0; trial < TRIALS; trial++) {
      const row = drawn(pairs[below(pairs.length)] as Pair);
      if (row === undefined) continue;
      const covers = pairsOf(row).filter((key) => missing.has(key));
      if (best === undefined || covers.length > best.covers.length) best = { row, covers };
    }
    if (best === undefined) {
      throw new Error(`no configuration has ${[...missing.keys()].join(", ")}`);
    }
    for (const key of best.covers) missing.delete(key);
    found.push(chosenOf(best.row) as Configuration<A>);
  }
  return found;
}

function keyOf(a: number, valueA: number, b: number, valueB: number): string {
  return a < b ? `${a} ${valueA} ${b} ${valueB}` : `${b} ${valueB} ${a} ${valueA}`;
}

function pairsOf(row: readonly number[]): string[] {
  return row.flatMap((valueA, a) =>
    row.slice(a + 1).map((valueB, i) => keyOf(a, valueA, a + 1 + i, valueB))
  );
}

function shuffled<T>(items: T[], below: (count: number) => number): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [items[i], items[j]] = [items[j] as T, items[i] as T];
  }
  return items;
}

/** Who reads and writes the values of a list of operations, and changes to the list. */
import type { Value } from "../graph/graph.ts";
import { type LoweredOp, type OpOf, readsOf, writesOf } from "./ops.ts";

/** Who reads and writes each value, and the index of each operation in the list. */
interface Uses {
  readonly readers: ReadonlyMap<Value, readonly LoweredOp[]>;
  readonly writers: ReadonlyMap<Value, readonly LoweredOp[]>;
  readonly indices: ReadonlyMap<LoweredOp, number>;
}

function usesOf(ops: readonly LoweredOp[]): Uses {
  const [readers, writers] = [new Map<Value, LoweredOp[]>(), new Map<Value, LoweredOp[]>()];
  const indices = new Map<LoweredOp, number>();
  const add = (to: Map<Value, LoweredOp[]>, value: Value, op: LoweredOp) => {
    const found = to.get(value);
    if (found === undefined) to.set(value, [op]);
    else if (found.at(-1) !== op) found.push(op);
  };
  for (const [i, op] of ops.entries()) {
    indices.set(op, i);
    for (const value of readsOf(op)) add(readers, value, op);
    for (const value of writesOf(op)) add(writers, value, op);
  }
  return { readers, writers, indices };
}

/** A list of operations while one rewrite changes it. Queries refer to the list as it was before the rewrite. */
export class Edits {
  readonly ops: readonly LoweredOp[];
  /** Built at the first query: most rewrites match nothing and never query. */
  #uses: Uses | undefined;
  readonly #changed = new Map<LoweredOp, readonly LoweredOp[]>();

  constructor(ops: readonly LoweredOp[]) {
    this.ops = ops;
  }

  get #asked(): Uses {
    return this.#uses ??= usesOf(this.ops);
  }

  readers(value: Value): readonly LoweredOp[] {
    return this.#asked.readers.get(value) ?? [];
  }

  /** The only operation that reads a value; undefined if there are several, or if code outside the graph reads it. */
  soleReader(value: Value): LoweredOp | undefined {
    const [first, ...others] = this.readers(value);
    return others.length === 0 && value.at === undefined ? first : undefined;
  }

  /** The only operation that writes a value. */
  writer(value: Value): LoweredOp | undefined {
    const [first, ...others] = this.#asked.writers.get(value) ?? [];
    return others.length === 0 ? first : undefined;
  }

  /** The operation of a kind that is the only one to write a value, if `reader` is the only one to read it. */
  producer<Kind extends LoweredOp["kind"]>(
    value: Value,
    reader: LoweredOp,
    kind: Kind,
  ): OpOf<Kind> | undefined {
    const writer = this.writer(value);
    if (writer?.kind !== kind || this.soleReader(value) !== reader) return undefined;
    return writer as OpOf<Kind>;
  }

  writers(value: Value): readonly LoweredOp[] {
    return this.#asked.writers.get(value) ?? [];
  }

  /** The index of an operation in the list. */
  indexOf(op: LoweredOp): number {
    return this.#asked.indices.get(op) ?? 0;
  }

  /** Whether an operation comes before another one. */
  isBefore(op: LoweredOp, other: LoweredOp): boolean {
    return this.indexOf(op) < this.indexOf(other);
  }

  /**
   * Whether an operation was replaced or removed by this rewrite. Test it if two matches can share an operation.
   */
  isChanged(op: LoweredOp): boolean {
    return this.#changed.has(op);
  }

  /**
   * Puts operations in the place of one. A merged operation belongs where all of its inputs are written and nothing has
   * read its output yet.
   */
  replace(op: LoweredOp, ...by: readonly LoweredOp[]): void {
    this.#changed.set(op, by);
  }

  remove(...all: readonly LoweredOp[]): void {
    for (const op of all) this.#changed.set(op, []);
  }

  /** Returns the changed list; itself if nothing changed, so that its query tables are reused. */
  done(): Edits {
    if (this.#changed.size === 0) return this;
    return new Edits(this.ops.flatMap((op) => this.#changed.get(op) ?? [op]));
  }
}

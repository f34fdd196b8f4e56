/** Who reads and writes the values of a list of operations, and changes to the list. */
import type { Value } from "../graph/graph.ts";
import { type LoweredOp, readsOf, writesOf } from "./ops.ts";

/** A list of operations while one rewrite goes over it: questions are answered as it was before. */
export class Edits {
  readonly ops: readonly LoweredOp[];
  readonly #readers = new Map<Value, LoweredOp[]>();
  readonly #writers = new Map<Value, LoweredOp[]>();
  readonly #changed = new Map<LoweredOp, readonly LoweredOp[]>();
  readonly #places = new Map<LoweredOp, number>();

  constructor(ops: readonly LoweredOp[]) {
    this.ops = ops;
    for (const [i, op] of ops.entries()) {
      this.#places.set(op, i);
      for (const value of new Set(readsOf(op))) {
        this.#readers.getOrInsertComputed(value, () => []).push(op);
      }
      for (const value of new Set(writesOf(op))) {
        this.#writers.getOrInsertComputed(value, () => []).push(op);
      }
    }
  }

  readers(value: Value): readonly LoweredOp[] {
    return this.#readers.get(value) ?? [];
  }

  /** The only operation that reads a value, if nobody outside the graph does. */
  soleReader(value: Value): LoweredOp | undefined {
    const [first, ...others] = this.readers(value);
    return others.length === 0 && value.at === undefined ? first : undefined;
  }

  /** The only operation that writes a value. */
  writer(value: Value): LoweredOp | undefined {
    const [first, ...others] = this.#writers.get(value) ?? [];
    return others.length === 0 ? first : undefined;
  }

  writers(value: Value): readonly LoweredOp[] {
    return this.#writers.get(value) ?? [];
  }

  /** Whether an operation comes before another one. */
  isBefore(op: LoweredOp, other: LoweredOp): boolean {
    return (this.#places.get(op) ?? 0) < (this.#places.get(other) ?? 0);
  }

  /** Whether an operation was replaced or removed by this rewrite. */
  isChanged(op: LoweredOp): boolean {
    return this.#changed.has(op);
  }

  replace(op: LoweredOp, ...by: readonly LoweredOp[]): void {
    this.#changed.set(op, by);
  }

  remove(...all: readonly LoweredOp[]): void {
    for (const op of all) this.#changed.set(op, []);
  }

  /** The list with its changes. */
  done(): LoweredOp[] {
    return this.ops.flatMap((op) => this.#changed.get(op) ?? [op]);
  }
}

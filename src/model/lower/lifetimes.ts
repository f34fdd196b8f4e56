/** Where the values of a list of operations are stored. */
import type { Operand } from "../../gpu/kernel.ts";
import type { Value } from "../graph/graph.ts";
import { aliasOf, type LoweredOp, readsOf, writesOf } from "./ops.ts";
import type { ScratchPool } from "../../gpu/scratch_pool.ts";

/** Bytes of a value. */
function valueBytes({ parts, rows, cols }: Value): number {
  return Math.max(16, 4 * parts * rows * cols);
}

/**
 * Returns the operand of each value: the buffer it is stored in outside the graph (`Value.at`), the buffer of the value
 * that its operation changes in place, or scratch memory from the first operation that writes it to the last reader.
 *
 * @throws Error where a value is read before it is written.
 */
export function placed(
  ops: readonly LoweredOp[],
  pool: ScratchPool,
): (value: Value) => Operand {
  const roots = rootsOf(ops);
  const rootOf = (value: Value) => roots.get(value) ?? value;
  const lifetimes = new Map<Value, { bytes: number; first: number; last: number }>();
  for (const [i, op] of ops.entries()) {
    for (const value of readsOf(op)) {
      const root = rootOf(value);
      if (root.at || value.at) continue;
      const lifetime = lifetimes.get(root);
      if (!lifetime) {
        throw new Error(`${op.label} reads ${value.label}, which no operation has written`);
      }
      lifetime.last = i;
    }
    for (const value of writesOf(op)) {
      const root = rootOf(value);
      if (root.at || value.at) continue;
      const lifetime = lifetimes.getOrInsert(root, { bytes: 0, first: i, last: i });
      lifetime.last = i;
      lifetime.bytes = Math.max(lifetime.bytes, valueBytes(value));
    }
  }
  const found = pool.place([...lifetimes.values()]);
  const places = new Map([...lifetimes.keys()].map((root, i) => [root, found[i]]));
  return (value) => {
    const root = rootOf(value);
    const at = value.at ?? root.at;
    if (at) return at;
    const place = places.get(root);
    if (place === undefined) throw new Error(`${value.label} is stored nowhere`);
    return pool.operand(place, valueBytes(value));
  };
}

/** For each value that is written in place of another: the first value stored in that buffer. */
function rootsOf(ops: readonly LoweredOp[]): Map<Value, Value> {
  const roots = new Map<Value, Value>();
  for (const op of ops) {
    for (const value of writesOf(op)) {
      const before = aliasOf(op, value);
      if (before) roots.set(value, roots.get(before) ?? before);
    }
  }
  return roots;
}

/** A stand-in operand of a value that is not placed yet, for kernels' checks that depend on its size. */
export function onPaper(value: Value): Operand {
  const size = valueBytes(value);
  return value.at ?? { buffer: { label: value.label, size } as GPUBuffer, offset: 0, size };
}

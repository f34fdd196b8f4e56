/** Brute-force check of where a plan's values are stored: runs its operations on memory that holds values' names. */
import { bytesOf, type Operand } from "../../src/gpu/kernel.ts";
import { runsWithin } from "../../src/gpu/program.ts";
import type { Value } from "../../src/model/graph/graph.ts";
import { aliasOf, type LoweredOp, readsOf, writesOf } from "../../src/model/lower/ops.ts";

/** A range of a buffer and the value whose numbers are in it. */
interface Stored {
  readonly value: Value;
  readonly from: number;
  readonly end: number;
}

/** Numbers of cells between which an operation runs or not. */
function cellCounts(ops: readonly LoweredOp[]): number[] {
  const ends = ops.flatMap(({ forCells }) => forCells ? [forCells.from, forCells.upTo] : []);
  return [...new Set([0, ...ends])].filter(Number.isFinite);
}

/**
 * Describes each read of a value whose numbers are no longer, or not yet, where the read looks for them, and each
 * operation that writes to memory from which it reads another value.
 *
 * @param at where values are stored.
 */
export function storageFaults(
  ops: readonly LoweredOp[],
  at: (value: Value) => Operand,
): string[] {
  return [
    ...new Set(
      cellCounts(ops).flatMap((cells) => faultsOf(ops.filter((op) => runsWithin(op, cells)), at)),
    ),
  ];
}

function faultsOf(ops: readonly LoweredOp[], at: (value: Value) => Operand): string[] {
  const memory = new Map<GPUBuffer | string, Stored[]>();
  /** Buffers on paper are made anew for each value, so those of one label are one. */
  const placeOf = (value: Value): Stored & { readonly buffer: GPUBuffer | string } => {
    const operand = at(value);
    const { buffer, offset: from = 0 } = operand;
    return { value, buffer, from, end: from + bytesOf(operand) };
  };
  const overlapping = ({ buffer, from, end }: ReturnType<typeof placeOf>) =>
    (memory.get(buffer) ?? []).filter((other) => other.from < end && from < other.end);
  const written = new Set(ops.flatMap((op) => writesOf(op)));
  const faults: string[] = [];
  for (const op of ops) {
    const [reads, writes] = [readsOf(op), writesOf(op)];
    for (const value of reads) {
      const found = overlapping(placeOf(value)).map((stored) => stored.value);
      const others = found.filter((other) => other !== value);
      if (others.length > 0 && (written.has(value) || value.at === undefined)) {
        faults.push(`${op.label} reads ${value.label}, where ${others[0]?.label} is stored`);
      } else if (found.length === 0 && value.at === undefined) {
        faults.push(`${op.label} reads ${value.label} before it is written`);
      }
    }
    for (const value of writes) {
      const place = placeOf(value);
      const inPlaceOf = aliasOf(op, value);
      for (const read of [...reads, ...writes]) {
        if (read === value || read === inPlaceOf) continue;
        const other = placeOf(read);
        if (other.buffer === place.buffer && other.from < place.end && place.from < other.end) {
          faults.push(`${op.label} writes ${value.label} where ${read.label} is`);
        }
      }
    }
    for (const value of writes) {
      const place = placeOf(value);
      const kept = (memory.get(place.buffer) ?? [])
        .filter(({ from, end }) => end <= place.from || place.end <= from);
      memory.set(place.buffer, [...kept, place]);
    }
  }
  return faults;
}

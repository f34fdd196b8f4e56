import assert from "node:assert/strict";
import type { Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import type { Heads, KvPlace } from "../../kernels/lib/heads.ts";
import type { Device } from "../gpu/device.ts";
import { assertClose } from "../gpu/numbers.ts";
import { unpackedKv } from "./kv.ts";
import { blockTable, packRows, type RowFields } from "./rows.ts";

const UNTOUCHED = 0x7fc07fc0;
const [SLOTS, TABLE_PAGES, POSITIONS] = [3, 4, 64];
// Positions are not cells: a tree gives siblings one position and each its own cell.
export const PLACED_ROWS: readonly Partial<RowFields>[] = [
  { slot: 0, cell: 0, position: 0 },
  { slot: 2, cell: 15, position: 15 },
  { slot: 2, cell: 16, position: 15 },
  { slot: 1, cell: 63, position: 40 },
  { slot: 1, cell: 17, position: 63 },
  { slot: 0, cell: 5, position: 5, live: 0 },
];
/** Rows that lie behind them in the buffer and must not be placed. */
const BEHIND = Array(4).fill({ slot: 0, cell: 40, position: 1 });

export interface PlacedShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly kvDtype: KvDtype;
}

interface Placing {
  readonly q: Operand;
  readonly place: KvPlace;
  /** cos and sin, as `place.rope`. */
  readonly table: Float32Array;
  readonly shape: Heads & { readonly count: number };
}

/** Buffers for rows whose heads are rotated and stored. */
export function placing(
  device: Device,
  { heads, kvHeads, headDim, kvDtype }: PlacedShape,
): Placing {
  const rope = { theta: 10000, width: headDim, scaling: { kind: "default" } } as const;
  const table = ropeTable(rope, headDim, { positions: POSITIONS, context: POSITIONS });
  const words = SLOTS * TABLE_PAGES * PAGE * kvHeads * headDim / (kvDtype === "f32" ? 1 : 2);
  const kv = () => device.words(Array(words).fill(UNTOUCHED));
  const q = device.filled((PLACED_ROWS.length + BEHIND.length) * heads * headDim);
  const place = {
    rope: device.floats(table),
    rows: device.words(packRows([...PLACED_ROWS, ...BEHIND])),
    pages: device.words(blockTable(SLOTS, TABLE_PAGES)),
    keys: kv(),
    values: kv(),
  };
  const sizes = { heads, kvHeads, headDim, tablePages: TABLE_PAGES, kvDtype };
  return { q, place, table, shape: { ...sizes, count: PLACED_ROWS.length } };
}

/** One head turned: (a, b) -> (a cos - b sin, b cos + a sin). */
function rotated(x: ArrayLike<number>, table: Float32Array, position: number): number[] {
  const half = x.length / 2;
  return Array.from(x, (value, i) => {
    const at = (position * half + i % half) * 2;
    const [cos = NaN, sin = NaN] = table.subarray(at, at + 2);
    const other = x[(i + half) % x.length] ?? NaN;
    return value * cos + (i < half ? -other : other) * sin;
  });
}

/** Relative error of one rounding to the dtype, and of float32 sums. */
const TOLERANCE: Readonly<Record<KvDtype, number>> = { f32: 1e-5, f16: 2 ** -10, bf16: 2 ** -8 };

/**
 * Checks q and the pages against `heads`, [rows, heads + 2 kvHeads] heads before rope.
 *
 * @param gains what q and k are multiplied by after rope, [2, headDim]; default: nothing.
 */
export async function assertPlaced(
  device: Device,
  { q, place, table, shape }: Placing,
  headAt: (row: number, head: number) => ArrayLike<number>,
  gains?: Float32Array,
): Promise<void> {
  const { heads, kvHeads, headDim, kvDtype } = shape;
  const turned = (r: number, h: number, position: number) => {
    const first = h < heads ? 0 : headDim;
    return rotated(headAt(r, h), table, position)
      .map((value, i) => value * (gains ? gains[first + i] ?? NaN : 1));
  };
  const pages = await device.readWords(place.pages);
  const found = await device.readFloats(q);
  const [keys, values] = [await device.readWords(place.keys), await device.readWords(place.values)];
  const words = headDim / (kvDtype === "f32" ? 1 : 2);
  const stored = new Set<number>();
  PLACED_ROWS.forEach(({ slot = NaN, cell = NaN, position = NaN, live = 1 }, r) => {
    for (let h = 0; h < heads; h++) {
      const at = (r * heads + h) * headDim;
      const expected = turned(r, h, position);
      assertClose(found.subarray(at, at + headDim), expected, 1e-5, `q of row ${r}`);
    }
    const page = pages[slot * TABLE_PAGES + Math.floor(cell / PAGE)] ?? NaN;
    for (let h = 0; h < kvHeads && live; h++) {
      const at = ((page * kvHeads + h) * PAGE + cell % PAGE) * words;
      stored.add(at);
      const rowOf = (kept: Uint32Array) =>
        unpackedKv(kvDtype, kept.subarray(at, at + words), headDim);
      const key = turned(r, heads + h, position);
      assertClose(rowOf(keys), key, TOLERANCE[kvDtype], `key of row ${r}`);
      const value = headAt(r, heads + kvHeads + h);
      assertClose(rowOf(values), value, TOLERANCE[kvDtype], `value of row ${r}`);
    }
  });
  const untouched = new Uint32Array(words).fill(UNTOUCHED);
  for (let at = 0; at < keys.length; at += words) {
    if (stored.has(at)) continue;
    assert.deepEqual(keys.subarray(at, at + words), untouched);
    assert.deepEqual(values.subarray(at, at + words), untouched);
  }
}

/** The kernels of attention on matrix units over many rows of one slot. */
import { type Kernel } from "../../../src/gpu/kernel.ts";
import type { AttentionUnits } from "../../../src/gpu/matrices_on_units.ts";
import type { Heads } from "../../lib/heads.ts";
import { kernelOf } from "../../shader.ts";
import { cellsOf, lowOf, type UnitsCounts, wideOf } from "./units_kernels.ts";

type Heads16 = Pick<Heads, "headDim" | "kvDtype">;

/** A workgroup of chunk_units.wgsl. No number of these changes a bit of what it computes. */
export interface ChunkTile {
  /** Query heads. */
  readonly group: number;
  /** Rows. */
  readonly tile: number;
  /** Splits of keys of a segment. */
  readonly span: number;
  /** It has all segments that its rows see, and writes their output. */
  readonly direct: boolean;
  /** Parts of a head's keys that pass through workgroup memory one after the other. */
  readonly keyParts: number;
  /** Parts of a head's values and sums that pass through workgroup memory one after the other. */
  readonly parts: number;
  /** With padding: a multiple of the unit's rows. */
  readonly queries: number;
  /** Subgroups that share so many queries as a unit has rows. */
  readonly columns: number;
}

interface ChunkParameters extends UnitsCounts {
  /** Subgroups that share so many queries as a unit has rows. */
  readonly COLUMNS: number;
  /** Parts of a head's keys, and of its values, that pass through workgroup memory one after the other. */
  readonly K_PARTS: number;
  readonly PARTS: number;
  /** Invocations that load a cell's part of keys, and of values. */
  readonly K_WIDE: number;
  readonly V_WIDE: number;
  /** Parts of cells' values that an invocation loads. */
  readonly V_LOADS: number;
  /** Of a part: products along a head, for scores; fours of sums; products of a subgroup along a head, for values. */
  readonly PART_STEPS: number;
  readonly PART_SUMS: number;
  readonly PART_OWN: number;
  /** Which number of eights SHARED_EIGHTS is: 1 or 0. */
  readonly SHARED_ONE: number;
  readonly SHARED_TWO: number;
  readonly SHARED_FOUR: number;
  readonly SHARED_EIGHT: number;
  /** 1 where a workgroup has all segments that its rows see, and writes their output; else 0. */
  readonly DIRECT: number;
}

interface HalveParameters {
  /** What keys and values are stored as. */
  readonly kv: Heads["kvDtype"];
  /** Cells of a split. */
  readonly CELLS: number;
  /** 1 where keys and values are two f16 numbers each; else 0. */
  readonly KV_LOW: number;
  /** Vec8s of a head; invocations that load a row, and their number's binary logarithm. */
  readonly VEC8S: number;
  readonly WIDE: number;
  readonly WIDE_STEPS: number;
  /** Invocations of a workgroup, and rows of which an invocation loads a part. */
  readonly THREADS: number;
  readonly LOADS: number;
}

function countsOf(heads: Heads16, units: AttentionUnits, of: ChunkTile): ChunkParameters {
  const {
    group: GROUP,
    tile: TILE,
    span: SPAN,
    direct,
    keyParts: K_PARTS,
    queries: QUERIES,
    columns: COLUMNS,
    parts: PARTS,
  } = of;
  const { m, n, k, lanes } = units.unit;
  const { headDim } = heads;
  const CELLS = cellsOf(units);
  const { Q_LOW, KV_LOW } = lowOf(heads, units);
  const VEC8S = headDim / 8;
  const WIDE = wideOf(headDim);
  const THREADS = QUERIES / m * COLUMNS * lanes;
  const SHARERS = THREADS / QUERIES;
  const SHARED_EIGHTS = CELLS / SHARERS / 8;
  const row = (1 + KV_LOW) * VEC8S;
  const K_WIDE = powerFrom(row / K_PARTS);
  const V_WIDE = powerFrom(row / PARTS);
  const staged = (part: number) => CELLS * (1 + KV_LOW) * (part + 1) + part % 8;
  const pitch = VEC8S + 1;
  const POOL = Math.max(
    staged(VEC8S / K_PARTS),
    staged(VEC8S / PARTS),
    QUERIES * pitch,
    QUERIES * (CELLS / 4 + SHARERS),
    QUERIES * (headDim / 4 / PARTS + SHARERS),
  );
  return {
    GROUP,
    TILE,
    SPAN,
    K_PARTS,
    THREADS,
    CELLS,
    Q_LOW,
    KV_LOW,
    VEC8S,
    WIDE,
    QUERIES,
    COLUMNS,
    SHARERS,
    SHARED_EIGHTS,
    PARTS,
    K_WIDE,
    V_WIDE,
    POOL,
    UNIT_M: m,
    UNIT_N: n,
    UNIT_K: k,
    LANES: lanes,
    DIRECT: Number(direct),
    WIDE_STEPS: Math.log2(WIDE),
    LOADS: CELLS * K_WIDE / THREADS,
    V_LOADS: CELLS * V_WIDE / THREADS,
    Q_LOADS: Math.ceil(QUERIES * WIDE / THREADS),
    K_STEPS: headDim / k,
    C_STEPS: CELLS / k,
    OWN_CELLS: CELLS / n / COLUMNS,
    PART_STEPS: headDim / k / K_PARTS,
    SUMS: headDim / 4 / SHARERS,
    PART_SUMS: headDim / 4 / PARTS / SHARERS,
    PART_OWN: headDim / n / PARTS / COLUMNS,
    SHARER_STEPS: Math.log2(SHARERS),
    SHARED_FOURS: 2 * SHARED_EIGHTS,
    SHARED_ONE: Number(SHARED_EIGHTS === 1),
    SHARED_TWO: Number(SHARED_EIGHTS === 2),
    SHARED_FOUR: Number(SHARED_EIGHTS === 4),
    SHARED_EIGHT: Number(SHARED_EIGHTS === 8),
  };
}

function powerFrom(count: number): number {
  return 2 ** Math.ceil(Math.log2(count));
}

/** Whether a workgroup's subgroups and invocations have equal shares of everything, and the device room for it. */
export function chunkFits(heads: Heads16, units: AttentionUnits, of: ChunkTile): boolean {
  const { POOL, THREADS, CELLS, SHARERS, DIRECT, ...counts } = countsOf(heads, units, of);
  const { unit: { n, k }, limits } = units;
  const beside = 16 * 2 + 4 * of.queries + 3 * 4 * CELLS + 8 * THREADS * DIRECT;
  return Object.values(counts).every(Number.isInteger) && CELLS / SHARERS >= Math.max(n, k) &&
    THREADS <= limits.maxComputeInvocationsPerWorkgroup &&
    16 * POOL + beside <= limits.maxComputeWorkgroupStorageSize;
}

/** Sums of splits of keys of a chunk's rows. */
export function chunkUnitsKernel(heads: Heads16, units: AttentionUnits, of: ChunkTile): Kernel {
  const { m, n, k, lanes } = units.unit;
  const { KV_LOW } = lowOf(heads, units);
  const kind = [
    ...[KV_LOW ? "low" : "high", heads.headDim, `${of.group}x${of.tile}`, cellsOf(units)],
    ...[of.span, of.keyParts, of.parts, of.queries, of.columns],
    ...of.direct ? ["direct"] : [],
    ...units.precision === "f16" ? ["f16"] : [],
  ];
  const name = `chunk_units_${[...kind, m, n, k, lanes].join("_")}`;
  const counts = countsOf(heads, units, of);
  return kernelOf<ChunkParameters>("attention/units/chunk_units")(counts, { name });
}

/** Most invocations of halve_cells.wgsl. */
const HALVING = 256;

/** Keys and values as f16 numbers. */
export function halveCellsKernel(heads: Heads16, units: AttentionUnits): Kernel {
  const { headDim, kvDtype } = heads;
  const { KV_LOW } = lowOf(heads, units);
  const CELLS = cellsOf(units);
  const WIDE = wideOf(headDim);
  const THREADS = Math.min(HALVING, CELLS * WIDE);
  const name = `halves_units_${kvDtype}_${headDim}_${CELLS}_${KV_LOW}`;
  return kernelOf<HalveParameters>("attention/units/halve_cells")({
    kv: kvDtype,
    CELLS,
    KV_LOW,
    WIDE,
    THREADS,
    VEC8S: headDim / 8,
    WIDE_STEPS: Math.log2(WIDE),
    LOADS: CELLS * WIDE / THREADS,
  }, {
    name,
    bindings: ["keys", "values", "rows", "pages", "k_halves", "v_halves", "units"],
    constants: ["KV_HEADS", "TABLE_PAGES", "COUNT", "ROOM", "WINDOW"],
  });
}

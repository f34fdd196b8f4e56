import type { GrowthPoint } from "../../engine/check/growth/growth.ts";

/** What grows, one at a time. */
export const GROWTH_AXES = ["context", "batch", "rows"] as const;
export type GrowthAxis = typeof GROWTH_AXES[number];

/** The values of each axis. */
export type GrowthAxes = Readonly<Record<GrowthAxis, readonly number[]>>;

/** What `--depth`, `--batch-sizes` and `--rows` say. */
export type GrowthAsked = Readonly<Partial<Record<GrowthAxis, readonly number[]>>>;

/** Where the other axes stay, as far as they have this value. */
const USUAL: GrowthPoint = { context: 512, batch: 1, rows: 1 };

const HARDWARE: GrowthAxes = {
  context: [0, 128, 512, 2048, 8192, 32768],
  batch: [1, 2, 4, 8, 16, 32, 64, 128],
  rows: [1, 2, 4, 8, 16],
};

/** A processor that plays the GPU takes a second for what a GPU does in ten milliseconds. */
const SOFTWARE: GrowthAxes = {
  context: [0, 128, 512, 2048],
  batch: [1, 4, 16],
  rows: [1, 2, 4, 8],
};

/**
 * The axes asked for, and for the others values that suit the adapter. Contexts that nobody asked for end
 * with the longest that the model has.
 *
 * @param longest tokens.
 */
export function growthAxes(
  asked: GrowthAsked,
  { software, longest }: { readonly software: boolean; readonly longest: number },
): GrowthAxes {
  const usual = software ? SOFTWARE : HARDWARE;
  const within = usual.context.map((tokens) => Math.min(tokens, Math.max(0, longest)));
  return {
    context: distinct(asked.context ?? within),
    batch: distinct(asked.batch ?? usual.batch),
    rows: distinct(asked.rows ?? usual.rows),
  };
}

/** The point from which one axis at a time is left: the usual value where the axis has it, else its first. */
export function basePoint(axes: GrowthAxes): GrowthPoint {
  const at = (axis: GrowthAxis) =>
    axes[axis].includes(USUAL[axis]) ? USUAL[axis] : axes[axis][0] ?? USUAL[axis];
  return { context: at("context"), batch: at("batch"), rows: at("rows") };
}

/** The points of an axis, in the order of its values. */
export interface GrowthSeries {
  readonly axis: GrowthAxis;
  readonly points: readonly GrowthPoint[];
}

/** A series for each axis of several values; a single point is one of contexts. */
export function growthSeries(axes: GrowthAxes): GrowthSeries[] {
  const base = basePoint(axes);
  const varied = GROWTH_AXES.filter((axis) => axes[axis].length > 1);
  return (varied.length > 0 ? varied : ["context"] as const).map((axis) => ({
    axis,
    points: axes[axis].map((value) => ({ ...base, [axis]: value })),
  }));
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)].toSorted((a, b) => a - b);
}

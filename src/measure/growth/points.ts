import type { GrowthPoint } from "../../engine/check/growth/growth.ts";

/** The axes, of which one at a time is varied. */
export const GROWTH_AXES = ["context", "batch", "rows"] as const;
/** Tokens of context, sequences in a batch, or verify rows of each sequence. */
export type GrowthAxis = typeof GROWTH_AXES[number];

/** The values of each axis. */
export type GrowthAxes = Readonly<Record<GrowthAxis, readonly number[]>>;

/** The values given with `--depth`, `--batch-sizes` and `--rows`. */
export type GivenGrowthAxes = Readonly<Partial<Record<GrowthAxis, readonly number[]>>>;

/** The value of an axis while another one is varied, if the axis has this value. */
const USUAL: GrowthPoint = { context: 512, batch: 1, rows: 1 };

const HARDWARE: GrowthAxes = {
  context: [0, 128, 512, 2048, 8192, 32768],
  batch: [1, 2, 4, 8, 16, 32, 64, 128],
  rows: [1, 2, 4, 8, 16],
};

/** Fewer and smaller values: a software adapter takes about a second for what a GPU does in ten milliseconds. */
const SOFTWARE: GrowthAxes = {
  context: [0, 128, 512, 2048],
  batch: [1, 4, 16],
  rows: [1, 2, 4, 8],
};

/**
 * The given axes, and default values for the others. The default contexts end with the longest that the model supports.
 *
 * @param longest context of the model, tokens.
 */
export function growthAxes(
  asked: GivenGrowthAxes,
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

/** The point that every series passes through: the usual value of each axis if it has that, else its first value. */
export function basePoint(axes: GrowthAxes): GrowthPoint {
  const at = (axis: GrowthAxis) =>
    axes[axis].includes(USUAL[axis]) ? USUAL[axis] : axes[axis][0] ?? USUAL[axis];
  return { context: at("context"), batch: at("batch"), rows: at("rows") };
}

/** The points along one axis, in the order of its values. */
export interface GrowthSeries {
  readonly axis: GrowthAxis;
  readonly points: readonly GrowthPoint[];
}

/** One series for each axis with several values. If no axis has several, a series of contexts with a single point. */
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

/** Which of the loaded matrices the device's matrix units multiply by, and why the others are left to other kernels. */
import { fitsUnits } from "../../../shaders/tensor/matmul_on_units.ts";
import type { Gpu } from "../../gpu/device.ts";
import { type Matrix, type Precision, tuning } from "../../gpu/matrix.ts";
import type { LoadedWeights } from "../device/models.ts";
import { matmulsOf } from "./matmuls.ts";

/** Plain data. */
export interface UnitsReport {
  /** What is multiplied at once: "16x16x16" is m x n x k. */
  readonly unit: string;
  /** Of rows: f16 is not as exact as every other kernel. */
  readonly precision: Precision;
  /** Matrices that go to the units. */
  readonly matrices: number;
  /** Those that do not, by the reason, the most first. */
  readonly others: readonly { readonly why: string; readonly count: number }[];
}

/** Undefined where the device has no matrix units, or they are not used. */
export function unitsReport(
  { matrixUnit: unit, info, limits }: Pick<Gpu, "matrixUnit" | "info" | "limits">,
  loaded: LoadedWeights,
): UnitsReport | undefined {
  if (unit === undefined) return undefined;
  const rules = tuning(info.software, limits, info.backend);
  const matmuls = new Map(matmulsOf(loaded, rules).map((one) => [one.matrix, one]));
  const whys = [...matmuls.values()].map(({ matrix, splitK }) => {
    if (isScaled(matrix, loaded)) return undefined;
    if (matrix.format !== "bf16") return `format ${matrix.format}`;
    return fitsUnits(matrix, { unit, limits, splitK })
      ? "numbers that f16 cannot hold"
      : "shape [rows, cols] in no tile";
  });
  const experts = expertMatrices(loaded).filter((matrix) => !isScaled(matrix, loaded));
  const left = [...whys.filter((why) => why !== undefined), ...experts.map(() => "experts")];
  return {
    unit: `${unit.m}x${unit.n}x${unit.k}`,
    precision: loaded.tensor?.precision ?? "f32",
    matrices: whys.filter((why) => why === undefined).length +
      expertMatrices(loaded).length - experts.length,
    others: [...Map.groupBy(left, (why) => why)]
      .map(([why, all]) => ({ why, count: all.length }))
      .toSorted((a, b) => b.count - a.count || a.why.localeCompare(b.why)),
  };
}

/** All shards of a matrix have scales, or none: in some map of the tensor matrices by shard. */
function isScaled({ shards: [shard] }: Matrix, { tensor }: LoadedWeights): boolean {
  const maps = Object.values(tensor ?? {}).filter((value) => value instanceof Map);
  return shard !== undefined && maps.some((map) => map.has(shard));
}

function expertMatrices({ target, standalone }: LoadedWeights): Matrix[] {
  const layers = [...target.weights.layers, ...standalone?.weights.model.layers ?? []];
  return layers.flatMap(({ mlp }) => mlp.kind === "mixture" ? [mlp.gateUp, mlp.down] : []);
}

/** `225 matrices on units of 16x16x16, precision f16; 2 not: format q8` */
export function unitsText({ unit, precision, matrices, others }: UnitsReport): string {
  const left = others.map(({ why, count }) => `${count} not: ${why}`);
  const rounded = precision === "f16" ? ", precision f16" : "";
  const there = `${matrices} ${matrices === 1 ? "matrix" : "matrices"} on units of ${unit}`;
  return [`${there}${rounded}`, ...left].join("; ");
}

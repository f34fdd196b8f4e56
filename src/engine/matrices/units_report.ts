/** Which of the loaded matrices the device's matrix units multiply by, and why the others are left to other kernels. */
import { fitsExpertUnits } from "../../../kernels/experts/experts_on_units.ts";
import { whyNotUnits } from "../../../kernels/attention/units/units_kernels.ts";
import { fitsUnits } from "../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import {
  type AttentionUnits,
  attentionUnitsOf,
  DEFAULT_PRECISION,
  hasPromptKernels,
  type Precision,
  type TensorShard,
} from "../../gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { tuning } from "../../gpu/tuning.ts";
import { isQuantized } from "../../gpu/weight_format.ts";
import type { HeadAttention } from "../../model/config/layer_config.ts";
import type { MixtureWeights } from "../../model/weights/layer_weights.ts";
import type { LoadedWeights } from "../device/models.ts";
import { matmulsOf } from "./matmuls.ts";

/** Plain data. */
export interface UnitsReport {
  /** What is multiplied at once: "16x16x16" is m x n x k. */
  readonly unit: string;
  /** Precision of the rows: f16 is less exact than every other kernel. */
  readonly precision: Precision;
  /** Matrices that go to the units; all experts of a layer are two. */
  readonly matrices: number;
  /** How many of these do so only in forwards of prompts. */
  readonly prompts: number;
  /** Number of matrices, and of attentions, that do not use the units, for each reason, the most frequent first. */
  readonly others: readonly { readonly why: string; readonly count: number }[];
}

/** A matrix: what units need of it if they multiply it, else why they do not. */
interface Found {
  readonly there: TensorShard | undefined;
  why(): string;
}

/** Undefined where the device has no matrix units, or they are not used. */
export function unitsReport(
  { matrixUnit: unit, info, limits }: Pick<Gpu, "matrixUnit" | "info" | "limits">,
  loaded: LoadedWeights,
  engine: { readonly kvDtype?: KvDtype | undefined; readonly contextLength: number },
): UnitsReport | undefined {
  if (unit === undefined) return undefined;
  const precision = loaded.tensor?.precision ?? DEFAULT_PRECISION;
  const rules = tuning(info.software, limits, info.backend);
  const { tensor } = loaded;
  const matmuls = new Map(matmulsOf(loaded, rules).map((one) => [one.matrix, one]));
  const dense = [...matmuls.values()].map(({ matrix, splitK }): Found => ({
    there: onUnits(matrix, tensor?.shards),
    why: () => whyNot([matrix], (matrix) => fitsUnits(matrix, { unit, limits, splitK })),
  }));
  const experts = mixturesOf(loaded).flatMap(({ gateUp, down, stacked, spec: { routing } }) => {
    const both = [gateUp, down];
    const of = { unit, limits, numExperts: routing.numExperts + stacked };
    return both.map((matrix): Found => ({
      there: onUnits(matrix, tensor?.experts),
      why: () => `experts: ${whyNot(both, (matrix) => fitsExpertUnits(matrix, of))}`,
    }));
  });
  const found = [...dense, ...experts];
  const attentionUnits = attentionUnitsOf(
    { matrixUnit: unit, limits },
    { contextLength: engine.contextLength, promptKernels: hasPromptKernels(tensor) },
    precision,
  );
  const target = new Set<unknown>(loaded.target.weights.layers);
  const attention = layersOf(loaded).map((layer) => {
    const { attention: { kind, spec } } = layer;
    const units = target.has(layer) ? attentionUnits.prompts : attentionUnits.rounds;
    return kind === "heads" ? whyNotAttention(spec, units, engine) : "attention: of latents";
  });
  const left = [...found.flatMap(({ there, why }) => there ? [] : [why()]), ...attention]
    .filter((why) => why !== undefined);
  return {
    unit: `${unit.m}x${unit.n}x${unit.k}`,
    precision,
    matrices: found.filter(({ there }) => there).length,
    prompts: found.filter(({ there }) => there?.promptsOnly).length,
    others: [...Map.groupBy(left, (why) => why)]
      .map(([why, all]) => ({ why, count: all.length }))
      .toSorted((a, b) => b.count - a.count || a.why.localeCompare(b.why)),
  };
}

/** What units need of a matrix's first shard, if they multiply it: all of its shards are there, or none is. */
function onUnits(
  { shards: [shard] }: Matrix,
  there: ReadonlyMap<Shard, TensorShard> | undefined,
): TensorShard | undefined {
  return shard && there?.get(shard);
}

/** Returns why matrices that would use the units together do not. */
function whyNot(matrices: readonly Matrix[], fits: (matrix: Matrix) => boolean): string {
  const other = matrices.find(({ format }) => format !== "bf16");
  const alike = other && { ...other, format: "bf16" } as const;
  if (alike && (!isQuantized(other.format) || fits(alike))) return `format ${other.format}`;
  return matrices.every(fits) ? "numbers that f16 cannot hold" : "shape [rows, cols] in no tile";
}

function whyNotAttention(
  { headDim }: Pick<HeadAttention, "headDim">,
  units: AttentionUnits | undefined,
  { kvDtype = "f32", contextLength }: {
    readonly kvDtype?: KvDtype | undefined;
    readonly contextLength: number;
  },
): string | undefined {
  return units
    ? whyNotUnits({ headDim, kvDtype }, units)
    : `attention: contexts of at most ${contextLength}`;
}

function layersOf({ target, draft, standalone }: LoadedWeights) {
  return [
    ...target.weights.layers,
    ...standalone?.weights.model.layers ?? [],
    ...draft ? [draft.weights.layer] : [],
  ];
}

function mixturesOf({ target, standalone }: LoadedWeights): MixtureWeights[] {
  const layers = [...target.weights.layers, ...standalone?.weights.model.layers ?? []];
  return layers.flatMap(({ mlp }) => mlp.kind === "mixture" ? [mlp] : []);
}

/** `225 matrices on units of 16x16x16, precision f32; 2 not: format q8` */
export function unitsText({ unit, precision, matrices, prompts, others }: UnitsReport): string {
  const left = others.map(({ why, count }) => `${count} not: ${why}`);
  const other = precision === DEFAULT_PRECISION ? "" : `, precision ${precision}`;
  const there = `${matrices} ${matrices === 1 ? "matrix" : "matrices"} on units of ${unit}`;
  const rounds = prompts > 0 ? `, ${prompts} in prompts only` : "";
  return [`${there}${rounds}${other}`, ...left].join("; ");
}

/** Which of the loaded matrices go to the device's matrix units, and the scales that they need there. */
import { groupScales } from "../../../kernels/matmul/tensor/group_scales.ts";
import { halveWeights, weightScales } from "../../../kernels/matmul/tensor/weight_scales.ts";
import { fitsUnits } from "../../../kernels/matmul/tensor/matmul_on_units.ts";
import { ALIGNMENT, storage } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import {
  DEFAULT_PRECISION,
  MAX_SCALED_ROWS,
  type Precision,
  type TensorMatrices,
  type TensorShard,
} from "../../gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { tuning } from "../../gpu/tuning.ts";
import { isQuantized } from "../../gpu/weight_format.ts";
import { draftUnits, targetUnits, type UnitsByKind } from "../../gpu/matrix_unit.ts";
import { compiler, submit } from "../../gpu/program.ts";
import { readBuffer } from "../../gpu/readback.ts";
import type { LoadedWeights } from "../device/models.ts";
import { allocateExpertScales, scaleExperts } from "./experts.ts";
import { layerMatrices, matmulsOf } from "./matmuls.ts";

/** What matrix units are to multiply, and how. */
export interface UnitsChoice {
  readonly precision?: Precision | undefined;
  readonly maxBatch?: number | undefined;
}

/** A shard that may go there, and where its rows' scales and faults begin. */
interface Candidate {
  readonly matrix: Matrix;
  readonly shard: Shard;
  readonly promptsOnly: boolean;
  /** Bytes, a multiple of ALIGNMENT. */
  readonly offset: number;
}

/**
 * The loaded weights with what the device's matrix units need.
 *
 * @param options.maxBatch requests at a time, default 1: see `targetUnits`.
 */
export async function withTensorMatrices(
  gpu: Gpu,
  loaded: LoadedWeights,
  { precision = DEFAULT_PRECISION, maxBatch = 1 }: UnitsChoice = {},
): Promise<LoadedWeights> {
  const forwards = targetUnits({ batch: maxBatch, mixture: hasMixture(loaded) });
  const tensor = await tensorMatrices(gpu, loaded, forwards);
  return tensor ? { ...loaded, tensor: { ...tensor, precision } } : loaded;
}

/**
 * The same on a device that only adds up what is allocated: no weight is read, so f16 is taken to hold every
 * matrix whose shape fits, and none is halved.
 */
export function allocateTensorMatrices(
  gpu: Gpu,
  loaded: LoadedWeights,
  { precision = DEFAULT_PRECISION, maxBatch = 1 }: UnitsChoice = {},
): LoadedWeights {
  const { matrixUnit: unit, limits, device } = gpu;
  if (unit === undefined) return loaded;
  const of = { unit, limits };
  const forwards = targetUnits({ batch: maxBatch, mixture: hasMixture(loaded) });
  const candidates = candidatesOf(gpu, loaded, { ...of, forwards });
  const experts = allocateExpertScales(gpu, loaded, { ...of, forwards });
  if (candidates.length + experts.size === 0) return loaded;
  const bytes = scaleBytesOf(candidates);
  const scales = bytes > 0 ? storage(device, "tensor.scales", bytes) : undefined;
  const shards = new Map(
    scales && candidates.map((of): [Shard, TensorShard] => [
      of.shard,
      { scales: partOf(scales, of), stored: "loaded", promptsOnly: of.promptsOnly },
    ]),
  );
  return {
    ...loaded,
    tensor: { ...of, shards, experts, xScales: allocateXScales(gpu), precision },
  };
}

function hasMixture({ target }: LoadedWeights): boolean {
  return target.weights.layers.some(({ mlp }) => mlp.kind === "mixture");
}

function allocateXScales({ device }: Gpu): Operand {
  return { buffer: storage(device, "tensor.xScales", 4 * MAX_SCALED_ROWS) };
}

/** Undefined where the device has no units, or none of the matrices goes there. */
async function tensorMatrices(
  gpu: Gpu,
  loaded: LoadedWeights,
  forwards: UnitsByKind,
): Promise<TensorMatrices | undefined> {
  const { matrixUnit: unit, limits } = gpu;
  if (unit === undefined) return undefined;
  const of = { unit, limits };
  const shards = await denseShards(gpu, loaded, { ...of, forwards });
  const experts = await scaleExperts(gpu, loaded, { ...of, forwards });
  if (shards.size + experts.size === 0) return undefined;
  return { ...of, shards, experts, xScales: allocateXScales(gpu) };
}

/**
 * Scales the rows of all matrices whose shape fits, where `of.forwards` has them on units. A bf16 matrix with a number
 * that f16 cannot represent at its row's scale is left to the other kernels. Other bf16 matrices become f16 if nothing
 * else reads them; quantized ones stay as they are.
 */
async function denseShards(
  gpu: Gpu,
  loaded: LoadedWeights,
  of: Pick<TensorMatrices, "unit" | "limits"> & { readonly forwards: UnitsByKind },
): Promise<ReadonlyMap<Shard, TensorShard>> {
  const { limits, device } = gpu;
  const candidates = candidatesOf(gpu, loaded, of);
  if (candidates.length === 0) return new Map();
  const scales = storage(device, "tensor.scales", scaleBytesOf(candidates));
  const exact = await scaled(gpu, candidates, scales);
  const alone = limits.maxStorageBuffersPerShaderStage < MAX_BOUND
    ? new Set<Shard>()
    : readAlone(loaded);
  // Two matrices may share a shard.
  const placedOf = new Map(exact.map((of) => [of.shard, of]));
  const halves = ({ shard, matrix, promptsOnly }: Candidate) =>
    alone.has(shard) && !promptsOnly && !isQuantized(matrix.format);
  const halving = [...placedOf.values()].filter(halves).map((of) =>
    halveWeights({ weights: of.shard.operand, scales: partOf(scales, of) }, shapeOf(of))
  );
  submit(gpu, await compiler(gpu).compile(halving));
  const shards = [...placedOf].map(([shard, of]): [Shard, TensorShard] => [
    shard,
    {
      scales: partOf(scales, of),
      stored: halves(of) ? "f16" : "loaded",
      promptsOnly: of.promptsOnly,
    },
  ]);
  return new Map(shards);
}

/** The shards of the matrices whose shape fits. */
function candidatesOf(
  { info, limits }: Gpu,
  loaded: LoadedWeights,
  of: Pick<TensorMatrices, "unit" | "limits"> & { readonly forwards: UnitsByKind },
): Candidate[] {
  const rules = tuning(info.software, limits, info.backend);
  const { target } = loaded;
  const ofTarget = new Set(
    matmulsOf({ target, draft: undefined }, rules).map(({ matrix }) => matrix),
  );
  const ofDraft = draftUnits(of.forwards);
  const forwardsOf = (matrix: Matrix) => {
    const { bf16, dense } = ofTarget.has(matrix) ? of.forwards : ofDraft;
    return isQuantized(matrix.format) ? dense : bf16;
  };
  const matrices = matmulsOf(loaded, rules)
    .filter(({ matrix, splitK }) =>
      forwardsOf(matrix) !== "none" && fitsUnits(matrix, { ...of, splitK })
    )
    .map(({ matrix }) => matrix);
  return placed(new Set(matrices), (matrix) => forwardsOf(matrix) === "prompts");
}

/** Bytes of the scales of all candidates' rows. */
function scaleBytesOf(candidates: readonly Candidate[]): number {
  const last = candidates.at(-1);
  return last === undefined ? 0 : last.offset + 4 * last.shard.rows;
}

/** Writes the scales of all candidates' rows; returns those of matrices that f16 holds exactly. */
async function scaled(
  gpu: Gpu,
  candidates: readonly Candidate[],
  scales: GPUBuffer,
): Promise<Candidate[]> {
  const faults = storage(gpu.device, "tensor.faults", scales.size);
  const plan = candidates.map((of) => {
    const { matrix: { format }, shard: { operand, scales: groups } } = of;
    const own = partOf(scales, of);
    return isQuantized(format) && groups
      ? groupScales({ groups, scales: own }, { format, ...shapeOf(of) })
      : weightScales({ weights: operand, scales: own, faults: partOf(faults, of) }, shapeOf(of));
  });
  submit(gpu, await compiler(gpu).compile(plan));
  const counts = new Uint32Array(await readBuffer(gpu, { buffer: faults }));
  faults.destroy();
  const faulty = new Set(
    candidates.filter(({ offset, shard: { rows } }) =>
      counts.subarray(offset / 4, offset / 4 + rows).some((count) => count > 0)
    ).map(({ matrix }) => matrix),
  );
  return candidates.filter(({ matrix }) => !faulty.has(matrix));
}

function partOf(buffer: GPUBuffer, { offset, shard }: Candidate): Operand {
  return { buffer, offset, size: 4 * shard.rows };
}

function shapeOf({ shard: { rows }, matrix: { cols } }: Candidate) {
  return { rows, cols };
}

/**
 * Most storage buffers of a matmul on matrix units: if it had more than the adapter binds, another kernel would run it.
 */
const MAX_BOUND = 12;

/** Shards that nothing but `matmul` reads: of layers, of a draft's input, and of heads that are no embedding. */
function readAlone({ target, draft, standalone }: LoadedWeights): Set<Shard> {
  const causal = [target.weights, ...standalone ? [standalone.weights.model] : []];
  const models = [...causal, ...draft ? [draft.weights] : []];
  const layers = [...causal.flatMap(({ layers }) => layers), ...draft ? [draft.weights.layer] : []];
  const ofLayers = layers.map(layerMatrices).flatMap(({ plain, ends }) => [...plain, ...ends]);
  const shardsOf = (matrices: readonly Matrix[]) =>
    new Set(matrices.flatMap(({ shards }) => shards));
  const inputs = draft ? [draft.weights.fc] : [];
  return shardsOf([...models.map(({ head }) => head), ...inputs, ...ofLayers])
    .difference(shardsOf(models.map(({ embed }) => embed)));
}

function placed(
  matrices: ReadonlySet<Matrix>,
  promptsOnly: (matrix: Matrix) => boolean,
): Candidate[] {
  let end = 0;
  return [...matrices].flatMap((matrix) =>
    matrix.shards.map((shard) => {
      const offset = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
      end = offset + 4 * shard.rows;
      return { matrix, shard, offset, promptsOnly: promptsOnly(matrix) };
    })
  );
}

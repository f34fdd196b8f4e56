/** Which mixtures of experts go to the device's matrix units, and their weights as those take them. */
import { fitsExpertUnits } from "../../../kernels/experts/experts_on_units.ts";
import { tileWeights } from "../../../kernels/experts/tile_weights.ts";
import { groupScales } from "../../../kernels/matmul/tensor/group_scales.ts";
import { weightScales } from "../../../kernels/matmul/tensor/weight_scales.ts";
import { ALIGNMENT, storage } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { TensorLimits, TensorShard } from "../../gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../gpu/matrix.ts";
import { isFp4, isQuantized, type WeightFormat } from "../../gpu/weight_format.ts";
import {
  draftUnits,
  type MatrixUnit,
  type UnitForwards,
  type UnitsByKind,
} from "../../gpu/matrix_unit.ts";
import { type Compiler, compiler, submit } from "../../gpu/program.ts";
import { readBuffer } from "../../gpu/readback.ts";
import type { LoadedWeights } from "../device/models.ts";

/** A shard of experts, and where its rows' scales begin. */
interface Candidate {
  readonly format: WeightFormat;
  readonly shard: Shard;
  readonly cols: number;
  readonly promptsOnly: boolean;
  /** Bytes, a multiple of ALIGNMENT. */
  readonly offset: number;
}

/** Most bytes of weights that are put in order at a time. */
const STAGED_BYTES = 64 << 20;

/** Step of rows whose weights and scales begin where a binding may, and the most rows of one dispatch. */
const ROW_STEP = ALIGNMENT / 2;
const MAX_ROWS = 1 << 16;

/**
 * Scales the experts of all mixtures whose matrices fit. bf16 experts become f16 in place, in the order of
 * tile_weights.wgsl, unless rounds read them on other kernels; quantized ones stay as they are. A layer with a number
 * that f16 cannot represent at its row's scale stays unchanged, for the other kernels.
 *
 * @returns what matrix units need of each shard.
 */
export async function scaleExperts(
  gpu: Gpu,
  loaded: LoadedWeights,
  of: {
    readonly unit: MatrixUnit;
    readonly limits: TensorLimits;
    readonly forwards: UnitsByKind;
  },
): Promise<ReadonlyMap<Shard, TensorShard>> {
  const { layers, bytes } = placed(mixtures(loaded, of));
  const scales = new Map<Shard, TensorShard>();
  if (bytes === 0) return scales;
  const most = Math.max(...layers.flat().map(({ shard }) => shard.rows));
  const buffer = scaleBuffer(gpu, bytes);
  const faults = { buffer: storage(gpu.device, "tensor.experts.faults", 4 * most) };
  const widest = Math.max(
    ...layers.flat().map(({ shard, cols, ...of }) =>
      storedAs(of) === "loaded" ? ALIGNMENT : stagedRows(shard, cols) * cols
    ),
  );
  const staging = { buffer: storage(gpu.device, "tensor.experts.staging", 2 * widest) };
  const make = compiler(gpu);
  for (const layer of layers) {
    const parts = layer.map(({ offset, ...part }) => ({
      ...part,
      scales: { buffer, offset, size: 4 * part.shard.rows },
    }));
    let faulty = false;
    for (const part of parts) faulty ||= await hasFaults(gpu, make, part, faults);
    if (faulty) continue;
    for (const part of parts) {
      const stored = storedAs(part);
      if (stored === "f16_tiles") await tile(gpu, make, part, { unit: of.unit, staging });
      const { shard, scales: own, promptsOnly } = part;
      scales.set(shard, { scales: own, stored, promptsOnly });
    }
  }
  faults.buffer.destroy();
  staging.buffer.destroy();
  return scales;
}

/** The same on a device that only counts bytes: no weight is read, so no layer is left out. */
export function allocateExpertScales(
  gpu: Gpu,
  loaded: LoadedWeights,
  of: Parameters<typeof scaleExperts>[2],
): ReadonlyMap<Shard, TensorShard> {
  const { layers, bytes } = placed(mixtures(loaded, of));
  if (bytes === 0) return new Map();
  const buffer = scaleBuffer(gpu, bytes);
  return new Map(
    layers.flat().map(({ shard, offset, ...of }) => [
      shard,
      {
        scales: { buffer, offset, size: 4 * shard.rows },
        stored: storedAs(of),
        promptsOnly: of.promptsOnly,
      },
    ]),
  );
}

/** How a shard is stored after it was prepared. */
function storedAs({ format, promptsOnly }: Pick<Candidate, "format" | "promptsOnly">) {
  return isQuantized(format) || promptsOnly ? "loaded" : "f16_tiles";
}

function scaleBuffer({ device }: Gpu, bytes: number): GPUBuffer {
  return storage(device, "tensor.experts.scales", bytes);
}

/** Rows that are put in order at a time. */
function stagedRows({ rows }: Pick<Shard, "rows">, cols: number): number {
  const steps = Math.max(1, Math.floor(STAGED_BYTES / (2 * cols * ROW_STEP)));
  return Math.min(rows, MAX_ROWS, steps * ROW_STEP);
}

/** Reorders the weights of a shard into tiles, as many rows at a time as `staging` holds. */
async function tile(
  gpu: Gpu,
  make: Compiler,
  { shard, cols, scales }: {
    readonly shard: Shard;
    readonly cols: number;
    readonly scales: Operand;
  },
  { unit, staging }: { readonly unit: MatrixUnit; readonly staging: Operand },
): Promise<void> {
  const { operand: { buffer, offset = 0 }, rows } = shard;
  const step = stagedRows(shard, cols);
  for (let first = 0; first < rows; first += step) {
    const count = Math.min(step, rows - first);
    const weights = { buffer, offset: offset + 2 * cols * first, size: 2 * cols * count };
    const own = {
      buffer: scales.buffer,
      offset: (scales.offset ?? 0) + 4 * first,
      size: 4 * count,
    };
    const tiles = { ...staging, size: weights.size };
    const plan = [tileWeights({ weights, scales: own, tiles }, { unit, rows: count, cols })];
    submit(gpu, await make.compile(plan));
    const encoder = gpu.device.createCommandEncoder();
    encoder.copyBufferToBuffer(staging.buffer, 0, buffer, weights.offset, weights.size);
    gpu.device.queue.submit([encoder.finish()]);
  }
}

/** Writes the scales of a shard. Returns whether f16 cannot represent one of its bf16 numbers at its row's scale. */
async function hasFaults(
  gpu: Gpu,
  make: Compiler,
  { format, shard: { operand, scales: groups, rows }, cols, scales }: {
    readonly format: WeightFormat;
    readonly shard: Shard;
    readonly cols: number;
    readonly scales: Operand;
  },
  { buffer }: Operand,
): Promise<boolean> {
  if (isQuantized(format) && groups) {
    submit(gpu, await make.compile([groupScales({ groups, scales }, { format, rows, cols })]));
    return false;
  }
  const faults = { buffer, offset: 0, size: 4 * rows };
  const plan = [weightScales({ weights: operand, scales, faults }, { rows, cols })];
  submit(gpu, await make.compile(plan));
  return new Uint32Array(await readBuffer(gpu, faults)).some((count) => count > 0);
}

/**
 * The expert matrices of each layer in which units multiply both, and whether they do so in forwards of prompts alone.
 */
function mixtures(
  { target, standalone }: LoadedWeights,
  { forwards, ...adapter }: {
    readonly unit: MatrixUnit;
    readonly limits: TensorLimits;
    readonly forwards: UnitsByKind;
  },
): { readonly both: readonly Matrix[]; readonly promptsOnly: boolean }[] {
  const layers = [
    ...target.weights.layers.map(({ mlp }) => ({ mlp, of: forwards })),
    ...(standalone?.weights.model.layers ?? []).map(({ mlp }) => ({
      mlp,
      of: draftUnits(forwards),
    })),
  ];
  return layers.flatMap(({ mlp, of }) => {
    if (mlp.kind !== "mixture") return [];
    const numExperts = mlp.spec.routing.numExperts + mlp.stacked;
    const both = [mlp.gateUp, mlp.down];
    const there = both.map(({ format }) => forwardsOf(format, of));
    const fits = !there.includes("none") &&
      both.every((matrix) => fitsExpertUnits(matrix, { ...adapter, numExperts }));
    return fits ? [{ both, promptsOnly: there.includes("prompts") }] : [];
  });
}

function forwardsOf(
  format: WeightFormat,
  { bf16, experts, fp4Experts }: UnitsByKind,
): UnitForwards {
  if (!isQuantized(format)) return bf16;
  return isFp4(format) ? fp4Experts : experts;
}

/** Shards by layer, and the bytes of all their scales. */
function placed(
  layers: ReturnType<typeof mixtures>,
): { readonly layers: readonly (readonly Candidate[])[]; readonly bytes: number } {
  let bytes = 0;
  const shards = layers.map(({ both, promptsOnly }) =>
    both.flatMap(({ format, shards, cols }) =>
      shards.map((shard) => {
        const offset = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
        bytes = offset + 4 * shard.rows;
        return { format, shard, cols, promptsOnly, offset };
      })
    )
  );
  return { layers: shards, bytes };
}

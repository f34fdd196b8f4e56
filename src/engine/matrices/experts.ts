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
import type { MatrixUnit, QuantizedUnits, UnitForwards } from "../../gpu/matrix_unit.ts";
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
 * tile_weights.wgsl; quantized ones stay as they are. A layer with a number that f16 cannot hold beside its row's
 * largest stays unchanged, for the other kernels.
 *
 * @returns what matrix units need of each shard.
 */
export async function scaleExperts(
  gpu: Gpu,
  loaded: LoadedWeights,
  of: {
    readonly unit: MatrixUnit;
    readonly limits: TensorLimits;
    readonly quantized: QuantizedUnits;
  },
): Promise<ReadonlyMap<Shard, TensorShard>> {
  const { layers, bytes } = placed(mixtures(loaded, of));
  const scales = new Map<Shard, TensorShard>();
  if (bytes === 0) return scales;
  const most = Math.max(...layers.flat().map(({ shard }) => shard.rows));
  const buffer = scaleBuffer(gpu, bytes);
  const faults = { buffer: storage(gpu.device, "tensor.experts.faults", 4 * most) };
  const widest = Math.max(
    ...layers.flat().map(({ format, shard, cols }) =>
      isQuantized(format) ? ALIGNMENT : stagedRows(shard, cols) * cols
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
      const tiles = !isQuantized(part.format);
      if (tiles) await tile(gpu, make, part, { unit: of.unit, staging });
      const { shard, scales: own, promptsOnly } = part;
      scales.set(shard, { scales: own, stored: tiles ? "f16_tiles" : "loaded", promptsOnly });
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
    layers.flat().map(({ shard, offset, promptsOnly }) => [
      shard,
      { scales: { buffer, offset, size: 4 * shard.rows }, stored: "loaded", promptsOnly },
    ]),
  );
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

/** Writes the scales of a shard. Returns whether f16 cannot hold one of its bf16 numbers beside its row's largest. */
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
 * The expert matrices of each layer in which units multiply both, and whether they do so in forwards of prompts alone:
 * only those of the target.
 */
function mixtures(
  { target, standalone }: LoadedWeights,
  { quantized, ...of }: {
    readonly unit: MatrixUnit;
    readonly limits: TensorLimits;
    readonly quantized: QuantizedUnits;
  },
): { readonly both: readonly Matrix[]; readonly promptsOnly: boolean }[] {
  const ofDraft = standalone?.weights.model.layers ?? [];
  return [...target.weights.layers, ...ofDraft].flatMap((layer) => {
    const { mlp } = layer;
    if (mlp.kind !== "mixture") return [];
    const numExperts = mlp.spec.routing.numExperts + mlp.stacked;
    const both = [mlp.gateUp, mlp.down];
    const forwards = both.map(({ format }) => forwardsOf(format, quantized));
    const promptsOnly = forwards.includes("prompts");
    const fits = !forwards.includes("none") && !(promptsOnly && ofDraft.includes(layer)) &&
      both.every((matrix) => fitsExpertUnits(matrix, { ...of, numExperts }));
    return fits ? [{ both, promptsOnly }] : [];
  });
}

function forwardsOf(format: WeightFormat, { experts, fp4Experts }: QuantizedUnits): UnitForwards {
  if (!isQuantized(format)) return "all";
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

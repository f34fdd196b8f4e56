/** Which mixtures of experts go to the device's matrix units, and their weights as those take them. */
import { fitsExpertUnits } from "../../../shaders/experts/experts_on_units.ts";
import { halveWeights, weightScales } from "../../../shaders/tensor/matmul_tensor.ts";
import { ALIGNMENT, storage } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Shard, TensorLimits } from "../../gpu/matrix.ts";
import type { MatrixUnit } from "../../gpu/matrix_unit.ts";
import { type Compiler, compiler, submit } from "../../gpu/program.ts";
import { readBuffer } from "../../gpu/readback.ts";
import type { LoadedWeights } from "../device/models.ts";

/** A shard of experts, and where its rows' scales begin. */
interface Candidate {
  readonly shard: Shard;
  readonly cols: number;
  /** Bytes, a multiple of ALIGNMENT. */
  readonly offset: number;
}

/**
 * Scales the experts of all mixtures whose bf16 matrices fit, in their place: they are f16 after it. A
 * layer with a number that f16 cannot hold beside its row's largest stays as it is, for the other kernels.
 *
 * @returns the scales, f32 [rows] of each shard.
 */
export async function scaleExperts(
  gpu: Gpu,
  loaded: LoadedWeights,
  of: { readonly unit: MatrixUnit; readonly limits: TensorLimits },
): Promise<ReadonlyMap<Shard, Operand>> {
  const { layers, bytes } = placed(mixtures(loaded, of));
  const scales = new Map<Shard, Operand>();
  if (bytes === 0) return scales;
  const most = Math.max(...layers.flat().map(({ shard }) => shard.rows));
  const buffer = storage(gpu.device, "tensor.experts.scales", bytes);
  const faults = { buffer: storage(gpu.device, "tensor.experts.faults", 4 * most) };
  const make = compiler(gpu);
  for (const layer of layers) {
    const parts = layer.map(({ shard, cols, offset }) => ({
      ...{ shard, cols, scales: { buffer, offset, size: 4 * shard.rows } },
    }));
    let faulty = false;
    for (const part of parts) faulty ||= await hasFaults(gpu, make, part, faults);
    if (faulty) continue;
    const plan = parts.map(({ shard: { operand, rows }, cols, scales }) =>
      halveWeights({ weights: operand, scales }, { rows, cols })
    );
    submit(gpu, await make.compile(plan));
    for (const { shard, scales: own } of parts) scales.set(shard, own);
  }
  faults.buffer.destroy();
  return scales;
}

/** Writes the scales of a shard; whether one of its numbers is no f16 beside its row's largest. */
async function hasFaults(
  gpu: Gpu,
  make: Compiler,
  { shard: { operand, rows }, cols, scales }: {
    readonly shard: Shard;
    readonly cols: number;
    readonly scales: Operand;
  },
  { buffer }: Operand,
): Promise<boolean> {
  const faults = { buffer, offset: 0, size: 4 * rows };
  const plan = [weightScales({ weights: operand, scales, faults }, { rows, cols })];
  submit(gpu, await make.compile(plan));
  return new Uint32Array(await readBuffer(gpu, faults)).some((count) => count > 0);
}

/** The matrices of each layer's experts, of layers where both fit. */
function mixtures(
  { target, standalone }: LoadedWeights,
  of: { readonly unit: MatrixUnit; readonly limits: TensorLimits },
): Matrix[][] {
  const layers = [...target.weights.layers, ...standalone?.weights.model.layers ?? []];
  return layers.flatMap(({ mlp }) => {
    if (mlp.kind !== "mixture") return [];
    const numExperts = mlp.spec.routing.numExperts + mlp.stacked;
    const both = [mlp.gateUp, mlp.down];
    return both.every((matrix) => fitsExpertUnits(matrix, { ...of, numExperts })) ? [both] : [];
  });
}

/** Shards by layer, and the bytes of all their scales. */
function placed(
  layers: readonly (readonly Matrix[])[],
): { readonly layers: readonly (readonly Candidate[])[]; readonly bytes: number } {
  let bytes = 0;
  const shards = layers.map((matrices) =>
    matrices.flatMap(({ shards, cols }) =>
      shards.map((shard) => {
        const offset = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
        bytes = offset + 4 * shard.rows;
        return { shard, cols, offset };
      })
    )
  );
  return { layers: shards, bytes };
}

/** Which mixtures of experts go to the device's matrix units, and their weights as those take them. */
import { fitsExpertUnits } from "../../../shaders/experts/experts_on_units.ts";
import { scaleWeights } from "../../../shaders/tensor/halves.ts";
import { weightScales } from "../../../shaders/tensor/matmul_tensor.ts";
import { ALIGNMENT, storage } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Matrix, Shard, TensorLimits } from "../../gpu/matrix.ts";
import type { MatrixUnit } from "../../gpu/matrix_unit.ts";
import { type Compiler, compiler, submit } from "../../gpu/program.ts";
import { readBuffer } from "../../gpu/readback.ts";
import type { LoadedWeights } from "../device/models.ts";

/** Scales of the experts' rows, and the bytes that they take. */
export interface ExpertMatrices {
  readonly scales: ReadonlyMap<Shard, Operand>;
  readonly bytes: number;
}

/** The matrices of one layer's experts, and where the scales of their shards begin. */
interface Candidate {
  readonly shards: readonly { readonly shard: Shard; readonly cols: number; readonly scales: Operand }[];
}

/**
 * Scales the experts of all mixtures whose bf16 matrices fit, in their place: they are f16 after it. A
 * layer with a number that f16 cannot hold beside its row's largest stays as it is, for the other kernels.
 */
export async function scaleExperts(
  gpu: Gpu,
  loaded: LoadedWeights,
  of: { readonly unit: MatrixUnit; readonly limits: TensorLimits },
): Promise<ExpertMatrices> {
  const { candidates, bytes, buffer } = placed(gpu, mixtures(loaded, of));
  if (buffer === undefined) return { scales: new Map(), bytes };
  const most = Math.max(...candidates.flatMap(({ shards }) => shards.map(({ shard }) => shard.rows)));
  const faults = storage(gpu.device, "experts.faults", 4 * most);
  const make = compiler(gpu);
  const scales = new Map<Shard, Operand>();
  for (const { shards } of candidates) {
    if (await anyFaults(gpu, make, shards, faults)) continue;
    const plan = shards.map(({ shard, cols, scales }) =>
      scaleWeights({ weights: shard.operand, scales }, { rows: shard.rows, cols })
    );
    submit(gpu, await make.compile(plan));
    for (const { shard, scales: own } of shards) scales.set(shard, own);
  }
  faults.destroy();
  return { scales, bytes };
}

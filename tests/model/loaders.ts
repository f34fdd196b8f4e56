/** Loaders whose weights have a buffer each. */
import type { Gpu } from "../../src/gpu/device.ts";
import { separateBuffers } from "../../src/gpu/arena.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { type Loader, loader as openLoader } from "../../src/model/weights/loader.ts";
import { randomWeights } from "../../src/model/weights/random_weights.ts";
import {
  checkpointWeights,
  type CheckpointWeightsOptions,
} from "../../src/model/weights/weights.ts";

export function loader(
  gpu: Gpu,
  checkpoint: Checkpoint,
  options?: CheckpointWeightsOptions,
): Loader {
  return openLoader(gpu, checkpointWeights(gpu, checkpoint, options), separateBuffers(gpu));
}

/** Matrices are zeros until `fill`. */
export function randomLoader(
  gpu: Gpu,
  options: Parameters<typeof randomWeights>[1],
): Loader & { fill(): void } {
  const source = randomWeights(gpu, options);
  return { ...openLoader(gpu, source, separateBuffers(gpu)), fill: () => source.fillAll() };
}

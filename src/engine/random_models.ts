import type { Gpu } from "../gpu/device.ts";
import type { QuantizeChoice } from "../model/quantize_choice.ts";
import { randomCheckpoint } from "../model/random_checkpoint.ts";
import { type RandomLoader, randomLoader } from "../model/random_weights.ts";
import { checkModels, loadWith, type OpenedModels } from "./load.ts";
import type { LoadedWeights } from "./models.ts";
import { openQuantizers } from "./quantize.ts";

/**
 * Models of real shapes without files, for timing: `--random-weights`, `--random-draft`.
 *
 * @param configs paths of config.json files.
 * @throws UsageError when one cannot be used or they do not fit together.
 */
export function openRandomModels(
  configs: { readonly target: string; readonly draft?: string },
): OpenedModels {
  const { target, draft } = configs;
  return checkModels(
    randomCheckpoint(target, "target"),
    draft === undefined ? undefined : randomCheckpoint(draft, "draft"),
  );
}

/** Makes the weights up on the GPU; the same seed gives the same ones. */
export async function loadRandomWeights(
  gpu: Gpu,
  models: OpenedModels,
  seed: number,
  quantize: QuantizeChoice = {},
): Promise<LoadedWeights> {
  using quantizers = openQuantizers(gpu, quantize);
  const made: RandomLoader[] = [];
  const weights = await loadWith(gpu, models, (_, part) => {
    const firstStream = made.at(-1)?.nextStream() ?? 0;
    const load = randomLoader(gpu, { seed, firstStream, ...quantizers.of(part) });
    made.push(load);
    return load;
  });
  for (const load of made) load.fill();
  return weights;
}

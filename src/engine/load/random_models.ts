import type { Gpu } from "../../gpu/device.ts";
import type { DraftRequest } from "../../model/weights/any_draft.ts";
import type { QuantizeChoice } from "../../model/config/quantize_choice.ts";
import { randomCheckpoint } from "../../model/weights/random_checkpoint.ts";
import { counter, type RandomWeights, randomWeights } from "../../model/weights/random_weights.ts";
import { type AllocateOptions, checkModels, loadWith } from "./load.ts";
import { type UnitsChoice, withTensorMatrices } from "../matrices/tensor.ts";
import type { OpenedModels } from "./opened_models.ts";
import type { LoadedWeights } from "../device/models.ts";
import { openQuantizers } from "./quantize.ts";

/**
 * Models of real shapes without files, for timing: `--model random:FILE`, `--draft random:FILE`.
 *
 * @param configs paths of config.json files.
 * @param algorithm a STANDALONE draft is a whole model, any other an EAGLE head.
 * @throws UsageError when one cannot be used or they do not fit together.
 */
export function openRandomModels(
  configs: { readonly target: string; readonly draft?: string },
  algorithm?: DraftRequest["algorithm"],
): OpenedModels {
  const { target, draft } = configs;
  const kind = algorithm === "STANDALONE" ? "target" : "draft";
  return checkModels(
    randomCheckpoint(target, "target"),
    draft === undefined ? undefined : randomCheckpoint(draft, kind),
  );
}

/** Makes the weights up on the GPU; the same seed gives the same ones. */
export async function loadRandomWeights(
  gpu: Gpu,
  models: OpenedModels,
  seed: number,
  options: QuantizeChoice & AllocateOptions & UnitsChoice = {},
): Promise<LoadedWeights> {
  using quantizers = openQuantizers(gpu, options);
  const nextStream = counter();
  const made: RandomWeights[] = [];
  const weights = await loadWith(gpu, models, (_, part) => {
    const source = randomWeights(gpu, { seed, nextStream, ...quantizers.of(part) });
    made.push(source);
    return source;
  }, options);
  for (const source of made) source.fillAll();
  return await withTensorMatrices(gpu, weights, options);
}

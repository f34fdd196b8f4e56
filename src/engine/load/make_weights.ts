/** The weights of both models: first measured, then made in arenas of the measured sizes. */
import { type Arena, measuringArena, openArena } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { AnyDraftConfig, ModelConfig } from "../../model/config/types.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { loadDraft, loadStandalone } from "../../model/weights/draft_weights.ts";
import { loadTarget } from "../../model/weights/target_weights.ts";
import { type Loader, loader, shapesAlone, type WeightShapes } from "../../model/weights/loader.ts";
import type { LoadedWeights } from "../device/models.ts";
import type { Part } from "./quantize.ts";

/** What weights are made from. */
export interface WeightModels {
  readonly target: {
    readonly checkpoint: Pick<Checkpoint, "name" | "tensors">;
    readonly config: ModelConfig;
  };
  readonly draft: {
    readonly checkpoint: Pick<Checkpoint, "name" | "tensors" | "read">;
    readonly config: AnyDraftConfig;
  } | undefined;
}

/**
 * Makes the weights of both models, yielding between layers.
 *
 * @param load opens the loader of a part; it is called once for each part there is.
 */
export function* makeWeights(
  { target, draft }: WeightModels,
  load: (part: Part) => Loader,
): Generator<void, LoadedWeights> {
  const { checkpoint, config } = target;
  const weights = yield* loadTarget(load("target"), checkpoint, config);
  const loaded = { target: { config, weights }, draft: undefined };
  if (!draft) return loaded;
  const { checkpoint: files, config: by } = draft;
  const from = load("draft");
  return by.algorithm === "STANDALONE"
    ? { ...loaded, standalone: { config: by, weights: yield* loadStandalone(from, files, by) } }
    : { ...loaded, draft: { config: by, weights: loadDraft(from, files, by, weights) } };
}

/** Whether the draft's weights have their own buffers, because they may be unloaded from the GPU. */
export interface ElasticOption {
  readonly elasticDraft?: boolean | undefined;
}

/** Weights that were measured and not allocated. */
export interface MeasuredWeights {
  /** Bytes of what shares buffers, in the order in which it is made. */
  readonly shared: readonly number[];
  /** The same for the draft's weights, if they have their own buffers. */
  readonly draft: readonly number[] | undefined;
  /** Bytes of the tensors of each model, without the gaps between them in a buffer. */
  readonly tensorBytes: Readonly<Record<Part, number>>;
  /** Shapes of the weights; their operands have no buffers. */
  readonly weights: LoadedWeights;
}

/**
 * Measures what `makeWeights` allocates. No tensor is read.
 *
 * @param shapesOf what the tensors of a part become on the GPU.
 */
export function measureWeights(
  gpu: Pick<Gpu, "limits">,
  models: WeightModels,
  shapesOf: (part: Part) => WeightShapes,
  { elasticDraft = false }: ElasticOption,
): MeasuredWeights {
  const shared = measuringArena();
  const draft = elasticDraft && models.draft ? measuringArena() : undefined;
  const tensorBytes = { target: 0, draft: 0 };
  const arenaOf = (part: Part): Arena => ({
    allocate(label, bytes) {
      tensorBytes[part] += bytes;
      const arena = part === "draft" ? draft ?? shared : shared;
      return arena.allocate(label, bytes);
    },
  });
  const weights = finish(
    makeWeights(models, (part) => loader(gpu, shapesAlone(shapesOf(part)), arenaOf(part))),
  );
  return { shared: shared.items, draft: draft?.items, tensorBytes, weights };
}

/** Allocates the buffers of measured weights. */
export function openWeightArenas(
  gpu: Gpu,
  { shared, draft }: Pick<MeasuredWeights, "shared" | "draft">,
): Readonly<Record<Part, Arena>> & Pick<LoadedWeights, "draftBuffers"> {
  const target = openArena(gpu, "weights", shared);
  if (draft === undefined) return { target, draft: target };
  const own = openArena(gpu, "draft", draft);
  return { target, draft: own, draftBuffers: own.buffers };
}

/** Runs what only allocates to its end. */
export function finish<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Whether a checkpoint folder runs on this machine, by its headers and config (and its head, see `withHeadOfFile`). */
import { UsageError } from "../../errors.ts";
import { openGpu } from "../../gpu/device.ts";
import { gpuMemory } from "../../gpu/memory.ts";
import { sizeOf } from "../../hub/cache.ts";
import { openCheckpoint } from "../../model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { parseModelConfig } from "../../model/config/config.ts";
import { fieldsOf } from "../../model/files/fields.ts";
import type { ModelConfig } from "../../model/config/types.ts";
import { parseDraftConfig, parseDraftSizes } from "../../model/config/draft_config.ts";
import { methodOf } from "../../model/report/parameters.ts";
import { sequenceMemory } from "../../engine/load/memory_report.ts";
import { draftBytes, kvBytesPerToken } from "../../engine/load/paper.ts";
import { DEFAULT_CONTEXT } from "../../model/device_layout.ts";
import { checkDraft, checkTarget, isEagleHead } from "../../model/weights/tensors.ts";
import { noTokenizer } from "../../text/tokenizer.ts";

/** What runs the models. */
export interface Machine {
  readonly adapter: boolean;
  /** Memory that the adapter can use; undefined where it is not known. */
  readonly bytes: number | undefined;
}

export type Verdict =
  | { readonly kind: "unusable"; readonly reason: string }
  | {
    readonly kind: "target" | "draft";
    readonly algorithm: string | undefined;
    /** How the checkpoint is quantized, undefined where it is not. */
    readonly method?: string | undefined;
    /** Weights, working memory, and keys and values of one sequence. */
    readonly memoryBytes: number;
    readonly machineBytes: number | undefined;
    /** Undefined where the size of the GPU's memory is not known. */
    readonly runs: boolean | undefined;
  };

/** The adapter, and its memory where that can be known. */
export async function thisMachine(): Promise<Machine> {
  try {
    using gpu = await openGpu();
    return { adapter: true, bytes: (await gpuMemory(gpu.info))?.total };
  } catch (error) {
    if (error instanceof UsageError) return { adapter: false, bytes: undefined };
    throw error;
  }
}

/** Reads headers and configs, and weights only to see whether the head is tied. */
export function verdictOf(folder: string, { adapter, bytes }: Machine): Verdict {
  try {
    using checkpoint = openCheckpoint(folder);
    const found = isEagleHead(checkpoint)
      ? draftMemory(checkpoint)
      : targetMemory(checkpoint, folder);
    if (!adapter) return { kind: "unusable", reason: "no WebGPU adapter, run eyrie doctor --fix" };
    const runs = bytes === undefined ? undefined : found.memoryBytes <= bytes;
    const method = methodOf(checkpoint);
    return { ...found, ...method ? { method } : {}, machineBytes: bytes, runs };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // The folder is named in the row already: `Cannot use "FOLDER": reason`.
    return { kind: "unusable", reason: error.message.replace(/^Cannot [^"]+ "[^"]*": /, "") };
  }
}

function targetMemory(checkpoint: Checkpoint, folder: string) {
  if (sizeOf(`${folder}/tokenizer.json`) === undefined) throw noTokenizer(checkpoint.name);
  const generation = checkpoint.json("generation_config.json");
  const config = parseModelConfig(checkpoint.name, checkpoint.json("config.json"), generation);
  checkTarget(checkpoint, config);
  const { total } = sequenceMemory({ target: { checkpoint, config }, draft: undefined }, {});
  return { kind: "target" as const, algorithm: undefined, memoryBytes: total };
}

function draftMemory(checkpoint: Checkpoint) {
  const sizes = parseDraftSizes(
    fieldsOf(checkpoint.name, "config.json", checkpoint.json("config.json")),
  );
  // Which target it will serve is not known; what is asked here does not depend on it.
  const standIn: ModelConfig = {
    ...sizes.decoder,
    hiddenSize: sizes.targetHiddenSize,
    eosTokenIds: [],
  };
  const config = parseDraftConfig(checkpoint, standIn);
  checkDraft(checkpoint, config);
  const context = Math.min(config.layer.maxPositions, DEFAULT_CONTEXT);
  const memoryBytes = draftBytes({ checkpoint, config }) + context * kvBytesPerToken(config.layer);
  return { kind: "draft" as const, algorithm: config.algorithm, memoryBytes };
}

/** Tensors that a draft's files repeat from the target's, as exports of whole drafts do (DeepSpec's). */
import { Buffer } from "node:buffer";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import type { TensorInfo } from "../../model/files/safetensors.ts";
import type { AnyDraftConfig, ModelConfig } from "../../model/config/types.ts";
import {
  draftTensors,
  findTensor,
  targetTensors,
  type TensorSpec,
} from "../../model/weights/tensors.ts";

/** Bytes that are compared at a time. */
const CHUNK = 1 << 22;

/** A model's files and what its config says. */
interface Read<Config> {
  readonly checkpoint: Checkpoint;
  readonly config: Config;
}

/**
 * The draft's config without its own embedding and head where they are the target's to the byte: then the target's are
 * used, and no second copy takes memory (1.2 GB each for Qwen3-8B). Comparing ends at the first chunk that differs.
 */
export function shareTensors<Config extends AnyDraftConfig>(
  draft: Read<Config>,
  target: Read<ModelConfig>,
): Config {
  const { config } = draft;
  if (config.algorithm === "STANDALONE") return config;
  const specs = draftTensors(config);
  const targets = targetTensors(target.config);
  const tensorOf = (checkpoint: Checkpoint, all: readonly TensorSpec[], role: string) => {
    const spec = all.find((one) => one.role === role);
    return spec && findTensor(checkpoint, spec);
  };
  const isShared = (role: "embed" | "head") => {
    const own = tensorOf(draft.checkpoint, specs, role);
    const other = tensorOf(target.checkpoint, targets, target.config.tied ? "embed" : role);
    return own !== undefined && other !== undefined &&
      isSame([draft.checkpoint, own], [target.checkpoint, other]);
  };
  return {
    ...config,
    ownEmbedding: config.ownEmbedding && !isShared("embed"),
    // Rows of a reduced vocabulary are others than the target's.
    ownHead: config.ownHead && (config.reducedVocab || !isShared("head")),
  };
}

function isSame(
  [checkpoint, own]: readonly [Checkpoint, TensorInfo],
  [target, other]: readonly [Checkpoint, TensorInfo],
): boolean {
  const { size } = own;
  if (own.dtype !== other.dtype || size !== other.size || `${own.shape}` !== `${other.shape}`) {
    return false;
  }
  const [a, b] = [new Uint8Array(CHUNK), new Uint8Array(CHUNK)];
  for (let at = 0; at < size; at += CHUNK) {
    const count = Math.min(CHUNK, size - at);
    const [left, right] = [a.subarray(0, count), b.subarray(0, count)];
    checkpoint.read(own, at, left);
    target.read(other, at, right);
    if (Buffer.compare(left, right) !== 0) return false;
  }
  return true;
}

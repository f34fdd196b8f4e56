/** Whether a checkpoint's head is its embedding, by its files: config.json may be silent about it, or wrong. */
import { Buffer } from "node:buffer";
import { isObject } from "../../objects.ts";
import { LLAMA_NAMES, WRAPPED } from "../config/tensor_names.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { quote } from "../files/fields.ts";
import type { TensorInfo } from "../files/safetensors.ts";

const PREFIXES = [...new Set([...LLAMA_NAMES.prefixes, ...WRAPPED.prefixes])];
const HEAD_PREFIXES = WRAPPED.headPrefixes ?? [""];

/** Bytes of each tensor that are compared at a time. */
const PIECE = 4 << 20;

/**
 * The checkpoint with a config.json that says whether the head is tied, so that what is loaded, reported and predicted
 * agree. As in transformers, an embedding and another head are not tied, whatever config.json says. Where a model with
 * a `text_config` does not say it, and there is no head, it is tied: that is so in the classes with images and text.
 *
 * Weights are read up to the first difference, and only if there are both and config.json does not say that they are
 * not tied.
 */
export function withHeadOfFile(checkpoint: Checkpoint): Checkpoint {
  const { name, tensors, warnings = [] } = checkpoint;
  const config = checkpoint.json("config.json");
  const first = (prefixes: readonly string[], rest: string) =>
    prefixes.flatMap((prefix) => tensors.get(prefix + rest) ?? [])[0];
  const embed = first(PREFIXES, "embed_tokens.weight");
  if (!isObject(config) || !embed) return checkpoint;
  // The first is LFM2's.
  const said = config.tie_embedding ?? config.tie_word_embeddings ?? undefined;
  const as = (tied: boolean): Checkpoint => {
    const changed = { ...config, tie_embedding: tied, tie_word_embeddings: tied };
    return {
      ...checkpoint,
      json: (file) => file === "config.json" ? changed : checkpoint.json(file),
    };
  };
  const head = first(HEAD_PREFIXES, "lm_head.weight");
  if (head) {
    if (said === false || isSame(checkpoint, embed, head)) return checkpoint;
    // A head of fewer tokens is a draft's, which is never taken for tied.
    if (said === undefined || head.shape[0] !== embed.shape[0]) return as(false);
    const warning = `${name}: config.json says that the head is tied, but tensor ` +
      `${quote(head.name)} differs from ${quote(embed.name)}, so it is not`;
    return { ...as(false), warnings: [...warnings, warning] };
  }
  // Quantized heads have other tensors.
  const hasHead = HEAD_PREFIXES.some((prefix) =>
    tensors.keys().some((each) => each.startsWith(`${prefix}lm_head.`))
  );
  return !hasHead && said === undefined && isObject(config.text_config) ? as(true) : checkpoint;
}

function isSame(checkpoint: Checkpoint, embed: TensorInfo, head: TensorInfo): boolean {
  const { size } = embed;
  if (embed.dtypeName !== head.dtypeName || size !== head.size) return false;
  if (quote(embed.shape) !== quote(head.shape)) return false;
  // torch's files have one storage for both.
  if (embed.file === head.file && embed.begin === head.begin) return true;
  const [a, b] = [new Uint8Array(PIECE), new Uint8Array(PIECE)];
  for (let at = 0; at < size; at += PIECE) {
    const length = Math.min(PIECE, size - at);
    const pieces = [a.subarray(0, length), b.subarray(0, length)] as const;
    checkpoint.read(embed, at, pieces[0]);
    checkpoint.read(head, at, pieces[1]);
    if (Buffer.compare(...pieces) !== 0) return false;
  }
  return true;
}

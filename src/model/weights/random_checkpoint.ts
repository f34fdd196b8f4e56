/** A checkpoint that is a config.json and nothing else: names and shapes follow from it. */
import { reason, UsageError } from "../../errors.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { DType, TensorInfo } from "../files/safetensors.ts";
import { fieldsOf, parseModelConfig } from "../config/config.ts";
import type { DraftConfig } from "../config/types.ts";
import { parseDraftSizes } from "../config/draft_config.ts";
import { type Fields, flag, integer, quote, unusable, value } from "../files/fields.ts";
import { type Folder, memoryFolder, readJson } from "../files/folder.ts";
import { readScheme } from "../checkpoint/quantized/scheme.ts";
import { draftTensors, targetTensors, type TensorKind, type TensorSpec } from "./tensors.ts";

const DTYPE: Readonly<Record<TensorKind, DType>> = {
  matrix: "BF16",
  table: "BF16",
  vector: "BF16",
  ids: "I32",
};
const BYTES: Readonly<Record<TensorKind, number>> = { matrix: 2, table: 2, vector: 2, ids: 4 };

/**
 * Opens a config.json without weights. Ids are zeros: draft token i is target token i. Other
 * tensors have no bytes to read; `randomWeights` makes them up.
 *
 * @throws UsageError when the file is none, or describes no model that Eyrie runs.
 */
export function randomCheckpoint(configPath: string, kind: "target" | "draft"): Checkpoint {
  const folder = configAlone(configPath);
  const json = (file: string) => readJson(folder, file);
  refuseQuantized(fieldsOf(configPath, "config.json", json("config.json")));
  const specs = kind === "target"
    ? targetTensors(parseModelConfig(configPath, json("config.json"), undefined))
    : draftTensors(publishedHead(fieldsOf(configPath, "config.json", json("config.json"))));
  const kinds = new Map(specs.map((spec) => [spec.name, spec.kind]));
  return {
    name: configPath,
    tensors: tensorsAlone(specs),
    json,
    text: () => undefined,
    read({ name }, _offset, into) {
      if (kinds.get(name) !== "ids") throw new Error(`tensor ${name} of ${configPath} is random`);
      into.fill(0);
    },
    [Symbol.dispose]: () => {},
  };
}

/** Random weights are bf16, and the config says otherwise. */
function refuseQuantized(config: Fields): void {
  const scheme = readScheme(config);
  if (scheme === undefined) return;
  throw unusable(config, `says ${scheme.method}, random weights are not quantized by a config`);
}

function configAlone(path: string): Folder {
  let bytes: Uint8Array;
  try {
    bytes = Deno.readFileSync(path);
  } catch (cause) {
    const missing = cause instanceof Deno.errors.NotFound;
    const why = missing ? "no such file" : `it must be a config.json (${reason(cause)})`;
    throw new UsageError(`Cannot open ${quote(path)}: ${why}`, { cause });
  }
  return memoryFolder(path, (file) => file === "config.json" ? bytes : undefined);
}

/** What the headers of a checkpoint in bf16 with these tensors say. */
export function tensorsAlone(specs: readonly TensorSpec[]): ReadonlyMap<string, TensorInfo> {
  return new Map(specs.map((spec) => [spec.name, tensorOf(spec)]));
}

/** A spec may be rows of a larger tensor, as q, k and v are with Phi-3. */
function tensorOf({ name, shape, kind, part }: TensorSpec): TensorInfo {
  const dtype = DTYPE[kind];
  const whole = part === undefined ? shape : [part.of, ...shape.slice(1)];
  const size = whole.reduce((product, n) => product * n, BYTES[kind]);
  return { name, dtype, dtypeName: dtype, shape: whole, file: "config.json", begin: 0, size };
}

/**
 * The config of an EAGLE head: what its tensors would say, as published heads have it: EAGLE-3 with an lm_head of its own,
 * EAGLE with the target's and a bias unless config.json says no, both with the target's embedding
 * where it fits.
 */
export function publishedHead(config: Fields): DraftConfig {
  const { named, decoder, targetHiddenSize } = parseDraftSizes(config);
  const { vocabSize, hiddenSize } = decoder;
  const reduced = value(config, "draft_vocab_size") !== undefined;
  const eagle3 = named === "EAGLE3" || named === undefined && reduced;
  const draftVocabSize = eagle3
    ? integer(config, "draft_vocab_size", { least: 1, most: vocabSize, fallback: vocabSize })
    : vocabSize;
  return {
    algorithm: eagle3 ? "EAGLE3" : "EAGLE",
    layer: {
      ...decoder,
      layers: decoder.layers.slice(0, 1),
      tied: false,
      bosTokenId: undefined,
      eosTokenIds: [],
    },
    targetHiddenSize,
    draftVocabSize,
    fcBias: !eagle3 && flag(config, "bias", true),
    auxLayers: [],
    ownEmbedding: targetHiddenSize !== hiddenSize,
    ownHead: eagle3,
    reducedVocab: draftVocabSize < vocabSize,
    normBeforeResidual: false,
    inputNorms: eagle3 ? inputNorms(config) : "none",
    normOutput: eagle3 && flag(config, "norm_output", false),
    prefix: "",
    fc: "fc",
    layerPrefix: eagle3 ? "midlayer" : "layers.0",
  };
}

function inputNorms(config: Fields): DraftConfig["inputNorms"] {
  if (flag(config, "norm_before_fc", false)) return "whole";
  return flag(config, "fc_norm", false) ? "each" : "none";
}

/** A checkpoint made from a config.json alone, which determines the tensors' names and shapes. */
import { reason, UsageError } from "../../errors.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { DType, TensorInfo } from "../files/safetensors.ts";
import { parseModelConfig } from "../config/config.ts";
import type { DraftConfig } from "../config/types.ts";
import { parseDraftSizes } from "../config/draft_config.ts";
import {
  type Fields,
  fieldsOf,
  flag,
  integer,
  nested,
  quote,
  unusable,
  value,
} from "../files/fields.ts";
import { type Folder, memoryFolder, readJson } from "../files/folder.ts";
import { rowWords } from "../checkpoint/quantized/modules.ts";
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
 * tensors have no bytes to read; `randomWeights` generates them.
 *
 * @throws UsageError if there is no such file, or if it describes no model that Eyrie runs.
 */
export function randomCheckpoint(configPath: string, kind: "target" | "draft"): Checkpoint {
  const folder = configAlone(configPath);
  const json = (file: string) => readJson(folder, file);
  const config = fieldsOf(configPath, "config.json", json("config.json"));
  refuseQuantized(config);
  const specs = kind === "target"
    ? targetTensors(parseModelConfig(configPath, json("config.json"), undefined))
    : draftTensors(publishedHead(config));
  const kinds = new Map(specs.map((spec) => [spec.name, spec.kind]));
  return {
    name: configPath,
    tensors: tensorsAlone(specs, isMxfp4(config)),
    json,
    text: () => undefined,
    read({ name }, _offset, into) {
      if (kinds.get(name) !== "ids") throw new Error(`tensor ${name} of ${configPath} is random`);
      into.fill(0);
    },
    [Symbol.dispose]: () => {},
  };
}

/** Random weights are bf16, or MXFP4 for experts of gpt-oss. @throws UsageError if the config says otherwise. */
function refuseQuantized(config: Fields): void {
  const scheme = readScheme(config);
  if (scheme === undefined) return;
  throw unusable(config, `says ${scheme.method}, random weights are not quantized by a config`);
}

/** Whether experts are in MXFP4, as gpt-oss is published. */
function isMxfp4(config: Fields): boolean {
  const quantized = nested(config, "quantization_config");
  return quantized !== undefined && value(quantized, "quant_method") === "mxfp4";
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

/**
 * The tensors as the headers of a bf16 checkpoint would describe them. With `mxfp4` tensors with the matrices of all
 * experts are MXFP4.
 */
export function tensorsAlone(
  specs: readonly TensorSpec[],
  mxfp4 = false,
): ReadonlyMap<string, TensorInfo> {
  return new Map(specs.map((spec) => [
    spec.name,
    mxfp4 && spec.part && spec.share !== undefined ? expertsOf(spec) : tensorOf(spec),
  ]));
}

/** A spec may be rows of a larger tensor, as q, k and v are with Phi-3. */
function tensorOf({ name, shape, kind, part }: TensorSpec): TensorInfo {
  const dtype = DTYPE[kind];
  const whole = part === undefined ? shape : [part.of, ...shape.slice(1)];
  const size = whole.reduce((product, n) => product * n, BYTES[kind]);
  return { name, dtype, dtypeName: dtype, shape: whole, file: "config.json", begin: 0, size };
}

function expertsOf(spec: TensorSpec): TensorInfo {
  const bf16 = tensorOf(spec);
  const [rows = 0, cols = 0] = bf16.shape;
  const size = 4 * rows * rowWords({ format: "mxfp4", cols }).all;
  return { ...bf16, dtype: "GROUPED_MXFP4", dtypeName: "MXFP4", size };
}

/**
 * The config of an EAGLE head, with the usual choices of published heads for what only the tensors would show. EAGLE-3
 * has its own lm_head; EAGLE uses the target's and has a bias unless config.json says no. Both use the target's
 * embedding if it fits.
 */
export function publishedHead(config: Fields): DraftConfig {
  const { named, decoder, targetHiddenSize } = parseDraftSizes(config);
  const { vocabSize, hiddenSize } = decoder;
  const reduced = value(config, "draft_vocab_size") !== undefined;
  const eagle3 = named === "EAGLE3" || named === undefined && reduced;
  const draftVocabSize = eagle3
    ? integer(config, "draft_vocab_size", { min: 1, max: vocabSize, fallback: vocabSize })
    : vocabSize;
  return {
    algorithm: eagle3 ? "EAGLE3" : "EAGLE",
    layer: {
      ...decoder,
      layers: decoder.layers.slice(0, 1),
      tied: false,
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

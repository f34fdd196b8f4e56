/** Weights of a causal model. */
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import type { ModelConfig } from "../config/types.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import { type DecoderLayer, loadLayer } from "./layer_weights.ts";
import type { Loader } from "./loader.ts";
import { findTensor, targetTensors, type TensorSpec } from "./tensors.ts";

/** Weights of a target. */
export interface TargetWeights {
  /** [vocab, hidden] */
  readonly embed: Table;
  /** The layers' own embeddings of tokens, if the model has them (Gemma 4). */
  readonly perLayer?: PerLayerTable | undefined;
  /** Ones, [hidden], where embeddings are normed. */
  readonly embedNorm?: Operand;
  /** `inputNorm` is undefined if only the outputs of branches are normed. */
  readonly layers: readonly (DecoderLayer & { readonly inputNorm: Operand | undefined })[];
  /** [hidden] */
  readonly norm: Operand;
  /** [vocab, hidden]; the embedding itself where tied. */
  readonly head: Matrix;
}

/** Own embeddings of L layers, W numbers per layer and token. */
export interface PerLayerTable {
  /** [vocab, L W]. Its rows are only looked up, so it may have several shards. */
  readonly embed: Table;
  /** [L W, hidden] */
  readonly projection: Matrix;
  /** [W] */
  readonly norm: Operand;
}

/** Finds a checkpoint's tensor by the role a spec gives it. */
export function byRole(
  checkpoint: Pick<Checkpoint, "name" | "tensors">,
  specs: readonly TensorSpec[],
): (role: string) => TensorInfo {
  const roles = new Map(specs.map((spec) => [spec.role, spec]));
  return (role) => {
    const spec = roles.get(role);
    const tensor = spec && findTensor(checkpoint, spec);
    if (!tensor) throw new Error(`${checkpoint.name} has no tensor for the role ${role}`);
    return tensor;
  };
}

/**
 * Loads the target. The tensors were checked before (checkTensors). It yields between layers, so that the
 * caller can run other work.
 */
export function* loadTarget(
  load: Loader,
  checkpoint: Pick<Checkpoint, "name" | "tensors">,
  config: ModelConfig,
): Generator<void, TargetWeights> {
  const tensor = byRole(checkpoint, targetTensors(config));
  const table = load.table("embed", tensor("embed"));
  const { normOffset } = config;
  const perLayer = config.perLayer && {
    embed: load.table("perLayer.embed", tensor("perLayer.embed")),
    projection: load.matrix("perLayer.projection", [tensor("perLayer.projection")]),
    norm: load.norm("perLayer.norm", normOffset, tensor("perLayer.norm")),
  };
  const layers: TargetWeights["layers"][number][] = [];
  for (const [i, spec] of config.layers.entries()) {
    yield;
    const label = `layers.${i}`;
    const ofLayer = (role: string) => tensor(`${label}.${role}`);
    layers.push({
      ...loadLayer({ load, label, tensor: ofLayer, normOffset }, spec, config),
      inputNorm: spec.norms === "after"
        ? undefined
        : load.norm(`${label}.inputNorm`, normOffset, ofLayer("inputNorm")),
    });
  }
  yield;
  return {
    embed: table,
    ...perLayer && { perLayer },
    ...config.embedNorm ? { embedNorm: load.constants("embedNorm", [1], config.hiddenSize) } : {},
    layers,
    norm: load.norm("norm", config.finalNormOffset ?? normOffset, tensor("norm")),
    head: config.tied ? table : load.matrix("head", [tensor("head")]),
  };
}

/** The report of `eyrie inspect` as a value. It is made from headers and configs only, without weights. */
import type { Quantization } from "../../gpu/weight_format.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { Algorithm, AnyDraftConfig, ModelConfig } from "../config/types.ts";
import { misfit } from "../config/fit.ts";
import { type CachedAttention, isRecurrent } from "../config/layer_config.ts";
import {
  type ExpertReport,
  expertReport,
  type HeadReport,
  headReport,
  type LayerKind,
  layerKinds,
  type NextnReport,
  nextnReport,
  type OtherHeads,
  otherHeads,
  type RopeReport,
  ropeReports,
  sharingLayers,
} from "./layer_report.ts";
import { activeParameterCount, keptMatrices, methodOf, parameterCount } from "./parameters.ts";
import { draftTensors, targetTensors, type TensorSpec } from "../weights/tensors.ts";

/** An opened checkpoint whose tensors were checked. */
export interface Inspected<Config> {
  readonly checkpoint: Pick<Checkpoint, "name" | "tensors">;
  readonly config: Config;
  /** What `checkTensors` returned. */
  readonly warnings: readonly string[];
  /** How matrices are quantized at load. */
  readonly quantize?: Quantization | undefined;
}

/** A draft, and how its tokens differ from the target's, if that was checked. */
export interface InspectedDraft extends Inspected<AnyDraftConfig> {
  readonly vocabularyMisfit?: string | undefined;
}

/** The effect of quantization at load on a checkpoint. */
export interface QuantizeReport {
  readonly to: Quantization;
  readonly matrices: number;
  /** Matrices that stay as they are, because their width is no multiple of 64. */
  readonly kept: number;
  /** Matrices that are already quantized in the checkpoint. */
  readonly already: number;
}

/** Tensors of one dtype or of one file. */
export interface TensorTotal {
  /** The dtype's or file's name. */
  readonly name: string;
  readonly tensors: number;
  /** Bytes of the tensors, without header. */
  readonly bytes: number;
}

/** One checkpoint. */
export interface PartReport extends HeadReport, PartMemory {
  readonly name: string;
  readonly architecture: string;
  readonly modelType: string;
  readonly parameters: number;
  /** Parameters that a token is multiplied with: fewer if experts are chosen. */
  readonly activeParameters: number;
  readonly layers: number;
  readonly layerKinds: readonly LayerKind[];
  readonly hiddenSize: number;
  /** Width of dense MLPs, null if there are none. */
  readonly intermediateSize: number | null;
  readonly experts: ExpertReport | null;
  readonly otherHeads: readonly OtherHeads[];
  /** Layers that read keys and values of an earlier one. */
  readonly sharingLayers: number;
  readonly vocabSize: number;
  /** Width of each layer's own embedding of a token, null if layers have none. */
  readonly perLayerEmbeddingWidth: number | null;
  /** Tokens. */
  readonly context: number;
  readonly tied: boolean;
  /** Number of keys that a query sees in layers with a window, null if no layer has one. */
  readonly window: number | null;
  readonly windowLayers: number;
  /** Places of these layers, from 0. */
  readonly windowIndices: readonly number[];
  readonly ropes: readonly RopeReport[];
  readonly dtypes: readonly TensorTotal[];
  readonly files: readonly TensorTotal[];
  /** How the checkpoint itself is quantized, null where it is not. */
  readonly method: string | null;
  readonly quantized: QuantizeReport | null;
  readonly warnings: readonly string[];
}

/** What one model takes on the GPU. */
export interface PartMemory {
  readonly weightBytes: number;
  readonly kvBytesPerToken: number;
}

/** A target, and whether its own files have NextN layers. */
export interface TargetReport extends PartReport {
  readonly nextn: NextnReport | null;
}

/** A draft, and whether it fits the target. */
export interface DraftReport extends PartReport {
  readonly algorithm: Algorithm;
  readonly draftVocabSize: number;
  readonly auxLayers: readonly number[];
  readonly ownEmbedding: boolean;
  readonly ownHead: boolean;
  readonly fits: boolean;
  /** Why it does not fit, null when it does. */
  readonly misfit: string | null;
}

/** GPU memory for one sequence, bytes. */
export interface MemoryReport {
  readonly weightBytes: number;
  readonly kvDtype: KvDtype;
  /** Only for layers that keep keys and values of all tokens. */
  readonly kvBytesPerToken: number;
  /** Keys and values of layers that keep only a window; part of `kvBytes`. */
  readonly windowBytes: number;
  /** States of fixed size of recurrent layers; part of `kvBytes`. */
  readonly stateBytes: number;
  /** Tokens of the one sequence: the model's context, limited to the default. */
  readonly context: number;
  /** Keys and values of that context. */
  readonly kvBytes: number;
  /** Working memory of rounds and of prefill in chunks of `scratchRows` rows. */
  readonly scratchBytes: number;
  readonly scratchRows: number;
  readonly totalBytes: number;
  /** Bytes that sets of tiers add to plain decoding of `tierBatch` sequences; empty if nothing drafts. */
  readonly tiers: readonly { readonly numSteps: readonly number[]; readonly bytes: number }[];
  readonly tierBatch: number;
}

/** Memory that an engine with these models takes, in total and per model. */
export interface AllMemory {
  readonly target: PartMemory;
  readonly draft: PartMemory | null;
  readonly all: MemoryReport;
}

/** A target, its draft if there is one, and the memory that both take. */
export interface ModelReport {
  readonly target: TargetReport;
  readonly draft: DraftReport | null;
  readonly memory: MemoryReport;
}

/** The report on a target and its draft; a draft that does not fit is reported, not thrown. */
export function inspectReport(
  target: Inspected<ModelConfig>,
  draft: InspectedDraft | null,
  memory: AllMemory,
): ModelReport {
  return {
    target: targetReport(target, memory.target),
    draft: draft && draftReport(draft, target.config, memory.draft as PartMemory),
    memory: memory.all,
  };
}

function targetReport(target: Inspected<ModelConfig>, memory: PartMemory): TargetReport {
  const { checkpoint, config } = target;
  return {
    ...partReport(target, config, targetTensors(config), memory),
    nextn: nextnReport(checkpoint, config),
  };
}

function draftReport(
  draft: InspectedDraft,
  target: ModelConfig,
  memory: PartMemory,
): DraftReport {
  const { config } = draft;
  const why = misfit(config, target) ?? draft.vocabularyMisfit;
  const whole = { auxLayers: [], ownEmbedding: true, ownHead: true };
  const { auxLayers, ownEmbedding, ownHead } = config.algorithm === "STANDALONE" ? whole : config;
  return {
    ...partReport(draft, config.layer, draftTensors(config), memory),
    algorithm: config.algorithm,
    draftVocabSize: config.draftVocabSize,
    auxLayers,
    ownEmbedding,
    ownHead,
    fits: why === undefined,
    misfit: why ?? null,
  };
}

function partReport(
  { checkpoint, warnings, quantize }: Inspected<unknown>,
  config: ModelConfig,
  specs: readonly TensorSpec[],
  memory: PartMemory,
): PartReport {
  // Layers may differ in more than kinds, heads, windows and ropes; the rest is reported only for the first layer.
  const cached = config.layers.flatMap(({ attention }) =>
    isRecurrent(attention) ? [] : [attention]
  );
  const attention = cached[0] as CachedAttention;
  const dense = config.layers.find(({ mlp }) => mlp.kind === "dense")?.mlp;
  const windows = config.layers.flatMap(({ attention: { window } }, index) =>
    window === undefined ? [] : [{ window, index }]
  );
  const tensors = [...checkpoint.tensors.values()];
  return {
    name: checkpoint.name,
    architecture: config.architecture,
    modelType: config.modelType,
    parameters: parameterCount(specs),
    activeParameters: activeParameterCount(specs),
    layers: config.layers.length,
    layerKinds: layerKinds(config),
    hiddenSize: config.hiddenSize,
    intermediateSize: dense?.intermediateSize ?? null,
    experts: expertReport(config),
    ...headReport(attention),
    otherHeads: otherHeads(config),
    sharingLayers: sharingLayers(config),
    vocabSize: config.vocabSize,
    perLayerEmbeddingWidth: config.perLayer?.width ?? null,
    context: config.maxPositions,
    tied: config.tied,
    window: windows[0]?.window ?? null,
    windowLayers: windows.length,
    windowIndices: windows.map(({ index }) => index),
    ropes: ropeReports(config),
    dtypes: totals(tensors, ({ dtypeName }) => dtypeName),
    files: totals(tensors, ({ file }) => file),
    method: methodOf(checkpoint) ?? null,
    quantized: quantize ? quantizeReport(checkpoint, specs, quantize) : null,
    weightBytes: memory.weightBytes,
    kvBytesPerToken: memory.kvBytesPerToken,
    warnings,
  };
}

function quantizeReport(
  checkpoint: Pick<Checkpoint, "tensors">,
  specs: readonly TensorSpec[],
  to: Quantization,
): QuantizeReport {
  const { narrow: { length: kept }, quantized: { length: already } } = keptMatrices(
    checkpoint,
    specs,
  );
  const all = specs.filter(({ kind }) => kind === "matrix").length;
  return { to, matrices: all - kept - already, kept, already };
}

function totals(
  tensors: readonly TensorInfo[],
  nameOf: (tensor: TensorInfo) => string,
): TensorTotal[] {
  return [...Map.groupBy(tensors, nameOf)]
    .map(([name, group]) => ({
      name,
      tensors: group.length,
      bytes: group.reduce((total, tensor) => total + bytesOf(tensor), 0),
    }))
    .sort((a, b) => a.name < b.name ? -1 : 1);
}

/** Bytes of a tensor as the checkpoint has it; for MXFP4 as in its file, 17 bytes per 32 numbers. */
function bytesOf({ dtype, shape, size }: TensorInfo): number {
  if (dtype !== "GROUPED_MXFP4") return size;
  return shape.reduce((product, n) => product * n, 17 / 32);
}

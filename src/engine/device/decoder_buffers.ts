/** Buffers that the forwards of a decoder read and write, besides weights and KV pages. */
import { gatheredWords } from "../../../kernels/sample/gather.ts";
import { headWords } from "../../../kernels/attention/handoff_heads.ts";
import { handoffWords, sumWords } from "../../../kernels/matmul/handoff/handoff.ts";
import { slicePartialWords } from "../../../kernels/sample/slice_partials.ts";
import type { RowScales } from "../../../kernels/norm/rms_norm.ts";
import { ALIGNMENT } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { AttentionUnits, TensorMatrices } from "../../gpu/matrices_on_units.ts";
import { type Launches, tuning } from "../../gpu/tuning.ts";
import {
  actWidth,
  attentionSizes,
  isRecurrent,
  maxRowJobs,
  ropeWidth,
} from "../../model/config/layer_config.ts";
import type { ModelConfig } from "../../model/config/types.ts";
import type { DecoderContext, HandoffBuffers } from "../../model/graph/context.ts";
import type { LayerKv } from "../../model/graph/graph.ts";
import type { Target } from "../../model/graph/target.ts";
import type { ScratchPool } from "../../gpu/scratch_pool.ts";
import { rewritesWithout } from "../../model/lower/without.ts";
import type { TargetWeights } from "../../model/weights/target_weights.ts";
import { ropeTable } from "../../model/weights/rope_table.ts";
import { PAGE } from "../../model/device_layout.ts";
import { write } from "../../model/weights/upload.ts";
import {
  type EngineSizes,
  maxForwardRows,
  type RoundBuffers,
  storageBuffer,
  tablePages,
} from "./buffers.ts";

/** What target and draft share. */
export type SharedBuffers = RoundBuffers & {
  readonly launches: Launches | undefined;
  readonly joinsMlp: boolean | undefined;
  readonly tensor: TensorMatrices | undefined;
  readonly attentionUnits: AttentionUnits | undefined;
  /** Shared by both, because their forwards never run at the same time. */
  readonly scratch: ScratchPool;
};

/**
 * A causal model with everything that its forwards read and write.
 *
 * @param model.logitRows that get logits at once.
 */
export function causalModel(
  gpu: Gpu,
  name: "target" | "draft",
  { config, weights, kv, logitRows: rows }: {
    readonly config: ModelConfig;
    readonly weights: TargetWeights;
    readonly kv: readonly LayerKv[];
    readonly logitRows: number;
  },
  capacity: EngineSizes,
  shared: SharedBuffers,
): Target {
  const words = (label: string, count: number) =>
    storageBuffer(gpu, name === "target" ? label : `${name}.${label}`, count);
  const context = decoderContext(gpu, name, config, capacity, shared);
  const gathered = name === "target" // a draft proposes its largest logits
    ? rows * gatheredWords(config.vocabSize, context.tuning.rowLanes)
    : 0;
  return {
    ...context,
    gathered: gathered > 0 ? words("gathered", gathered) : undefined,
    weights,
    kv,
    final: words("final", maxForwardRows(capacity) * config.hiddenSize),
    logits: words("logits", rows * weights.head.rows),
    partials: words("partials", rows * slicePartialWords(config.vocabSize)),
  };
}

/** Buffers of the graphs of a decoder, other than its weights and KV pages. */
export function decoderContext(
  gpu: Gpu,
  name: string,
  config: ModelConfig,
  capacity: EngineSizes,
  shared: SharedBuffers,
): DecoderContext {
  const rules = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
  const rows = maxForwardRows(capacity);
  return {
    config,
    tuning: {
      ...rules,
      handoffs: rules.handoffs && (shared.joinsMlp ?? true),
      subgroup: gpu.info.subgroup,
      launches: shared.launches,
      tensor: shared.tensor,
      attentionUnits: shared.attentionUnits,
    },
    ropes: config.ropes.map((_, i) =>
      storageBuffer(gpu, `${name}.ropes.${i}`, ropePositions(capacity) * ropeCols(config, i))
    ),
    pages: shared.pages,
    tablePages: tablePages(capacity),
    kvDtype: capacity.kvDtype ?? "f32",
    widestRows: rows,
    scratch: shared.scratch,
    without: rewritesWithout(),
    scales: shared.tensor && rowScales(gpu, name, config, rows),
    handoff: handoffBuffers(gpu, name, config),
  };
}

/** The same target, for forwards that use matrix units for these. */
export function withUnits(
  gpu: Gpu,
  target: Target,
  units: Pick<SharedBuffers, "tensor" | "attentionUnits">,
  capacity: EngineSizes,
): Target {
  const { config, tuning, scales } = target;
  return {
    ...target,
    tuning: { ...tuning, ...units },
    scales: units.tensor && (scales ?? rowScales(gpu, "target", config, maxForwardRows(capacity))),
  };
}

/** Writes the rope tables of a decoder; until then they are zeros. */
export function writeRopes(
  gpu: Gpu,
  { config, ropes }: Pick<DecoderContext, "config" | "ropes">,
  capacity: EngineSizes,
): void {
  const lengths = { positions: ropePositions(capacity), context: capacity.contextLength };
  for (const [i, rope] of config.ropes.entries()) {
    write(gpu, ropes[i] as Operand, ropeTable(rope, ropeCols(config, i), lengths));
  }
}

function ropePositions(capacity: EngineSizes): number {
  return tablePages(capacity) * PAGE;
}

/**
 * Columns of the rope table `i`: the rope width of the layers that use it, or of any layer with keys if none does; 0 if
 * no layer has keys.
 */
function ropeCols({ layers }: ModelConfig, i: number): number {
  const cached = layers.flatMap(({ attention }) => isRecurrent(attention) ? [] : [attention]);
  const spec = cached.find(({ rope }) => rope === i) ?? cached[0];
  return spec === undefined ? 0 : ropeWidth(spec);
}

/** Allocates the scales of rows; those of each input begin at an offset that a binding may have. */
function rowScales(gpu: Gpu, name: string, { layers }: ModelConfig, rows: number): RowScales {
  const stride = Math.ceil(4 * rows / ALIGNMENT) * ALIGNMENT / 4;
  const words = (label: string, count: number) => storageBuffer(gpu, `${name}.${label}`, count);
  const jobs = maxRowJobs(layers);
  return {
    normed: words("scales", rows),
    reduced: words("reduced", stride + jobs * rows),
    stride,
    jobs,
  };
}

function handoffBuffers(
  gpu: Gpu,
  name: string,
  { hiddenSize, layers }: ModelConfig,
): HandoffBuffers | undefined {
  if (!tuning(gpu.info.software, gpu.limits, gpu.info.backend).handoffs) return undefined;
  const widest = Math.max(...layers.map(({ mlp }) => actWidth(mlp)));
  const heads = Math.max(...layers.map(({ attention }) => attentionSizes(attention).ownRow));
  return {
    act: storageBuffer(gpu, `${name}.handoff`, handoffWords(widest)),
    heads: storageBuffer(
      gpu,
      `${name}.handoffHeads`,
      Math.max(headWords(heads), sumWords(hiddenSize)),
    ),
  };
}

/** What the plans of a decoder write to. */
import type { PartialSums } from "../../../kernels/attention/partial_sums.ts";
import { gatheredWords } from "../../../kernels/sample/gather.ts";
import { attentionPartialWords } from "../../../kernels/mla/partial_words.ts";
import { MOST_NORMED_ROWS } from "../../../kernels/matmul/hold/norms_rows.ts";
import { headWords } from "../../../kernels/attention/relayed_heads.ts";
import { relayWords, sumWords } from "../../../kernels/matmul/relay/relay.ts";
import { slicePartialWords } from "../../../kernels/sample/slice_partials.ts";
import type { RowScales } from "../../../kernels/norm/rms_norm.ts";
import { ALIGNMENT } from "../../gpu/arena.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand } from "../../gpu/kernel.ts";
import {
  type AttentionUnits,
  type Launches,
  mayJoin,
  MOST_SPLIT_K,
  type TensorMatrices,
  tuning,
} from "../../gpu/matrix.ts";
import type { MatrixUnit } from "../../gpu/matrix_unit.ts";
import {
  actWidth,
  attentionSizes,
  headsOf,
  type LayerConfig,
  type MixtureMlp,
  mostJobs,
  mostRowJobs,
  ropeWidth,
} from "../../model/config/layer_config.ts";
import type { ModelConfig } from "../../model/config/types.ts";
import type {
  DecoderContext,
  LayerKv,
  MixtureScratch,
  RelayScratch,
  Scratch,
} from "../../model/plan/decoder_context.ts";
import { mixtureTileWords } from "../../model/plan/mixture_sizes.ts";
import { ropeTable } from "../../model/plan/rope.ts";
import type { Target, TargetWeights } from "../../model/plan/target.ts";
import { PAGE } from "../../model/plan/device_layout.ts";
import { write } from "../../model/weights/weights.ts";
import {
  type EngineSizes,
  maxRows,
  type RoundBuffers,
  storageBuffer,
  tablePages,
} from "./buffers.ts";
import { sumsWidth } from "../../model/plan/sums_width.ts";

/** What target and draft share. */
export type SharedBuffers = RoundBuffers & {
  readonly partial: PartialSums;
  readonly launches: Launches | undefined;
  readonly tensor: TensorMatrices | undefined;
  readonly attentionUnits: AttentionUnits | undefined;
};

/**
 * A causal model with everything that its plans write to.
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
    final: words("final", maxRows(capacity) * config.hiddenSize),
    logits: words("logits", rows * weights.head.rows),
    partials: words("partials", rows * slicePartialWords(config.vocabSize)),
  };
}

/** What plans of a decoder work on, its weights and KV pages apart. */
export function decoderContext(
  gpu: Gpu,
  name: string,
  config: ModelConfig,
  capacity: EngineSizes,
  shared: SharedBuffers,
): DecoderContext {
  const rules = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
  return {
    config,
    tuning: {
      ...rules,
      relays: rules.relays && mayJoin(shared.launches),
      subgroup: gpu.info.subgroup,
      launches: shared.launches,
      tensor: shared.tensor,
      attentionUnits: shared.attentionUnits,
    },
    scratch: {
      ...scratch(gpu, name, config, { rows: maxRows(capacity), unit: shared.tensor?.unit }),
      partial: shared.partial,
      scales: shared.tensor && rowScales(gpu, name, config, maxRows(capacity)),
    },
    ropes: config.ropes.map((_, i) =>
      storageBuffer(gpu, `${name}.ropes.${i}`, ropePositions(capacity) * ropeCols(config))
    ),
    pages: shared.pages,
    tablePages: tablePages(capacity),
    kvDtype: capacity.kvDtype ?? "f32",
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
    write(gpu, ropes[i] as Operand, ropeTable(rope, ropeCols(config), lengths));
  }
}

function ropePositions(capacity: EngineSizes): number {
  return tablePages(capacity) * PAGE;
}

function ropeCols({ layers }: ModelConfig): number {
  return ropeWidth((layers[0] as LayerConfig).attention);
}

/** Room for the partial sums of either model's attention: they never run at once. */
export function partialSums(
  gpu: Gpu,
  configs: readonly ModelConfig[],
  capacity: EngineSizes,
  attentionUnits: AttentionUnits | undefined,
): PartialSums {
  const { kvDtype = "f32" } = capacity;
  const layout = { tablePages: tablePages(capacity), kvDtype };
  const adapter = {
    ...tuning(gpu.info.software, gpu.limits, gpu.info.backend),
    attentionUnits,
  };
  const words = configs.flatMap(({ layers }) => layers).map(({ attention }) =>
    attentionPartialWords(headsOf(attention, layout), maxRows(capacity), adapter)
  );
  const halves = Math.max(...words.map(({ halves = 0 }) => halves));
  return {
    sums: storageBuffer(gpu, "partial.sums", Math.max(...words.map(({ sums }) => sums))),
    stats: storageBuffer(gpu, "partial.stats", Math.max(...words.map(({ stats }) => stats))),
    ...halves > 0 && { halves: storageBuffer(gpu, "partial.halves", halves) },
  };
}

/** The rows of each input begin where a binding may. */
function rowScales(gpu: Gpu, name: string, { layers }: ModelConfig, rows: number): RowScales {
  const stride = Math.ceil(4 * rows / ALIGNMENT) * ALIGNMENT / 4;
  const words = (label: string, count: number) => storageBuffer(gpu, `${name}.${label}`, count);
  const jobs = mostRowJobs(layers);
  return {
    normed: words("scales", rows),
    lowered: words("lowered", stride + jobs * rows),
    stride,
    jobs,
  };
}

function scratch(
  gpu: Gpu,
  name: string,
  config: ModelConfig,
  { rows, unit }: { readonly rows: number; readonly unit: MatrixUnit | undefined },
): Omit<Scratch, "partial"> {
  const floats = (label: string, cols: number) =>
    storageBuffer(gpu, `${name}.${label}`, rows * cols);
  const { hiddenSize, layers } = config;
  const widest = (width: (layer: LayerConfig) => number) => Math.max(...layers.map(width));
  const heads = widest(({ attention }) => attentionSizes(attention).ownRow);
  return {
    x: floats("x", hiddenSize),
    otherX: storageBuffer(gpu, `${name}.otherX`, MOST_NORMED_ROWS * hiddenSize),
    normed: floats("normed", hiddenSize),
    qkv: storageBuffer(
      gpu,
      `${name}.qkv`,
      Math.max(
        rows * widest(({ attention }) => attentionSizes(attention).qkv),
        heads,
      ),
    ),
    q: floats("q", widest(({ attention }) => attentionSizes(attention).q)),
    attentionOutput: floats(
      "attentionOutput",
      widest(({ attention }) => attentionSizes(attention).attentionOutput),
    ),
    act: floats("act", widest(({ mlp }) => actWidth(mlp))),
    sums: floats("sums", sumsWidth(config, { drafts: name !== "target", unit })),
    relay: relayScratch(gpu, name, config),
    mixture: mixtureScratch(gpu, name, config, { rows, unit }),
  };
}

function relayScratch(
  gpu: Gpu,
  name: string,
  { hiddenSize, layers }: ModelConfig,
): RelayScratch | undefined {
  if (!tuning(gpu.info.software, gpu.limits, gpu.info.backend).relays) return undefined;
  const widest = Math.max(...layers.map(({ mlp }) => actWidth(mlp)));
  const heads = Math.max(...layers.map(({ attention }) => attentionSizes(attention).ownRow));
  return {
    act: storageBuffer(gpu, `${name}.relay`, relayWords(widest)),
    heads: storageBuffer(
      gpu,
      `${name}.relayHeads`,
      Math.max(headWords(heads), sumWords(hiddenSize)),
    ),
    sums: storageBuffer(gpu, `${name}.relaySums`, MOST_SPLIT_K * hiddenSize),
  };
}

function mixtureScratch(
  gpu: Gpu,
  name: string,
  { hiddenSize, layers }: ModelConfig,
  { rows, unit }: { readonly rows: number; readonly unit: MatrixUnit | undefined },
): MixtureScratch | undefined {
  const mixtures = layers.flatMap(({ mlp }) => mlp.kind === "mixture" ? [mlp] : []);
  if (mixtures.length === 0) return undefined;
  const words = (label: string, count: number) => storageBuffer(gpu, `${name}.${label}`, count);
  const widest = (width: (mlp: MixtureMlp) => number) => Math.max(...mixtures.map(width));
  const jobs = widest(mostJobs);
  const rules = tuning(gpu.info.software, gpu.limits, gpu.info.backend);
  return {
    // A matrix has an even number of rows.
    logits: words("router", rows * widest(({ routing }) => routing.numExperts + 1)),
    experts: words("experts", rows * jobs),
    weights: words("weights", rows * jobs),
    tiles: words("tiles", widest((mlp) => mixtureTileWords(mlp, rows, { rules, unit }))),
    outputs: words("outputs", rows * jobs * hiddenSize),
  };
}

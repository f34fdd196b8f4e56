/** All dispatches, in order, of a layer with latent attention and a mixture with shared experts. */
import type { DecoderContext } from "../../src/model/graph/context.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import type { LatentHeads } from "../../kernels/mla/latent_prepare.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat, WeightFormat } from "../../src/gpu/weight_format.ts";
import { blockTable, packRows } from "../../tests/kernels/rows.ts";
import type { Allocations } from "../allocations.ts";
import type { MicroCase } from "../case.ts";
import { layerPlans } from "./layer.ts";
import { type ExpertSizes, mixtureMlp } from "./mixture_mlp.ts";

interface LatentSizes extends Omit<LatentHeads, "interleaved">, ExpertSizes {
  readonly name: string;
}

const DEEPSEEK_V2_LITE: LatentSizes = {
  name: "deepseek-v2-lite",
  hidden: 2048,
  intermediate: 1408,
  heads: 16,
  nope: 128,
  rope: 64,
  value: 128,
  rank: 512,
  numExperts: 64,
  topK: 6,
  shared: 2,
};
/** For software adapters. */
const EIGHTH: LatentSizes = {
  name: "deepseek-v2-lite-eighth",
  hidden: 256,
  intermediate: 192,
  heads: 2,
  nope: 16,
  rope: 8,
  value: 16,
  rank: 64,
  numExperts: 8,
  topK: 1,
  shared: 2,
};

/** Layers in a row: enough that none finds its weights in a cache. */
const LAYERS = 4;

interface Run {
  readonly rows: number;
  readonly format: WeightFormat;
  /** Cells that the rows attend to. The rows are the last ones of one sequence. */
  readonly cells: number;
}

function contextOf(from: Allocations, sizes: LatentSizes, { rows, cells }: Run): DecoderContext {
  const { rope, hidden } = sizes;
  const { info, limits } = from.gpu;
  const tablePages = cells / PAGE;
  return {
    config: { hiddenSize: hidden, rmsNormEps: 1e-6, residualScale: 1 } as ModelConfig,
    tuning: tuning(info.software, limits, info.backend),
    ropes: [from.random(cells * rope)],
    pages: from.words(Uint32Array.from(blockTable(1, tablePages))),
    tablePages,
    kvDtype: "f32",
    widestRows: rows,
    scratch: from.scratch(),
  };
}

function layerOf(of: Allocations, sizes: LatentSizes, { format, cells }: Run, label: string) {
  const { heads, nope, rope, value, rank, hidden } = sizes;
  const spec = {
    kind: "latent",
    numHeads: heads,
    nopeDim: nope,
    ropeDim: rope,
    valueDim: value,
    rank,
    queryRank: undefined,
    scale: 0.1,
    interleaved: true,
    window: undefined,
    rope: 0,
  } as const;
  const kvB = { ...of.matrix(heads * (nope + value), rank, "bf16"), format: "bf16" as FloatFormat };
  return {
    attention: {
      kind: "latent",
      spec,
      kvB,
      kvNorm: of.random(rank),
      o: of.matrix(hidden, heads * value, format),
      input: {
        kind: "joined",
        matrix: of.matrix(heads * (nope + rope) + rank + rope, hidden, format),
      },
    },
    norms: { afterAttention: undefined, beforeMlp: of.random(hidden), afterMlp: undefined },
    kv: { keys: of.random(cells * (rank + rope)), values: of.random(4) },
    mlp: mixtureMlp(of, sizes, { format, normalize: false }),
    label,
  } as const;
}

/** The layers of one forward, each with its own weights. */
export function latentLayers(of: Allocations, sizes: LatentSizes, run: Run): Plan[] {
  const { rows, cells } = run;
  const context = contextOf(of, sizes, run);
  const list = Array.from({ length: rows }, (_, i) => {
    const position = cells - rows + i;
    return { position, cell: position, base: position + 1 };
  });
  const seen = { rows: of.words(new Uint32Array(packRows(list))), count: rows, perSlot: rows };
  const layers = Array.from(
    { length: LAYERS },
    (_, i) => layerOf(of, sizes, run, `layers.${i}`),
  );
  const weights = layers.map(() => of.random(sizes.hidden));
  return layerPlans(context, layers, { x: of.random(rows * sizes.hidden), weights, seen });
}

export function latentSizes(software: boolean): LatentSizes {
  return software ? EIGHTH : DEEPSEEK_V2_LITE;
}

/** Pairs of a number of rows and the number of cells that they attend to. */
const RUNS = [[1, 512], [2, 512], [4, 512], [8, 512], [1, 4096], [1, 8192]] as const;

/** Cases in which one run is one layer. */
export function latentLayerCases(software: boolean): MicroCase[] {
  const sizes = latentSizes(software);
  return (["bf16", "q8"] as const).flatMap((format) =>
    RUNS.map(([rows, cells]) => ({
      name: `layer/${sizes.name}/${format}/${rows}${cells === 512 ? "" : `/${cells}`}`,
      context: cells,
      make: (of: Allocations) => latentLayers(of, sizes, { rows, format, cells }),
    }))
  );
}

import { tileSize } from "../../kernels/experts/expert_shape.ts";
import { expertMatmul, expertTiles } from "../../kernels/experts/experts.ts";
import { route, type Routing } from "../../kernels/experts/route.ts";
import { canNormRouted, routerLogits } from "../../kernels/experts/router_logits.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import { rmsNorm } from "../../kernels/norm/rms_norm.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { WEIGHT_BYTES, type WeightFormat } from "../../src/gpu/weight_format.ts";
import { shuffled } from "../../tests/gpu/numbers.ts";
import type { Allocations } from "../allocations.ts";
import { copiesOf, type MicroCase } from "../case.ts";
import { jobLists } from "../job_lists.ts";

/** Widths of a mixture. Shared experts count as experts that every row chooses. */
interface Mixture {
  readonly name: string;
  readonly hidden: number;
  readonly intermediate: number;
  readonly numExperts: number;
  readonly topK: number;
  readonly shared: number;
}

/** Qwen3-30B-A3B and DeepSeek-V2-Lite, or an eighth of them on a software adapter. */
function mixtures(software: boolean): Mixture[] {
  const part = software ? 8 : 1;
  const of = (name: string, sizes: Omit<Mixture, "name" | "hidden">): Mixture => ({
    ...sizes,
    name: software ? `${name}-eighth` : name,
    hidden: 2048 / part,
    intermediate: 64 * Math.ceil(sizes.intermediate / part / 64), // a width that quantized matrices allow
    numExperts: sizes.numExperts / part,
    topK: Math.ceil(sizes.topK / part),
  });
  return [
    of("qwen3-30b", { intermediate: 768, numExperts: 128, topK: 8, shared: 0 }),
    of("deepseek-v2-lite", { intermediate: 1408, numExperts: 64, topK: 6, shared: 2 }),
  ];
}

/** How many lists of experts take turns, so that a run reads other experts than the one before. */
const LISTS = 8;

/** The experts of rows that choose independently of each other. */
function choices({ numExperts, topK, shared }: Mixture, rows: number, seed: number): number[] {
  const every = Array.from({ length: shared }, (_, s) => numExperts + s);
  return Array.from({ length: rows }, (_, row) => [
    ...shuffled(numExperts, seed * 1000 + row).slice(0, topK),
    ...every,
  ]).flat();
}

function expertCase(
  mixture: Mixture,
  role: "gateUp" | "down",
  { format, rows }: { readonly format: WeightFormat; readonly rows: number },
): MicroCase {
  const { name, hidden, intermediate, shared } = mixture;
  const jobs = { rows, topK: mixture.topK + shared, numExperts: mixture.numExperts + shared };
  const [n, k] = role === "gateUp" ? [2 * intermediate, hidden] : [hidden, intermediate];
  return {
    name: `experts/${name}/${role}-${format}/${rows}`,
    make(from) {
      const tune = tuning(from.gpu.info.software, from.gpu.limits);
      const tile = tileSize(jobs, tune, format);
      const matrix = from.matrix(jobs.numExperts * n, k, format);
      const perJob = role === "down";
      const x = from.random(rows * (perJob ? jobs.topK : 1) * k);
      const out = from.random(rows * jobs.topK * n);
      return Array.from({ length: LISTS }, (_, seed) => {
        const chosen = choices(mixture, rows, seed);
        const experts = from.words(Uint32Array.from(chosen));
        const tiles = from.words(jobLists(chosen, { ...jobs, tile }));
        const lists = { experts, tiles };
        const shape = { ...jobs, tile, shared, perJob, tuning: tune, label: name };
        const epilogue = perJob ? "store" : "swiglu";
        // Both matmuls of a layer share the job lists, which are written before gate-up.
        return [
          ...perJob
            ? []
            : expertTiles(lists, { ...jobs, matrix, tile, tuning: tune, label: "tiles" }),
          ...expertMatmul({ matrix, x, out, ...lists }, { ...shape, epilogue }),
        ];
      });
    },
  };
}

function routingOf({ numExperts, topK }: Mixture): Routing {
  const whole = { groups: 1, topGroups: 1, groupBest: 1, normalize: true, scale: 1 } as const;
  return { ...whole, scores: "softmax", numExperts, topK };
}

/** The router: from the residual stream to the chosen experts. */
function routerCase(mixture: Mixture, rows: number): MicroCase {
  const { name, hidden, numExperts } = mixture;
  return {
    name: `router/${name}/${rows}`,
    make: (from) =>
      copiesOf(numExperts * hidden * WEIGHT_BYTES.bf16, from)
        .map(() => routerPlan(from, mixture, rows)),
  };
}

function routerPlan(from: Allocations, mixture: Mixture, rows: number): Plan {
  const { hidden: cols, numExperts, topK, shared } = mixture;
  const tune = tuning(from.gpu.info.software, from.gpu.limits);
  const matrix = from.matrix(numExperts, cols, "bf16");
  const [x, sums] = [from.random(rows * cols), from.random(rows * cols)];
  const [weight, normed] = [from.random(cols), from.random(rows * cols)];
  const chosen = {
    bias: undefined,
    experts: from.random(rows * (topK + shared)),
    weights: from.random(rows * (topK + shared)),
  };
  const shape = { ...routingOf(mixture), rows, shared, tuning: tune, label: "router" };
  const stream = { x, sums, splitK: 1 };
  const logits = from.random(rows * numExperts);
  const added = { sums, splitK: 1, stream: from.random(rows * cols) };
  const row = { rows, eps: 1e-6, tuning: tune };
  const before = canNormRouted(matrix, rows, tune)
    ? [routerLogits(
      { matrix, x, added, norm: weight, normed, logits },
      { ...row, label: "router" },
    )]
    : [
      ...rmsNorm({ from: stream, weight, out: normed }, {
        rows,
        cols,
        eps: 1e-6,
        lanes: tune.rowLanes,
        label: "norm",
      }),
      ...matmul({ matrix, x: normed, out: logits }, { ...shape, epilogue: "store" }),
    ];
  return [...before, route({ logits, ...chosen }, { ...shape, stride: numExperts })];
}

/** The part of a layer that a mixture has instead of a dense MLP. */
export function mixtureCases(software: boolean): MicroCase[] {
  const counts = software ? [1, 4] : [1, 2, 4, 8, 16, 32, 64, 256];
  return mixtures(software).flatMap((mixture) => [
    ...counts.map((rows) => routerCase(mixture, rows)),
    ...(["bf16", "q8", "q4"] as const).flatMap((format) =>
      (["gateUp", "down"] as const).flatMap((role) =>
        counts.map((rows) => expertCase(mixture, role, { format, rows }))
      )
    ),
  ]);
}

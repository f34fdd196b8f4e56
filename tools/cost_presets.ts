// `deno run -A tools/cost_presets.ts` writes presets/costs: cost tables of machines with published figures, and the
// toy machine of the scenarios. tests/simulate/costs_test.ts checks that the files are up to date.
import { COST_FORMAT, type CostTable, type Point } from "../src/speculate/costs/table.ts";

/** The figures of a model that a roofline needs. */
interface RooflineModel {
  readonly parameters: number;
  /** Bytes of keys and values per token. */
  readonly kvBytes: number;
}

/** The figures of a GPU that a roofline needs. */
interface RooflineGpu {
  /** Achieved bytes a second, and achieved 16-bit floating-point operations a second (`flops`). */
  readonly bandwidth: number;
  readonly flops: number;
  /** Milliseconds that every forward takes in addition. */
  readonly launchMs: number;
}

/** The counts up to `most` at which a list of the table has points. */
function grid(most: number): number[] {
  const counts = Array.from({ length: 200 }, (_, i) => Math.round(2 ** (i / 4)));
  return [...new Set(counts)].filter((count) => count <= most);
}

/**
 * Milliseconds of a forward of `rows` rows in 16 bits. Weights are read once, and each row takes two
 * operations a parameter. The larger of the two times counts, with a smooth knee.
 *
 *     launch + ((2 P / bandwidth)^4 + (2 P rows / flops)^4)^(1/4)
 */
function forwardMs({ parameters }: RooflineModel, gpu: RooflineGpu, rows: number): number {
  const memory = 2 * parameters / gpu.bandwidth;
  const compute = 2 * parameters * rows / gpu.flops;
  return gpu.launchMs + 1000 * (memory ** 4 + compute ** 4) ** 0.25;
}

const round = (ms: number) => Number(ms.toPrecision(5));

function points(counts: readonly number[], ms: (count: number) => number): Point[] {
  return counts.map((at) => ({ at, ms: round(ms(at)) }));
}

const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128];

function roofline(
  { gpu, target, draft, host }: {
    readonly gpu: RooflineGpu;
    readonly target: RooflineModel;
    readonly draft: RooflineModel;
    readonly host: number;
  },
): Omit<CostTable, "adapter" | "model" | "draft" | "catchUp"> {
  return {
    format: COST_FORMAT,
    buckets: BATCHES,
    level: points(BATCHES, (batch) => forwardMs(draft, gpu, batch)),
    verify: points(grid(2048), (rows) => forwardMs(target, gpu, rows)),
    perCell: round(1000 * target.kvBytes / gpu.bandwidth),
    extend: points(grid(2048), (rows) => forwardMs(draft, gpu, rows)),
    prefill: points(
      grid(8192),
      (rows) => forwardMs(target, gpu, rows) + forwardMs(draft, gpu, rows),
    ),
    host,
    fitError: 0,
  };
}

/** 85 % of 1008 GB/s and 70 % of 165 TFLOPS. */
const RTX_4090: RooflineGpu = { bandwidth: 857e9, flops: 115e12, launchMs: 0.5 };
/** 85 % of 1555 GB/s and 60 % of 312 TFLOPS. */
const A100: RooflineGpu = { bandwidth: 1322e9, flops: 187e12, launchMs: 0.5 };

const DERIVED = "roofline, not measured: forward = 0.5 ms + smooth max of bytes/bandwidth and " +
  "operations/peak in 16 bits, host 1 ms";

function rtx4090(): CostTable {
  const gpu = RTX_4090;
  const draft = { parameters: 0.5e9, kvBytes: 12_288 };
  const table = roofline({ gpu, target: { parameters: 7.6e9, kvBytes: 57_344 }, draft, host: 1 });
  // Lag x batch: 128 x 32, 128 x 64, 256 x 64, 512 x 64. The middle two fall as printed (28.53, 22.33).
  const printed = [
    { at: 4096, ms: 17.87 },
    { at: 8192, ms: 25.43 },
    { at: 16_384, ms: 25.43 },
    { at: 32_768, ms: 102 },
  ];
  const below = grid(1024).map((at) => ({ at, ms: round(forwardMs(draft, gpu, at)) }));
  return {
    ...table,
    adapter: `RTX 4090 (${DERIVED}, 857 GB/s, 115 TFLOPS; catchUp from 4096 tokens on is table 1 ` +
      "of Nightjar, arXiv 2512.22420v1, made monotone)",
    model: "7.6B parameters, 57344 bytes of keys and values a token (assumed)",
    draft: "0.5B parameters (assumed)",
    catchUp: below.filter(({ ms }) => ms < 17.87).concat(printed),
  };
}

function a100(): CostTable {
  const draft = { parameters: 68e6, kvBytes: 6144 };
  const table = roofline({
    gpu: A100,
    target: { parameters: 13e9, kvBytes: 819_200 },
    draft,
    host: 1,
  });
  return {
    ...table,
    adapter: `A100 40 GB (${DERIVED}, 1322 GB/s, 187 TFLOPS; catchUp too: none is published)`,
    model: "13B parameters, 819200 bytes of keys and values a token (assumed)",
    draft: "68M parameters (assumed)",
    catchUp: points(grid(32_768), (rows) => forwardMs(draft, A100, rows)),
  };
}

/**
 * The machine of the scenarios' first study. A plain round of one sequence takes about 1:
 *
 *     verify(m) = 0.05 + (1 + (m / 64)^4)^(1/4), a draft token 0.05 (1 + b / 128), catching up 0.3
 *
 * The first draft of a round is made by `extend`, whose cost goes by rows: b (K + 1) in place of b, with 4 rows each.
 */
function toy(): CostTable {
  return {
    format: COST_FORMAT,
    adapter:
      "toy machine: 0.05 + (1 + (rows/64)^4)^(1/4), a draft 0.05 (1 + batch/128), no padding",
    model: "none",
    draft: "none",
    buckets: Array.from({ length: 128 }, (_, i) => i + 1),
    level: points([1, 128], (batch) => 0.05 * (1 + batch / 128)),
    verify: points(grid(2048), (rows) => 0.05 + (1 + (rows / 64) ** 4) ** 0.25),
    perCell: 0,
    extend: points([1, 1024], (rows) => 0.05 * (1 + rows / 512)),
    catchUp: [{ at: 1, ms: 0.3 }],
    prefill: [],
    host: 0,
    fitError: 0,
  };
}

/** Every file of presets/costs that this tool writes, by name. */
export const COST_PRESETS: Readonly<Record<string, CostTable>> = {
  "toy": toy(),
  "rtx4090-7b": rtx4090(),
  "a100-13b": a100(),
};

if (import.meta.main) {
  for (const [name, table] of Object.entries(COST_PRESETS)) {
    const file = new URL(`../presets/costs/${name}.json`, import.meta.url);
    await Deno.writeTextFile(file, `${JSON.stringify(table)}\n`);
  }
}

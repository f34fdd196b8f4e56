/**
 * `deno run -A lab/mxfp4.ts [--webgpu dawn] [--small] [--only TEXT] ROWS...`: times launches of gpt-oss-20b's MXFP4
 * experts at some numbers of rows, all or those whose name includes a text. Each must give the bits of the first launch
 * of its kind. A routing reads other experts than those before it, so that its weights are in no cache. Prints the
 * fastest first. A launch that a compiler refuses is printed and skipped.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import {
  type ExpertEpilogue,
  expertEpilogue,
  expertKernel,
  sharedRows,
} from "../kernels/experts/expert_kernels.ts";
import { expertLanes, type ExpertShape } from "../kernels/experts/expert_shape.ts";
import { sumsDispatch, type SumsShape } from "../kernels/experts/expert_sums.ts";
import { expertTensor, type ExpertTile } from "../kernels/experts/expert_tensor.ts";
import { listWords, maxTiles } from "../kernels/experts/job_lists.ts";
import { clampedEpilogue } from "../kernels/lib/epilogue.ts";
import { fillParams, fillRandom } from "../kernels/matmul/fill_random.ts";
import { reason } from "../src/errors.ts";
import { storage } from "../src/gpu/arena.ts";
import { type Gpu, openGpu } from "../src/gpu/device.ts";
import { type Dispatch, dispatch, type Operand } from "../src/gpu/kernel.ts";
import type { Matrix } from "../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../src/gpu/tuning.ts";
import { lanesFor } from "../src/gpu/weight_format.ts";
import { openProfiler } from "../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../src/gpu/program.ts";
import { readBuffer } from "../src/gpu/readback.ts";
import { hash32 } from "../src/speculate/noise.ts";
import { timeOf } from "./units/tensor_buffers.ts";

const TOP_K = 4;
const LIMIT = 7;
const NOTHING = 0xffffffff;

interface Sizes {
  readonly numExperts: number;
  readonly hidden: number;
}

/** The experts of jobs, and a buffer of them. */
interface Routing {
  readonly chosen: readonly number[];
  readonly experts: Operand;
}

/** Buffers of a matrix, the x of its jobs, and the epilogue of its outputs. */
interface Subject {
  readonly name: string;
  readonly matrix: Matrix;
  readonly perJob: boolean;
  readonly epilogue: ExpertEpilogue;
  readonly x: Operand;
  readonly bias: Operand;
  readonly out: Operand;
  readonly routings: readonly Routing[];
  readonly rows: number;
  readonly shares: Operand;
}

interface Variant {
  readonly name: string;
  /** Variants of one kind must give the same bits. */
  readonly kind: string;
  /** @param i the routing's number */
  of(routing: Routing, i: number): Dispatch;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function words(gpu: Gpu, values: Uint32Array<ArrayBuffer>): Operand {
  const buffer = storage(gpu.device, "words", values.byteLength);
  gpu.device.queue.writeBuffer(buffer, 0, values);
  return { buffer };
}

/** A routing reads `jobs` consecutive experts; the next routing continues after them. */
function routingsOf(gpu: Gpu, numExperts: number, jobs: number): Routing[] {
  const count = Math.max(1, Math.floor(numExperts / jobs));
  return Array.from({ length: count }, (_, i) => {
    const chosen = Uint32Array.from(
      { length: jobs },
      (_, j) => jobs <= numExperts ? (i * jobs + j) % numExperts : hash32(3, i, j) % numExperts,
    );
    return { chosen: [...chosen], experts: words(gpu, chosen) };
  });
}

async function subjectOf(
  gpu: Gpu,
  tuned: Tuning,
  { numExperts, hidden }: Sizes,
  { name, rows }: { readonly name: "gateUp" | "down"; readonly rows: number },
): Promise<Subject> {
  const cols = hidden;
  const gated = name === "gateUp";
  const n = gated ? 2 * hidden : hidden;
  const { device } = gpu;
  const make = compiler(gpu);
  const jobs = rows * TOP_K;
  const random = async (label: string, bytes: number, stream: number): Promise<Operand> => {
    const out = { buffer: storage(device, label, bytes) };
    const params = words(gpu, new Uint32Array(fillParams({ seed: 1, stream, std: 0.02 })));
    submit(gpu, await make.compile([fillRandom({ params, out }, label)]));
    return out;
  };
  const floats = async (label: string, count: number, stream: number): Promise<Operand> => {
    const halves = new Uint16Array(
      await readBuffer(gpu, await random(label, 2 * (count + count % 2), stream)),
    );
    return words(gpu, Uint32Array.from(halves, (half) => half << 16));
  };
  const exponents = new Uint8Array(numExperts * n * cols / 32).map((_, i) => 118 + i % 5);
  const operand = await random("weights", numExperts * n * cols / 2, 7);
  const scales = words(gpu, new Uint32Array(exponents.buffer));
  const bias = await floats("bias", numExperts * n, 9);
  return {
    name,
    rows,
    perJob: !gated,
    matrix: {
      format: "mxfp4",
      rowOrder: "stacked",
      rows: numExperts * n,
      cols,
      lanes: lanesFor("mxfp4", cols, tuned.lanes),
      shards: [{ operand, scales, first: 0, rows: numExperts * n }],
    },
    epilogue: gated ? clampedEpilogue({ bias, limit: LIMIT }) : "store",
    x: await floats("x", (gated ? rows : jobs) * cols, 11),
    bias,
    out: { buffer: storage(device, "out", 4 * jobs * n) },
    routings: routingsOf(gpu, numExperts, jobs),
    shares: words(gpu, new Uint32Array(Float32Array.from({ length: jobs }, () => 0.25).buffer)),
  };
}

/** The jobs of a routing in tiles of one expert each, as job_lists.wgsl writes them. */
function listsOf(gpu: Gpu, experts: readonly number[], numExperts: number, tile: number): Operand {
  const rows = experts.length / TOP_K;
  const lists = new Uint32Array(listWords({ rows, topK: TOP_K, numExperts }, tile)).fill(NOTHING);
  const tiles = Array.from({ length: numExperts }, (_, e) => {
    const own = [...experts.keys()].filter((job) => experts[job] === e);
    return Array.from({ length: Math.ceil(own.length / tile) }, (_, t) => [
      e,
      ...Array.from({ length: tile }, (_, j) => own[t * tile + j] ?? NOTHING),
    ]);
  });
  lists.set(tiles.flat(2));
  return words(gpu, lists);
}

/** Launches of `tile` jobs of an expert a workgroup, without matrix units. */
function tiles(
  gpu: Gpu,
  { matrix, x, out, epilogue: what, perJob, rows, routings }: Subject,
  { tuned, numExperts, tile }: {
    readonly tuned: Tuning;
    readonly numExperts: number;
    readonly tile: number;
  },
): Variant[] {
  const lanes = expertLanes(matrix, tuned);
  const [shard] = matrix.shards;
  if (!shard) throw new Error("a matrix without weights");
  const block = 4 * lanes;
  const n = matrix.rows / numExperts;
  const most = Math.ceil(matrix.cols / 8 / block);
  const stages = [1, 2, 3, 6].filter((steps) => steps <= most).map((steps) => steps * block);
  const lists = tile === 1
    ? []
    : routings.map(({ chosen }) => listsOf(gpu, chosen, numExperts, tile));
  return stages.flatMap((stage) =>
    [1, 2, 4].flatMap((pairs) =>
      [4, 8, 16].map((groups): Variant => {
        const shape = { kind: "staged", tile, pairs, groups, dots: "floats", stage } as const;
        const epilogue = expertEpilogue(what);
        const launch: ExpertShape & { readonly lanes: number } = { ...shape, lanes };
        const code = expertKernel(matrix, epilogue, launch, tile === 1 ? "alone" : "tiled");
        return {
          name: code.name,
          kind: "floats",
          of: ({ experts }, i) =>
            dispatch(code, {
              buffers: {
                weights: shard.operand,
                x,
                out,
                ...tile === 1 ? { experts } : { tiles: lists[i] as Operand },
                ...epilogue.buffers,
                ...shard.scales ? { scales: shard.scales } : {},
              },
              constants: {
                COLS: matrix.cols,
                MATRIX_ROWS: n,
                FIRST_EXPERT: 0,
                SHARD_EXPERTS: numExperts,
                ...sharedRows(numExperts, n / 2, { epilogue }),
                ...epilogue.constants,
                ROW_JOBS: perJob ? 1 : TOP_K,
                OUT_COLS: n * epilogue.outShare,
                LANES: lanes,
                GROUPS: groups,
              },
              workgroups: [
                maxTiles({ rows, topK: TOP_K, numExperts }, tile),
                Math.ceil(n / 2 / pairs / groups),
              ],
              label: code.name,
            }),
        };
      })
    )
  );
}

function sums(
  { matrix, x, out, bias, shares: weights, rows }: Subject,
  tuned: Tuning,
  numExperts: number,
): Variant[] {
  const lanes = expertLanes(matrix, tuned);
  const each = Math.ceil(matrix.cols / 32 / lanes);
  return [4, 8].flatMap((outs) =>
    [1, 2, 3, 6].filter((steps) => steps <= each).map((steps): Variant => {
      const shape: SumsShape = {
        format: "mxfp4",
        lanes,
        packedLanes: matrix.lanes,
        groups: TOP_K,
        dots: "floats",
        outs,
        steps,
        part: true,
        biased: true,
        resident: 0,
      };
      return {
        name: `sums ${outs}x${steps}`,
        kind: "sums",
        of: ({ experts }) =>
          sumsDispatch({ matrix, x, experts, weights, bias, out }, {
            rows,
            topK: TOP_K,
            numExperts,
            shape,
            shared: 0,
            label: "sums",
          }),
      };
    })
  );
}

function onUnits(
  gpu: Gpu,
  { matrix, x, out, epilogue, perJob, rows }: Subject,
  numExperts: number,
): Variant[] {
  const { matrixUnit: unit } = gpu;
  const [shard] = matrix.shards;
  if (!unit || !shard) return [];
  const ones = (count: number) =>
    words(gpu, new Uint32Array(new Float32Array(count).fill(1).buffer));
  const [wScales, xScales] = [ones(matrix.rows), ones(rows * TOP_K)];
  const launches = [[1, 1], [1, 2], [2, 1], [4, 1]].flatMap(([columns = 1, own = 1]) =>
    [32, 64, 96, 192, 320].flatMap((stage) =>
      [1, 2, 3, 4].map((ahead): ExpertTile => ({
        jobs: 1,
        grid: [1, columns],
        own: [1, own],
        stage,
        ahead,
      }))
    )
  );
  const fits = ({ grid, own, stage, ahead }: ExpertTile) => {
    const blocks = grid[1] * own[1] * unit.n * stage / 32;
    const threads = grid[1] * unit.lanes;
    return matrix.cols % stage === 0 && blocks % threads === 0 && blocks / threads * ahead <= 12;
  };
  return launches.filter(fits).map((tile) => ({
    name: `units ${tile.grid[1]}x${tile.own[1]} columns, ${tile.stage} of k, ${tile.ahead} ahead`,
    kind: "units",
    of: ({ experts: lists }) =>
      expertTensor({ x, out, lists, wScales, xScales }, {
        unit,
        tile,
        matrix,
        shard,
        tiled: false,
        epilogue,
        expertRows: matrix.rows / numExperts,
        tiles: rows * TOP_K,
        rowJobs: perJob ? 1 : TOP_K,
        label: "units",
      }),
  }));
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    options: {
      webgpu: { type: "string" },
      small: { type: "boolean", default: false },
      only: { type: "string", default: "" },
    },
    allowPositionals: true,
  });
  const gpu = await openGpu(values.webgpu === "dawn" ? { webgpu: "dawn" } : {});
  say(`${gpu.info.adapter}, ${gpu.info.webgpu}`);
  const profiler = await openProfiler(gpu, { queries: 2 });
  // Launches are chosen as for hardware, also on a software adapter.
  const tuned = tuning(false, gpu.limits, gpu.info.backend);
  const sizes = values.small ? { numExperts: 6, hidden: 704 } : { numExperts: 32, hidden: 2880 };
  const { numExperts, hidden } = sizes;
  const make = compiler(gpu);
  for (const rows of positionals.length > 0 ? positionals.map(Number) : [1, 4, 8]) {
    for (const name of ["gateUp", "down"] as const) {
      const subject = await subjectOf(gpu, tuned, sizes, { name, rows });
      const { matrix, routings, out } = subject;
      const variants = [
        ...[1, 2, 4, 8].filter((tile) => tile < 2 * rows && (tile > 2 || rows < 64))
          .flatMap((tile) => tiles(gpu, subject, { tuned, numExperts, tile })),
        ...name === "down" ? sums(subject, tuned, numExperts) : [],
        ...onUnits(gpu, subject, numExperts),
      ].filter(({ name }) => name.includes(values.only));
      const bits = new Map<string, Uint8Array>();
      const made: { readonly variant: Variant; readonly programs: Program[] }[] = [];
      for (const variant of variants) {
        try {
          const programs: Program[] = [];
          for (const [i, routing] of routings.entries()) {
            programs.push(await make.compile([variant.of(routing, i)]));
          }
          gpu.device.queue.writeBuffer(out.buffer, 0, new Uint8Array(out.buffer.size));
          submit(gpu, programs[0] as Program);
          const found = new Uint8Array(await readBuffer(gpu, out));
          const first = bits.getOrInsertComputed(variant.kind, () => found);
          gpu.check();
          const zeros = found.every((byte) => byte === 0);
          const same = !zeros && found.every((byte, i) => byte === first[i]);
          if (!same) say(`WRONG ${variant.name}${zeros ? ": all zeros" : ""}`);
          made.push({ variant, programs });
        } catch (error) {
          say(`FAILED ${variant.name}: ${reason(error).split("\n").slice(0, 3).join(" | ")}`);
        }
      }
      const found: { readonly us: number; readonly name: string }[] = [];
      for (const { variant, programs } of made) {
        const us = await timeOf({ profiler }, programs, found.length === 0 ? 300 : 0);
        found.push({ us, name: variant.name });
      }
      const jobs = Math.min(numExperts, rows * TOP_K);
      const bytes = jobs * matrix.rows / numExperts * hidden * 17 / 32;
      say(`${name}, ${rows} rows, ${(bytes / 1e6).toFixed(1)} MB`);
      for (const { us, name } of found.toSorted((a, b) => a.us - b.us)) {
        say(
          `${us.toFixed(1).padStart(8)} us ${
            (bytes / us / 1e3).toFixed(0).padStart(6)
          } GB/s  ${name}`,
        );
      }
      const of = [matrix.shards[0]?.operand, matrix.shards[0]?.scales, subject.x, out];
      for (const operand of of) operand?.buffer.destroy();
    }
  }
}

if (import.meta.main) {
  await main();
  Deno.exit(0);
}

// Throw-away: matmuls of 512 rows on matrix units, tiles by turns.
import process from "node:process";
import {
  matmulTensor,
  rowScales,
  type TensorTile,
  tileBytes,
} from "../../shaders/tensor/matmul_tensor.ts";
import { halveWeights, weightScales } from "../../shaders/tensor/weight_scales.ts";
import { tensorTile } from "../../shaders/tensor/tensor_tiles.ts";
import { notedEpilogue, PLAIN } from "../../shaders/fragments/epilogue.ts";
import { fillParams, fillRandom } from "../../shaders/weights/fill_random.ts";
import { median } from "../../src/bench/statistics.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";

const small = Deno.args.includes("--small");
const limitS = Number(Deno.args.find((a) => a.startsWith("--seconds="))?.slice(10) ?? 18);
const started = performance.now();
const elapsed = () => (performance.now() - started) / 1000;
const say = (text: string) => process.stdout.write(`${text}\n`);
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit!;
const profiler = await openProfiler(gpu, { queries: 2 });
const make = compiler(gpu);
say(`${gpu.info.adapter} ${elapsed().toFixed(1)} s`);

const ROWS = small ? 40 : Number(Deno.args.find((a) => a.startsWith("--rows="))?.slice(7) ?? 512);
type S = { name: string; n: number; k: number; split: number; end: "store" | "swiglu" | "noted" };
const SHAPES: S[] = [
  { name: "06b.o", n: 1024, k: 2048, split: 4, end: "store" },
  { name: "06b.qkv", n: 4096, k: 1024, split: 1, end: "store" },
  { name: "06b.gateUp", n: 6144, k: 1024, split: 1, end: "swiglu" },
  { name: "06b.noted", n: 6144, k: 1024, split: 1, end: "noted" },
  { name: "06b.down", n: 1024, k: 3072, split: 4, end: "store" },
  { name: "30b.qkv", n: 5120, k: 2048, split: 1, end: "store" },
  { name: "30b.o", n: 2048, k: 4096, split: 4, end: "store" },
  { name: "8b.gateUp", n: 28672, k: 4096, split: 1, end: "swiglu" },
  { name: "probe", n: 4096, k: 4096, split: 1, end: "store" },
  { name: "8b.down", n: 4096, k: 14336, split: 4, end: "store" },
  { name: "8b.qkv", n: 6144, k: 4096, split: 1, end: "store" },
];
const names = Deno.args.find((a) => a.startsWith("--shapes="))?.slice(9).split(",");
const tilesArg = Deno.args.find((a) => a.startsWith("--tiles="))?.slice(8).split(",") ?? [];

function tileOf(text: string): TensorTile {
  const [g0 = 1, g1 = 1, o0 = 1, o1 = 1, stage = 32, ahead = 1] = text.split(/[a-zA-Z]/)[0]!.split(
    ".",
  )
    .map(Number);
  return {
    subgroups: g0 * g1,
    grid: [g0, g1],
    own: [o0, o1],
    stage,
    ahead,
    ...text.includes("e") ? { early: true } : {},
  };
}

/** Leaves parts of the loop out, to see what they take. */
function without(code: string, flags: string): string {
  const from = code.indexOf("  for (var k = 0u;");
  const to = code.indexOf("// Tile by tile: the sums");
  let loop = code.slice(from, to);
  let before = "";
  if (flags.includes("L")) loop = loop.replaceAll(/^\s+(w\d_\d|x[ab]\d_\d) = .*$/gm, "");
  if (flags.includes("X")) {
    loop = loop.replaceAll(/^ +let [ab] = x[ab]\d_\d \* x_scale\d;$/gm, "");
    const stores = [...loop.matchAll(/^ +(staged\[x_to(\d)\]) = .*\n +(staged\[x_to.*\]) = .*$/gm)];
    for (const [text, hi, u, lo] of stores) {
      const stage = 0;
      loop = loop.replace(
        text,
        `${hi} = bitcast<vec4<u32>>(xa${stage}_${u});\n${lo} = bitcast<vec4<u32>>(xb${stage}_${u});`,
      );
    }
  }
  if (flags.includes("S")) loop = loop.replaceAll(/^\s+staged\[.*\] = .*$/gm, "");
  if (flags.includes("B")) loop = loop.replaceAll("workgroupBarrier();", "");
  if (flags.includes("F")) {
    loop = loop.replaceAll(/^ +let (at\d|xh\d|xl\d|w_tile\d) = [^;]*;$/gm, (line) => {
      before += line.replaceAll("s * ", "0u * ") + "\n";
      return "";
    });
  }
  const gather = /fn gather\([^]*?\n}\n/;
  const head = "fn gather(own: u32, lane: u32, lanes: u32) {\n";
  const at = "atomicMax(&row_peaks[own], bitcast<u32>(peak));\n peak = 0.0;\n}\n";
  const shuffles =
    "for (var apart = 1u; apart < lanes; apart *= 2u) { peak = max(peak, subgroupShuffleXor(peak, apart)); }\n";
  if (flags.includes("D")) return code.replace(gather, head + at);
  if (flags.includes("C")) return code.replace(gather, head + "peak = 0.0;\n}\n");
  if (flags.includes("K")) return code.replace(gather, head + "}\n");
  if (flags.includes("E")) return code.replace(gather, head + shuffles + "}\n");
  if (flags.includes("G")) {
    return code.replace(
      gather,
      head +
        "if (lane % lanes == 0u) { atomicMax(&row_peaks[own], bitcast<u32>(peak)); }\n peak = 0.0;\n}\n",
    );
  }
  if (flags.includes("P")) {
    code = code.replace(/const PITCH = (\d+)u \+ 1u/, "const PITCH = $1u + 2u").replace(
      /(staged: array<vec4<u32>, )(\d+)/,
      (_, a, n) => a + 2 * Number(n),
    );
    return code;
  }
  return code.slice(0, from) + before + loop + code.slice(to);
}

async function prepare(d: Dispatch, flags: string): Promise<(d: Dispatch) => Program> {
  const module = gpu.device.createShaderModule({ code: without(d.kernel.code, flags) });
  const pipeline = await gpu.device.createComputePipelineAsync({
    layout: "auto",
    compute: { module, entryPoint: "main", constants: d.constants },
  });
  return (e) => {
    const group = gpu.device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: e.kernel.bindings.map((name, i) => ({
        binding: e.kernel.numbers[i] as number,
        resource: e.buffers[name] as Operand,
      })),
    });
    return {
      steps: [
        {
          pipeline,
          bound: { group },
          workgroups: e.workgroups,
          label: e.label,
          kernel: e.kernel.name,
        } as never,
      ],
    };
  };
}

async function sample(programs: readonly Program[], runs: number): Promise<number> {
  const steps = Array.from(
    { length: runs },
    (_, i) => (programs[i % programs.length] as Program).steps,
  );
  return ((await profiler.time([{ steps: steps.flat() }]))[0]?.end ?? NaN) / runs;
}

const of = (bytes: number): Operand => ({ buffer: storage(gpu.device, "b", bytes) });
interface V {
  what: string;
  programs: Program[];
  us: number[];
}

for (const shape of SHAPES.filter(({ name }) => !names || names.includes(name))) {
  if (elapsed() > limitS - 1) break;
  const { name, n, k, split, end } = small ? { ...shape, n: 96, k: 256 * shape.split } : shape;
  const count = small ? 2 : Math.max(2, Math.ceil((140 << 20) / (2 * n * k)));
  const weights = Array.from({ length: count }, () => of(2 * n * k));
  const [wScales, faults, x, xScales, out] = [
    of(4 * n),
    of(4 * n),
    of(4 * ROWS * k),
    of(4 * ROWS),
    of(4 * ROWS * n * split),
  ];
  const fills = [...weights, x].map((out, i) => {
    const params = of(16);
    gpu.device.queue.writeBuffer(params.buffer, 0, fillParams({ seed: 1, stream: i, std: 0.02 }));
    return fillRandom({ params, out }, "fill");
  });
  submit(
    gpu,
    await make.compile([
      ...fills,
      weightScales({ weights: weights[0]!, scales: wScales, faults }, { rows: n, cols: k }),
      ...weights.map((w) => halveWeights({ weights: w, scales: wScales }, { rows: n, cols: k })),
    ]),
  );
  // x as f32
  const xs = Float32Array.from({ length: ROWS * k }, (_, i) => ((i * 7919) % 2003 - 1001) / 997);
  gpu.device.queue.writeBuffer(x.buffer, 0, xs);
  submit(gpu, await make.compile([rowScales({ x, scales: xScales }, { rows: ROWS, cols: k })]));
  const rule = tensorTile(unit, gpu.limits, {
    rows: ROWS,
    columns: n,
    range: k / split,
    splitK: split,
  })!;
  const tiles = [["rule", rule] as const, ...tilesArg.map((t) => [t, tileOf(t)] as const)];
  const notedScales = of(4 * ROWS);
  const variants: V[] = [];
  await Promise.all(tiles.map(async ([what, tile]) => {
    if (
      (k / split) % tile.stage !== 0 || tile.stage % unit.k ||
      tileBytes(unit, tile) > gpu.limits.maxComputeWorkgroupStorageSize
    ) return;
    const planOf = (w: Operand) =>
      matmulTensor({ x, out, wScales, xScales }, {
        unit,
        tile,
        rows: ROWS,
        matrix: { rows: n, cols: k },
        shard: { operand: w, first: 0, rows: n },
        splitK: split,
        halved: true,
        epilogue: end === "noted" ? notedEpilogue("swiglu", notedScales) : PLAIN[end],
        label: name,
      });
    try {
      const bind = await prepare(
        planOf(weights[0]!),
        what === "rule" ? "" : what.replaceAll(/[^A-Z]/g, ""),
      );
      variants.push({ what, programs: weights.map((w) => bind(planOf(w))), us: [] });
    } catch (error) {
      say(`FAILED ${what} ${String(error).slice(0, 300)}`);
    }
  }));
  variants.sort((a, b) =>
    tiles.findIndex(([w]) => w === a.what) - tiles.findIndex(([w]) => w === b.what)
  );
  const compiled = elapsed();
  const warm = performance.now();
  while (!small && performance.now() - warm < 500) await sample(variants[0]!.programs, 200);
  for (let round = 0; round < (small ? 1 : 5); round++) {
    for (const { programs, us } of variants) {
      us.push(1000 * await sample(programs, n * k > 5e7 ? 6 : 40));
    }
  }
  const size = 4 * ROWS * (end === "store" ? n * split : n / 2);
  let first: Uint32Array | undefined;
  say(
    `${name} [${n}, ${k}] split ${split}, compiled at ${compiled.toFixed(1)} s, now ${
      elapsed().toFixed(1)
    }`,
  );
  for (const { what, programs, us } of variants) {
    await sample(programs.slice(0, 1), 1);
    const bits = new Uint32Array(await readBuffer(gpu, { buffer: out.buffer, size }));
    first ??= bits;
    const ref = first;
    let differ = 0;
    if (small || performance.now() > 0) {
      for (let i = 0; i < bits.length; i += small ? 1 : 97) differ += Number(bits[i] !== ref[i]);
    }
    const t = median(us);
    say(
      `  ${t.toFixed(1).padStart(6)} us min ${Math.min(...us).toFixed(1)} ${
        (2 * ROWS * n * k / t / 1e6).toFixed(0)
      } TF ${what}${differ ? ` OTHER BITS ${differ}` : ""}`,
    );
  }
  for (const { buffer } of [...weights, wScales, faults, x, xScales, out]) buffer.destroy();
}
say(`${elapsed().toFixed(1)} s`);
Deno.exit(0);

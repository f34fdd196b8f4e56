// Throw-away. SPEC = SHAPE:ROWS:VARIANT,VARIANT ; VARIANT = [elpnds]*.subgroups.gr.gc.or.oc.stage.ahead | auto | autop
import process from "node:process";
import { type Epilogue, notedEpilogue, PLAIN } from "../../shaders/fragments/epilogue.ts";
import { qkvEpilogue } from "../../shaders/matmul/epilogue/qkv.ts";
import { fitsTile, matmulTensor, type TensorTile } from "../../shaders/tensor/matmul_tensor.ts";
import { rowScales } from "../../shaders/tensor/scales/row_scales.ts";
import { halveWeights } from "../../shaders/tensor/scales/weight_scales.ts";
import { tensorTile } from "../../shaders/tensor/tensor_tiles.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Step } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { ropeTable } from "../../src/model/plan/rope.ts";
import { PAGE } from "../../src/model/plan/rows_layout.ts";
import { blockTable, packRows } from "../../tests/shaders/rows.ts";
import { type Bench, type Buffers, buffersOf, run } from "./tensor_buffers.ts";

const started = performance.now();
const gone = () => (performance.now() - started) / 1000;
const LIMIT = Number(Deno.env.get("LAB_SECONDS") ?? 19);
const small = Deno.args.includes("--small");
const specs = Deno.args.filter((one) => !one.startsWith("--"));
const say = (text: string) => process.stdout.write(`${text}\n`);
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const { device } = gpu;
const profiler = await openProfiler(gpu, { queries: 2 });
const bench: Bench = { gpu, make: compiler(gpu), profiler, unit, tiles: 9 };

interface Shape {
  n: number;
  k: number;
  split: number;
  end: "store" | "swiglu" | "qkv" | "add";
}
const SHAPES: Record<string, Shape> = {
  gateUp: { n: 28672, k: 4096, split: 1, end: "swiglu" },
  o: { n: 4096, k: 4096, split: 4, end: "store" },
  qkv: { n: 6144, k: 4096, split: 1, end: "qkv" },
  dqkv: { n: 6144, k: 8192, split: 1, end: "qkv" },
  down: { n: 4096, k: 14336, split: 4, end: "store" },
  ddown: { n: 4096, k: 14336, split: 1, end: "store" },
  fc: { n: 4096, k: 12288, split: 1, end: "store" },
  fc4: { n: 4096, k: 12288, split: 4, end: "store" },
  head: { n: 128256, k: 4096, split: 1, end: "store" },
  dhead: { n: 32000, k: 4096, split: 1, end: "store" },
  sQkv: { n: 4096, k: 1024, split: 1, end: "store" },
  sGateUp: { n: 6144, k: 1024, split: 1, end: "swiglu" },
};
if (small) {
  for (const shape of Object.values(SHAPES)) {
    Object.assign(shape, { n: 768, k: 512 * shape.split });
  }
}

function words(values: Uint32Array<ArrayBuffer>): Operand {
  const buffer = storage(device, "words", values.byteLength);
  device.queue.writeBuffer(buffer, 0, values);
  return { buffer };
}
const kvBuffer = storage(device, "kv", 64 << 20);
function placeOf({ n }: Shape, rows: number): Epilogue {
  const context = 512;
  const headDim = 128;
  const kvHeads = n / headDim / 6;
  const rope = { theta: 1e6, width: headDim, scaling: { kind: "default" } } as const;
  const table = ropeTable(rope, headDim, { positions: context, context });
  const fields = Array.from({ length: rows }, (_, i) => ({ position: 400 + i, cell: 400 + i }));
  const tablePages = context / PAGE;
  return qkvEpilogue({
    rope: words(Uint32Array.from(new Uint32Array(table.buffer))),
    rows: words(Uint32Array.from(packRows(fields))),
    pages: words(Uint32Array.from(blockTable(1, tablePages))),
    keys: { buffer: kvBuffer, offset: 0, size: 32 << 20 },
    values: { buffer: kvBuffer, offset: 32 << 20, size: 32 << 20 },
  }, { heads: 4 * kvHeads, kvHeads, headDim, tablePages, kvDtype: "f32" });
}
const noted = { buffer: storage(device, "noted", 1024) };
const endOf = (shape: Shape, rows: number): Epilogue =>
  shape.end === "swiglu"
    ? notedEpilogue("swiglu", noted)
    : shape.end === "qkv"
    ? placeOf(shape, rows)
    : PLAIN.store;

const datas = new Map<string, Buffers[]>();
async function dataOf(name: string): Promise<Buffers[]> {
  const found = datas.get(name);
  if (found) return found;
  const { n, k, split } = SHAPES[name] as Shape;
  const all: Buffers[] = [];
  for (let i = 0; i < (small ? 1 : Math.max(1, Math.ceil((160 << 20) / (2 * n * k)))); i++) {
    const buffers = await buffersOf(bench, { name, n, k }, 64 * split, 10 + i);
    await run(bench, [
      rowScales({ x: buffers.x, scales: buffers.xScales }, { rows: 64, cols: k }),
      halveWeights({ ...buffers, scales: buffers.wScales }, { rows: n, cols: k }),
    ]);
    all.push(buffers);
  }
  datas.set(name, all);
  return all;
}
let state = 1;
const pairWords = Uint32Array.from({ length: small ? 1 << 18 : 1 << 20 }, () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return (state & 0x83ff83ff) | 0x30003000;
});
const pairs = words(pairWords);
const ones = words(new Uint32Array(64).fill(0x3f800000));

async function stepOf(
  d: Dispatch,
  edit: (code: string) => string,
  pipes: Map<string, GPUComputePipeline>,
): Promise<Step> {
  const code = edit(d.kernel.code);
  const pipeline = pipes.get("p") ?? await device.createComputePipelineAsync({
    layout: "auto",
    compute: {
      module: device.createShaderModule({ code }),
      entryPoint: "main",
      constants: d.constants,
    },
  });
  pipes.set("p", pipeline);
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: d.kernel.bindings.map((name, i) => ({
      binding: d.kernel.numbers[i] as number,
      resource: d.buffers[name] as GPUBufferBinding,
    })),
  });
  return {
    pipeline,
    bound: { group },
    workgroups: d.workgroups,
    label: "",
    kernel: "",
    work: undefined,
  } as unknown as Step;
}

/** The loop over a stage's steps as text. */
function straight(code: string): string {
  return code.replaceAll(
    /( *)for \(var s = 0u; s < (\d+)u; s\+\+\) \{\n([\s\S]*?)\n\1\}/g,
    (_, pad, count, body) =>
      Array.from(
        { length: Number(count) },
        (_, s) => `${pad}{\n${pad}let s = ${s}u;\n${body}\n${pad}}`,
      ).join("\n"),
  );
}

/** The loop over a stage's steps as text, the tiles of a step loaded before the products of the one before. */
function piped(code: string): string {
  return code.replaceAll(
    /( *)for \(var s = 0u; s < (\d+)u; s\+\+\) \{\n([\s\S]*?)\n\1\}/g,
    (_, pad, count, body) => {
      const steps = Array.from({ length: Number(count) }, (_, s) => {
        const own = (body as string).replaceAll(/\b(at\d+|xh\d+|xl\d+|w_tile\d+)\b/g, `$1_s${s}`)
          .replaceAll(/\bs \*/g, `${s}u *`);
        const all = own.split(";").map((one) => one.trim()).filter((one) => one !== "").map((one) =>
          `${one};`
        );
        return {
          loads: all.filter((one) => one.startsWith("let")),
          products: all.filter((one) => !one.startsWith("let")),
        };
      });
      return `${pad}{\n` +
        [
          ...steps[0]?.loads ?? [],
          ...steps.flatMap(({ products }, s) => [...steps[s + 1]?.loads ?? [], ...products]),
        ].join(`\n${pad}`) + `\n${pad}}`;
    },
  );
}

/** Parts of the loop left out: M products and tiles, B barriers, X loads of x, W of weights. */
function without(code: string, kinds: string): string {
  const from = code.indexOf("  for (var k = 0u;");
  const to = code.indexOf("  // Tile by tile");
  let loop = code.slice(from, to);
  if (kinds.includes("M")) {
    loop = loop.replaceAll(/ = subgroupMatrixMultiplyAccumulate\([^;]*, (\w+)\);/g, " = $1;");
  }
  if (kinds.includes("B")) loop = loop.replaceAll("workgroupBarrier();", "");
  if (kinds.includes("X")) loop = loop.replaceAll(/x[ab]\d+_\d+ = x\[[^;]*;/g, "");
  if (kinds.includes("W")) loop = loop.replaceAll(/w\d+_\d+ = load_weights[^;]*;/g, "");
  if (kinds.includes("c") || kinds.includes("f")) {
    const fence = kinds.includes("f") ? "if (rows == 0u) { out[0] = 0.0; }" : "";
    loop = loop.replaceAll(
      /let next = ([^;]*);([\s\S]*?)if \(next < range\) \{([\s\S]*?)\n      \}\n/g,
      (_, sum, _between, body) =>
        `let next = min(${sum}, range - BLOCKS);\n{${body}\n${fence}\n}\n`,
    );
  }
  if (kinds.includes("b")) {
    const pattern =
      /let next = [^;]*;\s*(?:\/\/[^\n]*\n\s*)?if \(next < range\) \{[\s\S]*?\n      \}/g;
    const all = [...loop.matchAll(pattern)].map(([text]) => `{\n${text}\n}`);
    let at = 0;
    loop = loop.replaceAll(pattern, () => ++at === all.length ? all.join("\n") : "");
  }
  if (kinds.includes("K")) loop = loop.replace("k < range;", "k < 1u;");
  return code.slice(0, from) + loop + code.slice(to);
}

interface Variant {
  name: string;
  steps: Step[];
  us: number[];
  paired: boolean;
}
async function variantOf(
  text: string,
  name: string,
  rows: number,
  all: Buffers[],
  epilogue: Epilogue,
): Promise<Variant | undefined> {
  const { n, k, split } = SHAPES[name] as Shape;
  const [kinds = "", ...numbers] = text.split(".");
  const [subgroups = 1, gr = 1, gc = 1, or = 1, oc = 1, stage = 64, ahead = 1] = numbers.map(
    Number,
  );
  const paired = kinds.includes("p");
  const tile: TensorTile = kinds.startsWith("auto")
    ? tensorTile(unit, gpu.limits, {
      rows,
      columns: n,
      range: k / split,
      splitK: split,
    }) as TensorTile
    : {
      subgroups,
      grid: [gr, gc],
      own: [or, oc],
      stage,
      ahead,
      unrolled: !kinds.includes("l"),
      early: kinds.includes("e"),
      ...kinds.includes("j") ? { joined: true } : {},
    };
  if (!fitsTile(unit, tile, gpu.limits) || k / split % stage !== 0) {
    say(`${name} ${rows} no room: ${text}`);
    return undefined;
  }
  try {
    const steps: Step[] = [];
    const pipes = new Map<string, GPUComputePipeline>();
    for (const b of all) {
      const own = paired ? { ...b, x: pairs, xScales: ones } : b;
      const made = matmulTensor(own, {
        ...{
          unit,
          tile,
          rows,
          matrix: { rows: n, cols: k },
          shard: { operand: b.weights, first: 0, rows: n },
        },
        ...{ splitK: split, halved: true, epilogue, paired, label: name },
      });
      steps.push(
        await stepOf(made, (code) =>
          without(
            kinds.includes("q") ? piped(code) : kinds.includes("s") ? straight(code) : code,
            kinds,
          ), pipes),
      );
    }
    const shown = kinds.startsWith("auto") ? `${text}=${Object.values(tile)}` : text;
    return { name: shown, steps, us: [], paired };
  } catch (error) {
    say(`${name} ${rows} FAILED ${text}: ${String(error).slice(0, 300)}`);
    return undefined;
  }
}

async function time(steps: readonly Step[], runs: number): Promise<number> {
  const list = Array.from({ length: runs }, (_, i) => steps[i % steps.length] as Step);
  return 1000 * ((await profiler.time([{ steps: list }]))[0]?.end ?? NaN) / runs;
}

say(`${gpu.info.adapter} ${JSON.stringify(unit)}`);
const jobs: {
  name: string;
  rows: number;
  made: Promise<(Variant | undefined)[]>;
  all: Buffers[];
  epilogue: Epilogue;
}[] = [];
for (const spec of specs) {
  const [name = "", rowText = "", list = ""] = spec.split(":");
  const rows = Number(rowText);
  const all = await dataOf(name);
  const epilogue = endOf(SHAPES[name] as Shape, rows);
  const made = Promise.all(
    list.split(",").map((text) => variantOf(text, name, rows, all, epilogue)),
  );
  jobs.push({ name, rows, made, all, epilogue });
}
let warm = false;
await Promise.all(jobs.map(({ made }) => made));
for (const { name, rows, made, all, epilogue } of jobs) {
  if (gone() > LIMIT) break;
  const variants = (await made).filter((one) => one !== undefined);
  const [first] = variants;
  const from = performance.now();
  while (first && !gpu.info.software && performance.now() - from < (warm ? 150 : 800)) {
    await time(first.steps, 60);
  }
  if (!warm) say(`ready ${gone().toFixed(1)} s`);
  warm = true;
  const { n, split } = SHAPES[name] as Shape;
  const out = (all[0] as Buffers).out.buffer;
  const size = Math.min(1 << 20, 4 * rows * Math.round(n * epilogue.outShare) * split);
  const references = new Map<boolean, Uint32Array>();
  const marks: string[] = [];
  for (const { steps, paired } of variants) {
    const encoder = device.createCommandEncoder();
    encoder.clearBuffer(out);
    encoder.clearBuffer(kvBuffer);
    device.queue.submit([encoder.finish()]);
    await time(steps.slice(0, 1), 1);
    const bits = new Uint32Array(1 << 19);
    bits.set(new Uint32Array(await readBuffer(gpu, { buffer: out, size })));
    bits.set(new Uint32Array(await readBuffer(gpu, { buffer: kvBuffer, size: 1 << 20 })), 1 << 18);
    const reference = references.getOrInsertComputed(paired, () => bits);
    marks.push(bits.some((word, i) => word !== reference[i]) ? " DIFFERENT" : "");
  }
  const each = (us: number) => Math.max(6, Math.min(40, Math.round(2000 / us)));
  for (let round = 0; round < (small ? 1 : 5); round++) {
    for (const one of variants) {
      one.us.push(await time(one.steps, small ? 1 : each(one.us[0] ?? 100)));
    }
  }
  const lines = variants.map(({ name: text, us }, i) =>
    [us.toSorted((a, b) => a - b)[us.length >> 1] ?? NaN, `${text}${marks[i]}`] as const
  );
  say(
    `${name} ${rows}: ` +
      lines.toSorted((a, b) => a[0] - b[0]).map(([us, text]) => `${us.toFixed(1)} ${text}`).join(
        "; ",
      ),
  );
}
say(`${gone().toFixed(1)} s`);
Deno.exit(0);

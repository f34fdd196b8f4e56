// Throw-away: variants of the workgroups of matmul_tensor.wgsl and matmul_tensor_few.wgsl, compiled side by side.
// spec: SHAPE:ROWS:VARIANT,VARIANT...  variant: f.columns.stage.ahead.branched | [phu]*t.subgroups.gr.gc.or.oc.stage.ahead
import process from "node:process";
import { expand } from "../../src/gpu/expand.ts";
import { link } from "../../src/gpu/link.ts";
import { TEXTS } from "../../shaders/texts.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openReadback, readBuffer } from "../../src/gpu/readback.ts";
import { fillParams, fillRandom } from "../../shaders/weights/fill_random.ts";
import { compiler, submit } from "../../src/gpu/program.ts";
import {
  halveWeights,
  matmulTensor,
  rowScales,
  tileBytes,
  weightScales,
} from "../../shaders/tensor/matmul_tensor.ts";
import { matmulTensorFew } from "../../shaders/tensor/matmul_tensor_few.ts";
import { type Epilogue, notedEpilogue, PLAIN } from "../../shaders/fragments/epilogue.ts";
import { qkvEpilogue } from "../../shaders/matmul/epilogue/qkv.ts";
import { blockTable, packRows } from "../../tests/shaders/rows.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";

const args = Deno.args;
const small = args.includes("--small");
const wait = args.includes("--wait");
const specs = args.filter((one) => !one.startsWith("--"));
const say = (text: string) => process.stdout.write(`${text}\n`);
const started = performance.now();
const gpu = await openGpu({ webgpu: "dawn" });
const unit = gpu.matrixUnit as MatrixUnit;
const { device } = gpu;
const make = compiler(gpu);
const { m: M, n: N, k: K, lanes: L } = unit;
say(`${gpu.info.adapter} ${JSON.stringify(unit)}`);

const SHAPES: Record<string, [number, number, number]> = {
  gateUp: [28672, 4096, 1],
  down: [4096, 14336, 4],
  qkv: [6144, 4096, 1],
  o: [4096, 4096, 4],
  qGateUp: [6144, 1024, 1],
  qDown: [1024, 3072, 4],
  qQkv: [4096, 1024, 1],
  qO: [1024, 2048, 4],
  mQkv: [5120, 2048, 1],
  mO: [2048, 4096, 4],
};
if (small) {
  for (const name of Object.keys(SHAPES)) {
    SHAPES[name] = [7 * 8 * 6, 1024, (SHAPES[name] as number[])[2] as number];
  }
}

interface Variant {
  name: string;
  code: string;
  tile: [number, number];
  pairs: "x" | "pairs";
}
const ENDS: Record<string, string> = { gateUp: "swiglu", qGateUp: "swiglu", qkv: "qkv" };
const nothing = {} as { buffer: GPUBuffer };
const slot = { buffer: nothing } as unknown as { buffer: GPUBuffer };
function epilogueOf(end: string): Epilogue {
  if (end === "swiglu") return notedEpilogue("swiglu", slot);
  if (end === "store") return PLAIN.store;
  const place = { rope: slot, rows: slot, pages: slot, keys: slot, values: slot };
  return qkvEpilogue(place, {
    heads: 32,
    kvHeads: 8,
    headDim: 128,
    tablePages: 32,
    kvDtype: "f32",
  });
}
function variantOf(
  name: string,
  rows: number,
  [n, k, splitK]: [number, number, number],
  end: string,
): Variant {
  const [kinds = "", ...numbers] = name.split(".");
  const t = numbers.map(Number);
  const shard = { operand: { buffer: { size: 1 } as GPUBuffer }, first: 0, rows: n };
  const of = {
    unit,
    rows,
    matrix: { rows: n, cols: k },
    shard,
    splitK,
    halved: true,
    epilogue: epilogueOf(end),
    label: name,
  };
  const buffers = { x: slot, out: slot, wScales: slot, xScales: slot };
  if (kinds.includes("f")) {
    const [columns = 1, stage = 64, ahead = 2] = t;
    const tile = { columns, stage, ahead };
    const { kernel: { code } } = matmulTensorFew(buffers, { ...of, tile });
    return { name, code, tile: [1e9, columns * N], pairs: "x" };
  }
  const [subgroups = 1, gr = 1, gc = 1, or = 1, oc = 1, stage = 64, ahead = 1] = t;
  const tile = {
    subgroups,
    grid: [gr, gc],
    own: [or, oc],
    stage,
    ahead,
    early: kinds.includes("e"),
    unrolled: kinds.includes("r"),
  } as const;
  if (tileBytes(unit, tile) > 49152 && !kinds.includes("i")) {
    throw new Error(`room ${tileBytes(unit, tile)}`);
  }
  let { kernel: { code } } = matmulTensor(buffers, { ...of, tile, paired: kinds.includes("p") });
  if (kinds.includes("i")) {
    const F = Number(kinds.match(/i(\d)/)?.[1] ?? 2);
    const chunks = stage / 8;
    const P = F * chunks + 1;
    const xs = Math.ceil(gc * oc / F) * N * P;
    const words = Math.max(xs + Math.ceil(2 * gr * or / F) * M * P, gr * gc * 2 * M * (N / 4 + 1));
    if (16 * words + 4 * (gc * oc * N + gr * or * M) > 49152) throw new Error(`room ${16 * words}`);
    const swap = (from: RegExp, to: string) => {
      const out = code.replaceAll(from, to);
      if (out === code) throw new Error(`nothing to replace: ${from}`);
      code = out;
    };
    swap(
      /const PITCH = .*;/g,
      `const PITCH = ${P}u;
fn place(row: u32, unit: u32) -> u32 {
  let t = row / unit;
  return t / ${F}u * (unit * PITCH) + row % unit * PITCH + t % ${F}u * CHUNKS;
}`,
    );
    swap(/const XS = .*;/g, `const XS = ${xs}u;`);
    swap(
      /var<workgroup> staged: array<vec4<u32>, \d+>;/g,
      `var<workgroup> staged: array<vec4<u32>, ${words}>;`,
    );
    swap(/let (w_to\d+) = (w_column\d+) \* PITCH \+/g, `let $1 = place($2, ${N}u) +`);
    swap(
      /let x_to(\d+) = XS \+ own_x_row\d+ \* PITCH \+ (.*);/g,
      `let x_to$1 = XS + place(own_x_row$1, ${M}u) + $2; let x_low$1 = XS + place(own_x_row$1 + ${
        gr * or * M
      }u, ${M}u) + $2;`,
    );
    swap(/staged\[x_to(\d+) \+ \d+u \* PITCH\]/g, "staged[x_low$1]");
    swap(
      /let at(\d+) = XS \+ (\(.*?\)) \* PITCH \+ (.*);/g,
      `let at$1 = XS + place($2, ${M}u) + $3; let low$1 = XS + place($2 + ${
        gr * or * M
      }u, ${M}u) + $3;`,
    );
    swap(/&staged, at(\d+) \+ \d+u \* PITCH, PITCH/g, "&staged, low$1, PITCH");
    swap(/&staged, (\(own_column.*?\)) \* PITCH \+/g, `&staged, place($1, ${N}u) +`);
  }
  return {
    name,
    code,
    tile: [gr * or * M, gc * oc * N],
    pairs: kinds.includes("p") ? "pairs" : "x",
  };
}

const of = (label: string, bytes: number) => storage(device, label, bytes);

/** x scaled, hi then lo, [2, rows, cols / 8]. */
const PAIR = device.createComputePipeline({
  layout: "auto",
  compute: {
    module: device.createShaderModule({
      code: expand(
        link("pair", {
          ...TEXTS,
          pair: `enable f16;
//use tensor/cut
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> cols: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let n = arrayLength(&x) / 2u;
  if (id.x >= n) { return; }
  let r = id.x / (cols[0] / 8u); let c = id.x % (cols[0] / 8u);
  let s = scales[r];
  let a = x[2u * id.x] * s; let b = x[2u * id.x + 1u] * s;
  let at = r * (cols[0] / 4u) + c;
  out[at] = packed(cut(a), cut(b));
  out[at + cols[0] / 8u] = packed(a - cut(a), b - cut(b));
}`,
        }, {}),
        {},
      ),
    }),
    entryPoint: "main",
  },
});

interface Copy {
  weights: GPUBuffer;
  wScales: GPUBuffer;
}
interface Data {
  copies: Copy[];
  x: Map<number, { x: GPUBuffer; scales: GPUBuffer; pairs: GPUBuffer }>;
  out: GPUBuffer;
}
const datas = new Map<string, Data>();
async function dataOf(name: string, rows: number): Promise<Data> {
  const [n, k, split] = SHAPES[name] as [number, number, number];
  let data = datas.get(name);
  const fill = (buffer: GPUBuffer, stream: number) => {
    const params = of("params", 16);
    device.queue.writeBuffer(params, 0, fillParams({ seed: 1, stream, std: 0.02 }));
    return fillRandom({ params: { buffer: params }, out: { buffer } }, "fill");
  };
  if (!data) {
    const copies: Copy[] = [];
    const count = small ? 1 : Math.max(1, Math.ceil((160 << 20) / (2 * n * k)));
    for (let i = 0; i < count; i++) {
      const weights = of("w", 2 * n * k), wScales = of("s", 4 * n), faults = of("f", 4 * n);
      const b = { weights: { buffer: weights }, scales: { buffer: wScales } };
      submit(
        gpu,
        await make.compile([
          fill(weights, 10 + i),
          weightScales({ ...b, faults: { buffer: faults } }, { rows: n, cols: k }),
          halveWeights(b, { rows: n, cols: k }),
        ]),
      );
      copies.push({ weights, wScales });
    }
    data = { copies, x: new Map(), out: of("out", 4 * 64 * n * split) };
    datas.set(name, data);
  }
  if (!data.x.has(rows)) {
    const x = of("x", 4 * rows * k),
      scales = of("xs", 4 * rows),
      pairs = of("pairs", 4 * rows * k),
      cols = of("c", 16);
    device.queue.writeBuffer(cols, 0, new Uint32Array([k, 0, 0, 0]));
    submit(
      gpu,
      await make.compile([
        fill(x, 7),
        rowScales({ x: { buffer: x }, scales: { buffer: scales } }, { rows, cols: k }),
      ]),
    );
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(PAIR);
    pass.setBindGroup(
      0,
      device.createBindGroup({
        layout: PAIR.getBindGroupLayout(0),
        entries: [x, scales, pairs, cols].map((buffer, binding) => ({
          binding,
          resource: { buffer },
        })),
      }),
    );
    pass.dispatchWorkgroups(Math.ceil(rows * k / 8 / 64));
    pass.end();
    device.queue.submit([encoder.finish()]);
    data.x.set(rows, { x, scales, pairs });
  }
  return data;
}

function constantsOf(end: string, n: number): Record<string, number> {
  if (end === "swiglu") return { OUT_COLS: n / 2 };
  if (end !== "qkv") return { OUT_COLS: n };
  const headDim = small ? 56 : 128;
  const kvHeads = n / headDim / 6;
  return {
    OUT_COLS: n,
    HEAD_DIM: headDim,
    Q_HEADS: 4 * kvHeads,
    KV_HEADS: kvHeads,
    TABLE_PAGES: 32,
  };
}
const noted = of("noted", 4096);
const keys = of("keys", small ? 16 << 20 : 160 << 20),
  values = of("values", small ? 16 << 20 : 160 << 20);
const ropes = of("rope", 512 * 64 * 8);
device.queue.writeBuffer(ropes, 0, new Float32Array(512 * 64 * 2).map((_, i) => Math.cos(i)));
const rowBuffers = new Map<number, [GPUBuffer, GPUBuffer]>();
/** Rows of slots of their own. */
function boundOf(end: string, _: Data, rows: number): [number, GPUBuffer][] {
  if (end === "swiglu") return [[13, noted]];
  if (end !== "qkv") return [];
  const [fields, pages] = rowBuffers.getOrInsertComputed(rows, () => {
    const words = new Uint32Array(
      packRows(
        Array.from({ length: rows }, (_, slot) => ({ slot, position: 440, cell: 440, base: 441 })),
      ),
    );
    const table = Uint32Array.from(blockTable(rows, 32));
    const made = [of("rows", words.byteLength), of("pages", table.byteLength)] as [
      GPUBuffer,
      GPUBuffer,
    ];
    device.queue.writeBuffer(made[0], 0, words);
    device.queue.writeBuffer(made[1], 0, table);
    return made;
  });
  return [[3, ropes], [4, fields], [5, pages], [6, keys], [7, values]];
}

const COUNT = 2;
const querySet = device.createQuerySet({ type: "timestamp", count: COUNT });
const resolved = device.createBuffer({
  size: 16,
  usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
});
const readback = await openReadback(gpu, 4);

interface Run {
  pipeline: GPUComputePipeline;
  groups: GPUBindGroup[];
  size: [number, number, number];
}
async function time({ pipeline, groups, size }: Run, runs: number): Promise<number> {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass({
    timestampWrites: { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 },
  });
  pass.setPipeline(pipeline);
  for (let i = 0; i < runs; i++) {
    pass.setBindGroup(0, groups[i % groups.length] as GPUBindGroup);
    pass.dispatchWorkgroups(...size);
  }
  pass.end();
  encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, readback.buffer, 0, 16);
  device.queue.submit([encoder.finish()]);
  const [begin = 0n, end = 0n] = new BigUint64Array((await readback.read()).buffer, 0, 2);
  return Number(end - begin) / 1000 / runs;
}

interface Made {
  variant: Variant;
  run: Run;
  us: number[];
}
interface Group {
  title: string;
  made: Promise<Made | undefined>[];
  out: GPUBuffer;
  bytes: number;
}
let calibrated = Infinity;
const groups: Group[] = [];
for (const spec of specs) {
  const [name = "", rowText = "", list = ""] = spec.split(":");
  const rows = Number(rowText);
  const [n, k, split] = SHAPES[name] as [number, number, number];
  const data = await dataOf(name, rows);
  const end = args.includes("--store") ? "store" : ENDS[name] ?? "store";
  const made = list.split(",").map(async (text) => {
    try {
      const variant = variantOf(text, rows, [n, k, split], end);
      const module = device.createShaderModule({ code: variant.code });
      const pipeline = await device.createComputePipelineAsync({
        layout: "auto",
        compute: {
          module,
          entryPoint: "main",
          constants: { COLS: k, MATRIX_ROWS: n, FIRST: 0, SPLIT_K: split, ...constantsOf(end, n) },
        },
      });
      const rowsOf = data.x.get(rows) as {
        x: GPUBuffer;
        scales: GPUBuffer;
        pairs: GPUBuffer;
      };
      const layout = pipeline.getBindGroupLayout(0);
      const bound = data.copies.map(({ weights, wScales }) =>
        device.createBindGroup({
          layout,
          entries: ([
            [0, weights],
            [1, rowsOf[variant.pairs]],
            [2, data.out],
            [14, wScales],
            [15, rowsOf.scales],
            ...boundOf(end, data, rows),
          ] as [number, GPUBuffer][]).map(([binding, buffer]) => ({
            binding,
            resource: { buffer },
          })),
        })
      );
      const size: [number, number, number] = [
        Math.ceil(rows / variant.tile[0]),
        Math.ceil(n / variant.tile[1]),
        split,
      ];
      return { variant, run: { pipeline, groups: bound, size }, us: [] };
    } catch (error) {
      say(`${name} ${rows} FAILED ${text}: ${String(error).slice(0, 300)}`);
      return undefined;
    }
  });
  groups.push({
    title: `${name} ${rows}`,
    made,
    out: data.out,
    bytes: 4 * Math.min(rows * n * split, 1 << 18),
  });
}

if (wait) {
  await new Response(Deno.stdin.readable).text();
  say(`waited ${((performance.now() - started) / 1000).toFixed(1)} s`);
}
/** Waits for the clocks that were there before. */
const heater = (await groups[0]?.made[0])?.run;
async function clocks(): Promise<void> {
  if (!heater || small) return;
  const from = performance.now();
  const least = calibrated === Infinity ? 800 : 10;
  let us = Infinity;
  while (
    performance.now() - from < least || us > 1.15 * calibrated && performance.now() - from < 1200
  ) {
    us = await time(heater, 40);
    calibrated = Math.min(calibrated, us);
  }
  if (us > 1.15 * calibrated) {
    say(`low clocks: ${us.toFixed(1)} instead of ${calibrated.toFixed(1)}`);
  }
}

for (const { title, made, out, bytes } of groups) {
  const all = (await Promise.all(made)).filter((one) => one !== undefined);
  await clocks();
  let reference: Uint32Array | undefined;
  const marks: string[] = [];
  for (const { run } of all) {
    const encoder = device.createCommandEncoder();
    encoder.clearBuffer(out);
    encoder.clearBuffer(keys);
    device.queue.submit([encoder.finish()]);
    await time({ ...run, groups: run.groups.slice(0, 1) }, 1);
    const bits = new Uint32Array(1 << 19);
    bits.set(new Uint32Array(await readBuffer(gpu, { buffer: out, size: bytes })));
    bits.set(new Uint32Array(await readBuffer(gpu, { buffer: keys, size: 1 << 20 })), 1 << 18);
    reference ??= bits;
    marks.push(bits.some((word, i) => word !== reference?.[i]) ? " DIFFERENT" : "");
  }
  const each = (us: number) => Math.max(6, Math.min(60, Math.round(2500 / us)));
  for (let round = 0; round < (small ? 1 : 5); round++) {
    for (const one of all) one.us.push(await time(one.run, small ? 1 : each(one.us[0] ?? 100)));
  }
  const medians = all.map(({ us }) => us.toSorted((a, b) => a - b)[us.length >> 1] ?? NaN);
  say(
    `${title}: ` +
      all.map(({ variant }, i) => `${variant.name} ${medians[i]?.toFixed(1)}${marks[i]}`).join(
        "; ",
      ),
  );
}
say(`${((performance.now() - started) / 1000).toFixed(1)} s`);
Deno.exit(0);

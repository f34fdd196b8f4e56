// Throw-away: variants of the workgroups of matmul_tensor.wgsl and matmul_tensor_few.wgsl, compiled side by side.
// spec: SHAPE:ROWS:VARIANT,VARIANT...  variant: f.columns.stage.ahead.branched | [phu]*t.subgroups.gr.gc.or.oc.stage.ahead
import process from "node:process";
import { expand } from "../../src/gpu/expand.ts";
import { link } from "../../src/gpu/link.ts";
import { TEXTS as NOW } from "../../shaders/texts.ts";
import OLD from "./old.wgsl" with { type: "text" };
const TEXTS: Record<string, string> = { ...NOW, "tensor/matmul_tensor": OLD };
import { openGpu } from "../../src/gpu/device.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openReadback, readBuffer } from "../../src/gpu/readback.ts";
import { fillParams, fillRandom } from "../../shaders/weights/fill_random.ts";
import { compiler, submit } from "../../src/gpu/program.ts";
import { halveWeights, rowScales, weightScales } from "../../shaders/tensor/matmul_tensor.ts";
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

const format = { LOW: 1, ROUNDED: 0, HALVED: 1, CONVERTED: 0, VEC8S: 1 };
const slotsOf = (end: string) => ({
  load: "tensor/load/whole",
  ...end === "store" ? { out: "tensor/out_store", epilogue: "matmul/epilogue/store" } : {},
  ...end === "swiglu"
    ? {
      out: "tensor/out_noted",
      epilogue: "matmul/epilogue/gated_noted",
      gate: "matmul/epilogue/gate_silu",
    }
    : {},
  ...end === "qkv"
    ? {
      out: "tensor/out_store",
      epilogue: "matmul/epilogue/qkv",
      kv_store: "fragments/kv_store_f32",
      bias: "matmul/epilogue/qkv_plain",
    }
    : {},
});
const ENDS: Record<string, string> = { gateUp: "swiglu", qGateUp: "swiglu", qkv: "qkv" };

function swap(text: string, from: string | RegExp, to: string): string {
  const out = text.replaceAll(from as string, to);
  if (out === text) throw new Error(`nothing to replace: ${from}`);
  return out;
}

/** Scales of weights asked for first, and what the epilogue reads before what it writes. */
function early(text: string, kinds: string, counts: Record<string, number>, end: string): string {
  counts.PREPARED = Number(end === "qkv");
  counts.UNPREPARED = 1 - counts.PREPARED;
  counts.AT_START = kinds.includes("E") ? counts.PREPARED : 0;
  counts.AT_END = kinds.includes("E") ? 0 : counts.PREPARED;
  counts.PARTS_OF_TILE = (counts.UNIT_M as number) * (counts.UNIT_N as number) / 2 /
    (counts.LANES as number);
  counts.ROWS_AT_ONCE = (counts.LANES as number) / (counts.UNIT_N as number) * 2;
  if (text.includes("fn sum_of")) {
    text = swap(
      text,
      "  //for u in W_LOADS\n  let w_block$u",
      `  //for p in AT_START
  //for t in TURNS
  let place$t = prepare(min(row$t, $X_ROWSu - 1u), own);
  //end
  //end
  //for u in W_LOADS\n  let w_block$u`,
    );
    text = swap(
      text,
      "  let sums_at =",
      `  //for p in AT_END
  //for t in TURNS
  let place$t = prepare(min(row$t, $X_ROWSu - 1u), own);
  //end
  //end
  let sums_at =`,
    );
    return swap(
      text,
      "      epilogue(tile.z * $X_ROWSu + row$t, column, half, y);",
      `//for p in PREPARED
      finish(place$t, column, y);
//end
//for p in UNPREPARED
      epilogue(tile.z * $X_ROWSu + row$t, column, half, y);
//end`,
    );
  }
  text = swap(
    text,
    "  //for u in W_LOADS\n  let w_block$u",
    `  //for c in OWN_C
  let column$c = pair + own_column / 2u + $cu * $UNIT_HALFu + lane % $UNIT_HALFu;
  let own$c = min(column$c, half - 1u);
  let own_scales$c = vec2(w_scales[own$c], w_scales[own$c + half]);
  //end
  //for r in OWN_R
  //for t in PARTS_OF_TILE
  let row$r_$t = row + own_row + $ru * $UNIT_Mu + $tu * $ROWS_AT_ONCEu + lane / $UNIT_HALFu;
  //end
  //for p in AT_START
  //for c in OWN_C
  //for t in PARTS_OF_TILE
  let place$r_$c_$t = prepare(min(row$r_$t, rows - 1u), own$c);
  //end
  //end
  //end
  //end
  //for u in W_LOADS\n  let w_block$u`,
  );
  text = swap(
    text,
    "fn sum_at(at: u32)",
    `fn sum_of(at: u32) -> f32 {
  var sum = bitcast<f32>(ws[at / 4u][at % 4u]);
  //for l in LOW
  sum += bitcast<f32>(ws[at / 4u + $SUM_WORDSu][at % 4u]);
  //end
  return sum;
}
fn sum_at(at: u32)`,
  );
  const from = text.indexOf("  // Tile by tile");
  return text.slice(0, from) + `
  let sums = subgroup * 2u * $SUM_WORDSu;
  //for r in OWN_R
  //for t in PARTS_OF_TILE
  let row_scale$r_$t = x_scales[min(row$r_$t, rows - 1u)];
  //end
  //for c in OWN_C
  {
    if (multiplies) {
      subgroupMatrixStore<row_major>(&ws, sums, hi$r_$c, $UNIT_Nu / 4u);
      //for l in LOW
      subgroupMatrixStore<row_major>(&ws, sums + $SUM_WORDSu, lo$r_$c, $UNIT_Nu / 4u);
      //end
    }
    //for p in AT_END
    //for t in PARTS_OF_TILE
    let place$r_$c_$t = prepare(min(row$r_$t, rows - 1u), own$c);
    //end
    //end
    let out_scale = vec2(inverse(own_scales$c.x), inverse(own_scales$c.y));
    workgroupBarrier();
    //for t in PARTS_OF_TILE
    if (multiplies && row$r_$t < rows && column$c < half) {
      let at = sums * 4u + ($tu * $ROWS_AT_ONCEu + lane / $UNIT_HALFu) * $UNIT_Nu + lane % $UNIT_HALFu;
      let y = vec2(sum_of(at), sum_of(at + $UNIT_HALFu)) * inverse(row_scale$r_$t) * out_scale;
      //for p in PREPARED
      finish(place$r_$c_$t, column$c, y);
      //end
      //for p in UNPREPARED
      epilogue(tile.z * rows + row$r_$t, column$c, half, y);
      //end
    }
    fold($UNIT_HALFu);
    if (multiplies && row$r_$t < rows && lane % $UNIT_HALFu == 0u) {
      end_row(row$r_$t);
    }
    //end
    workgroupBarrier();
  }
  //end
  //end
}
`;
}

/** Workgroup memory that nothing needs. */
function padded(text: string, kinds: string): string {
  const bytes = Number(kinds.match(/M(\d+)/)?.[1] ?? 0) * 1024;
  if (bytes === 0) return text;
  text = text.replace("@compute", `var<workgroup> pad: array<vec4<u32>, ${bytes / 16}>;\n@compute`);
  const at = text.lastIndexOf("}");
  return text.slice(0, at) +
    "  if (COLS == 3u) { pad[tile.y] = vec4(tile.z); workgroupBarrier(); out[0] = f32(pad[tile.z + 1u].x); }\n}\n";
}

/** The loop over k as one run of instructions; loads clamped instead of in branches. */
function shaped(
  text: string,
  kinds: string,
  counts: Record<string, number>,
  range: number,
): string {
  if (kinds.includes("s")) {
    text = swap(
      text,
      "let next = k + ($au + $AHEADu) * BLOCKS;",
      "let next = min(k + ($au + $AHEADu) * BLOCKS, range - BLOCKS);",
    );
    text = swap(text, "if (next < range) {", "{");
  }
  if (kinds.includes("U")) {
    const { STAGE = 1, AHEAD = 1 } = counts;
    counts.WHOLE = Math.ceil(range / (STAGE * AHEAD));
    text = swap(
      text,
      "for (var k = 0u; k < range; k += $AHEADu * BLOCKS) {",
      "//for y in WHOLE\n{\nlet k = $yu * $AHEADu * BLOCKS;",
    );
    const end = text.includes("//for o in STRAIGHT")
      ? "      workgroupBarrier();\n    }\n    //end\n  }\n\n  //for c in OWN_C"
      : "      workgroupBarrier();\n    }\n    //end\n  }\n\n  // Tile by tile";
    text = swap(text, end, end.replace("\n  }\n\n", "\n  }\n  //end\n\n"));
  }
  return text;
}

interface Variant {
  name: string;
  code: string;
  tile: [number, number];
  pairs: "x" | "pairs" | "tiles";
}

function tensorVariant(
  name: string,
  kinds: string,
  t: number[],
  range: number,
  end: string,
): Variant {
  const [S = 1, gr = 1, gc = 1, or = 1, oc = 1, stage = 64, ahead = 1] = t;
  const pairs = kinds.includes("p") ? "pairs" : kinds.includes("d") ? "tiles" : "x";
  const half = kinds.includes("h");
  const tileRows = gr * or * M, tileCols = gc * oc * N;
  const threads = S * L, chunks = stage / 8, sumWords = M * N / 4;
  if (range % stage !== 0) throw new Error("range");
  const xRows = half ? M / 2 : tileRows;
  const counts: Record<string, number> = {
    ...format,
    GRID_R: gr,
    GRID_C: gc,
    OWN_R: or,
    OWN_C: oc,
    STAGE: stage,
    AHEAD: ahead,
    TILE_ROWS: tileRows,
    TILE_COLS: tileCols,
    THREADS: threads,
    CHUNKS: chunks,
    SUM_WORDS: sumWords,
    LANES: L,
    UNIT_M: M,
    UNIT_N: N,
    UNIT_K: K,
    UNIT_HALF: N / 2,
    HALF_WORDS: N / 8,
    STEPS: stage / K,
    W_LOADS: Math.ceil(tileCols * chunks / threads),
    X_LOADS: Math.ceil(xRows * chunks / threads),
    WEIGHT_WORDS: Math.max(tileCols * (chunks + 1), gr * gc * 2 * sumWords),
    X_WORDS: (half ? 1 : 2) * tileRows * (chunks + 1),
    RAGGED: Number(range % (stage * ahead) !== 0 || gr * or === 1),
  };
  if (!kinds.includes("i") && 16 * ((counts.WEIGHT_WORDS ?? 0) + (counts.X_WORDS ?? 0)) > 49152) {
    throw new Error("room");
  }
  let text = TEXTS["tensor/matmul_tensor"] as string;
  if (pairs === "pairs") {
    text = swap(text, "x: array<vec4<f32>>", "x: array<vec4<u32>>");
    text = swap(text, "in_stage(x_chunk$u % CHUNKS)) * 2u;", "in_stage(x_chunk$u % CHUNKS));");
    text = swap(text, /(xa\$a_\$u = x\[.*) \* 2u\];/g, "$1];");
    text = swap(text, /(xb\$a_\$u = x\[.*) \* 2u \+ 1u\];/g, "$1 + low];");
    text = swap(
      text,
      "let half = MATRIX_ROWS / 2u;",
      "let half = MATRIX_ROWS / 2u;\n  let low = rows * (COLS / 8u);",
    );
    text = swap(text, "eight_of_x(cut(a), cut(b))", "xa$a_$u");
    text = swap(text, "eight_of_x(a - cut(a), b - cut(b))", "xb$a_$u");
    text = swap(text, "let a = xa$a_$u * x_scale$u;", "");
    text = swap(text, "let b = xb$a_$u * x_scale$u;", "");
  }
  if (kinds.includes("d")) {
    counts.X_LOADS = 0;
    counts.X_WORDS = 1;
    counts.TILE_VEC4S = M * K / 8;
    counts.TILE_STRIDE = K / 8;
    text = swap(text, "x: array<vec4<f32>>", "x: array<vec4<u32>>");
    text = swap(
      text,
      "let rows = arrayLength(&x) / (COLS / 4u);",
      "let rows = arrayLength(&x_scales);",
    );
    text = swap(
      text,
      "let at$r = (own_row + $ru * $UNIT_Mu) * PITCH + s * $UNIT_Ku / 8u;",
      "let at$r = ((min((row + own_row) / $UNIT_Mu + $ru, (rows - 1u) / $UNIT_Mu) * (COLS / $UNIT_Ku) + (begin + k + $au * BLOCKS) / ($UNIT_Ku / 8u) + s) * 2u) * $TILE_VEC4Su;",
    );
    text = swap(text, "row_major>(&xs, at$r, PITCH)", "row_major>(&x, at$r, $TILE_STRIDEu)");
    text = swap(
      text,
      "row_major>(&xs, at$r + $TILE_ROWSu * PITCH, PITCH)",
      "row_major>(&x, at$r + $TILE_VEC4Su, $TILE_STRIDEu)",
    );
  }
  if (half) {
    counts.LOW = 0;
    counts.ROUNDED = 1;
    text = swap(
      text,
      "xs[x_to$u] = eight_of_x(a, b);",
      "xs[x_to$u] = eight_of_x(cut(a), cut(b)); xs[x_to$u + $(UNIT_HALFM)u * PITCH] = eight_of_x(a - cut(a), b - cut(b));",
    );
    counts.UNIT_HALFM = M / 2;
    text = swap(text, "x_chunk$u < $TILE_ROWSu * CHUNKS", "x_chunk$u < $UNIT_HALFMu * CHUNKS");
    text = swap(text, "i < $SUM_WORDSu / 2u", "i < $SUM_WORDSu / 4u");
    text = swap(
      text,
      "var sum = bitcast<vec4<f32>>(ws[at]);",
      "var sum = bitcast<vec4<f32>>(ws[at]) + bitcast<vec4<f32>>(ws[at + $SUM_WORDSu / 2u]);",
    );
  }
  if (kinds.includes("u")) {
    text = swap(text, "for (var s = 0u; s < $STEPSu; s++) {", "//for q in STEPS\n{\nlet s = $qu;");
    text = swap(
      text,
      "          //end\n          //end\n        }\n      }\n      workgroupBarrier();",
      "          //end\n          //end\n        }\n//end\n      }\n      workgroupBarrier();",
    );
  }
  text = shaped(text, kinds, counts, range);
  if (/[eE]/.test(kinds)) text = early(text, kinds, counts, end);
  if (kinds.includes("i")) {
    const F = Number(kinds.match(/i(\d)/)?.[1] ?? 2);
    const P = F * chunks + 1;
    counts.TOGETHER = F;
    counts.LINE = P;
    counts.WEIGHT_WORDS = Math.max(Math.ceil(gc * oc / F) * N * P, gr * gc * 2 * sumWords);
    counts.X_WORDS = Math.ceil(2 * gr * or / F) * M * P;
    if (16 * (counts.WEIGHT_WORDS + counts.X_WORDS) > 49152) throw new Error("room");
    text = swap(
      text,
      "@compute",
      `fn place(row: u32, unit: u32) -> u32 {
  let t = row / unit;
  return t / $TOGETHERu * (unit * $LINEu) + row % unit * $LINEu + t % $TOGETHERu * CHUNKS;
}

@compute`,
    );
    text = swap(text, "const PITCH = $CHUNKSu + 1u;", "const PITCH = $LINEu;");
    text = swap(
      text,
      "let w_to$u = w_column$u * PITCH +",
      "let w_to$u = place(w_column$u, $UNIT_Nu) +",
    );
    text = swap(
      text,
      "let x_to$u = x_chunk$u / CHUNKS * PITCH + x_chunk$u % CHUNKS;",
      "let x_to$u = place(x_chunk$u / CHUNKS, $UNIT_Mu) + x_chunk$u % CHUNKS;\n  let x_low$u = place(x_chunk$u / CHUNKS + $TILE_ROWSu, $UNIT_Mu) + x_chunk$u % CHUNKS;",
    );
    text = swap(text, "xs[x_to$u + $TILE_ROWSu * PITCH] =", "xs[x_low$u] =");
    text = swap(
      text,
      "let at$r = (own_row + $ru * $UNIT_Mu) * PITCH + s * $UNIT_Ku / 8u;",
      "let at$r = place(own_row + $ru * $UNIT_Mu, $UNIT_Mu) + s * $UNIT_Ku / 8u;\nlet low$r = place(own_row + $ru * $UNIT_Mu + $TILE_ROWSu, $UNIT_Mu) + s * $UNIT_Ku / 8u;",
    );
    text = swap(text, "&xs, at$r + $TILE_ROWSu * PITCH, PITCH", "&xs, low$r, PITCH");
    text = swap(
      text,
      "&ws, (own_column + $cu * $UNIT_Nu) * PITCH + s * $UNIT_Ku / 8u, PITCH",
      "&ws, place(own_column + $cu * $UNIT_Nu, $UNIT_Nu) + s * $UNIT_Ku / 8u, PITCH",
    );
  }
  text = padded(text, kinds);
  const code = expand(
    link("tensor/matmul_tensor", { ...TEXTS, "tensor/matmul_tensor": text }, slotsOf(end)),
    counts,
  );
  return { name, code, tile: [tileRows, tileCols], pairs };
}

function fewVariant(
  name: string,
  kinds: string,
  t: number[],
  rows: number,
  range: number,
  end: string,
): Variant {
  const [columns = 1, stage = 64, ahead = 2, b = 1] = t;
  if (range % stage !== 0) throw new Error("range");
  const branched = b > 0;
  const chunks = stage / 8, tileCols = columns * N, sumWords = M * N / 4;
  const ragged = branched || range % (stage * ahead) !== 0;
  const counts: Record<string, number> = {
    PREPARED: Number(end === "qkv"),
    UNPREPARED: Number(end !== "qkv"),
    ...format,
    X_ROWS: rows,
    OWN_C: columns,
    STAGE: stage,
    AHEAD: ahead,
    STEPS: stage / K,
    CHUNKS: chunks,
    TILE_COLS: tileCols,
    SUM_WORDS: sumWords,
    LANES: L,
    UNIT_M: M,
    UNIT_N: N,
    UNIT_K: K,
    UNIT_HALF: N / 2,
    HALF_WORDS: N / 8,
    W_LOADS: Math.ceil(tileCols * chunks / L),
    X_LOADS: Math.ceil(rows * chunks / L),
    WEIGHT_WORDS: Math.max(tileCols * (chunks + 1), columns * sumWords),
    X_WORDS: M * (chunks + 1),
    TURNS: Math.ceil(rows * columns * N / 2 / L),
    RAGGED: Number(ragged),
    BRANCHED: Number(branched),
    STRAIGHT: Number(!branched),
    OWN_STEPS: branched ? stage / K : 1,
  };
  let text = shaped(TEXTS["tensor/matmul_tensor_few"] as string, kinds, counts, range);
  if (/[eE]/.test(kinds)) text = early(text, kinds, counts, end);
  text = padded(text, kinds);
  const code = expand(
    link("tensor/matmul_tensor_few", { ...TEXTS, "tensor/matmul_tensor_few": text }, slotsOf(end)),
    counts,
  );
  return { name, code, tile: [1e9, tileCols], pairs: "x" };
}

function variantOf(name: string, rows: number, range: number, end: string): Variant {
  const [kinds = "", ...numbers] = name.split(".");
  const t = numbers.map(Number);
  return kinds.includes("f")
    ? fewVariant(name, kinds, t, rows, range, end)
    : tensorVariant(name, kinds, t, range, end);
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
//use tensor/to_f16
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> cols: array<u32>;
@group(0) @binding(4) var<storage, read_write> tiles: array<vec4<u32>>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let n = arrayLength(&x) / 2u;
  if (id.x >= n) { return; }
  let s = scales[id.x / (cols[0] / 8u)];
  let a = x[2u * id.x] * s; let b = x[2u * id.x + 1u] * s;
  out[id.x] = packed(cut(a), cut(b));
  out[id.x + n] = packed(a - cut(a), b - cut(b));
  let r = id.x / (cols[0] / 8u); let c = id.x % (cols[0] / 8u);
  let at = ((r / ${M}u * (cols[0] / ${K}u) + c / ${K / 8}u) * 2u) * ${M * K / 8}u + r % ${M}u * ${
            K / 8
          }u + c % ${K / 8}u;
  tiles[at] = packed(cut(a), cut(b));
  tiles[at + ${M * K / 8}u] = packed(a - cut(a), b - cut(b));
}`,
        }, {}),
        format,
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
  x: Map<number, { x: GPUBuffer; scales: GPUBuffer; pairs: GPUBuffer; tiles: GPUBuffer }>;
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
      tiles = of("tiles", 4 * Math.ceil(rows / M) * M * k),
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
        entries: [x, scales, pairs, cols, tiles].map((buffer, binding) => ({
          binding,
          resource: { buffer },
        })),
      }),
    );
    pass.dispatchWorkgroups(Math.ceil(rows * k / 8 / 64));
    pass.end();
    device.queue.submit([encoder.finish()]);
    data.x.set(rows, { x, scales, pairs, tiles });
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
      const variant = variantOf(text, rows, k / split, end);
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
        tiles: GPUBuffer;
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

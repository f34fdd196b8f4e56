import { type Extra, gateUpDown, qkvAttention } from "./small_fused.ts";
import { rowKernel } from "../shaders/attention/attention_kernels.ts";
import type { Dispatch, Kernel } from "../src/gpu/kernel.ts";
import type { dispatch, kernel } from "../src/gpu/kernel.ts";

type Make = { readonly dispatch: typeof dispatch; readonly kernel: typeof kernel };
export type Vary = (layer: Dispatch[], make: Make) => Dispatch[];
type Edit = (code: string, launch: Dispatch) => string;

/** Replaces exactly `times` occurrences. */
export function sub(code: string, from: string, to: string, times = 1): string {
  const parts = code.split(from);
  if (parts.length !== times + 1) {
    throw new Error(`${parts.length - 1} times, not ${times}: ${from.slice(0, 80)}`);
  }
  return parts.join(to);
}
/** [before, middle from `start` up to `end`, rest]. */
export function cut(code: string, start: string, end: string): [string, string, string] {
  const a = code.indexOf(start);
  if (a < 0) throw new Error(`no ${start}`);
  const b = code.indexOf(end, a);
  if (b < 0) throw new Error(`no ${end}`);
  return [code.slice(0, a), code.slice(a, b), code.slice(b)];
}
const cache = new Map<string, Kernel>();
function edited(
  launch: Dispatch,
  suffix: string,
  edit: Edit,
  more: Partial<Dispatch> = {},
): Dispatch {
  const name = `${launch.kernel.name}~${suffix}`;
  const kernel = cache.getOrInsertComputed(name, () => ({
    ...launch.kernel,
    name,
    code: edit(launch.kernel.code, launch),
  }));
  return { ...launch, kernel, ...more };
}
export const on = (
  parts: readonly string[],
  suffix: string,
  edit: Edit,
  more?: (d: Dispatch) => Partial<Dispatch>,
): Vary =>
(layer) =>
  layer.map((d) =>
    parts.some((part) => d.label.endsWith(`.${part}`)) ? edited(d, suffix, edit, more?.(d)) : d
  );
const without = (part: string): Vary => (layer) =>
  layer.filter(({ label }) => !label.endsWith(`.${part}`));
export const both = (...all: Vary[]): Vary => (layer, make) =>
  all.reduce((so, vary) => vary(so, make), layer);

// ---- floors: chains of dependent kernels that do next to nothing
function nop(
  of: {
    readonly threads: number;
    readonly groups: number;
    readonly shared: number;
    readonly bindings: number;
    readonly loop?: string;
  },
): Vary {
  return (layer, { dispatch, kernel }) => {
    const { threads, groups, shared, bindings, loop } = of;
    const name = `nop_${threads}_${groups}_${shared}_${bindings}_${loop ?? ""}`;
    const names = Array.from({ length: bindings }, (_, i) => `b${i}`);
    const body = loop === "straight"
      ? Array.from(
        { length: 1500 },
        (_, i) =>
          `  v = fma(v, ${(0.5 + i / 7000).toFixed(5)}, w); w = fma(w, ${
            (0.3 + i / 9000).toFixed(5)
          }, v);`,
      ).join("\n")
      : loop === "rolled"
      ? `for (var i = 0u; i < 15u; i++) {\n${
        Array.from({ length: 100 }, (_, i) =>
          `  v = fma(v, ${(0.5 + i / 7000).toFixed(5)}, w); w = fma(w, ${
            (0.3 + i / 9000).toFixed(5)
          }, v);`).join("\n")
      }\n}`
      : "";
    const code = `${
      names.map((n, i) =>
        `@group(0) @binding(${i}) var<storage, ${i < 2 ? "read_write" : "read"}> ${n}: array<f32>;`
      ).join("\n")
    }
${shared ? `var<workgroup> s: array<f32, ${shared / 4}>;` : ""}
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) t: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  var v = b0[thread % 16u];
  var w = v * 0.5;
  ${names.slice(2).map((n) => `v += ${n}[thread % 16u];`).join("\n  ")}
  ${
      shared
        ? `s[(thread * 17u) % ${shared / 4}u] = v; workgroupBarrier(); v += s[(thread * 33u) % ${
          shared / 4
        }u];`
        : ""
    }
${body}
  if (t.x == 0u || v + w == 1234.5) { b1[thread] = v + w; }
}
`;
    const made = cache.getOrInsertComputed(
      name,
      () => kernel(name, code, { bindings: names, constants: [] }) as Kernel,
    );
    const qkv = layer.find(({ label }) => label.endsWith(".qkv"))!;
    const bufs = [qkv.buffers.out!, qkv.buffers.stream!];
    const reads = [
      qkv.buffers.sums!,
      qkv.buffers.norm_weight!,
      qkv.buffers.weights!,
      layer[1]!.buffers.rope!,
      layer[1]!.buffers.rows!,
      layer[1]!.buffers.pages!,
      layer[1]!.buffers.stats!,
    ];
    return Array.from(
      { length: 5 },
      (_, i) =>
        (dispatch as unknown as (k: Kernel, l: object) => Dispatch)(made, {
          buffers: Object.fromEntries(
            names.map((n, j) => [n, j < 2 ? bufs[(i + j) % 2] : reads[j - 2]]),
          ),
          constants: {},
          workgroups: [groups],
          label: "nop",
        }),
    );
  };
}

// ---- matmuls
/** x is asked for before the weights are. */
const holdFirst: Edit = (code) => {
  const [a, weights, rest] = cut(
    code,
    "  let at0 = min(pair",
    "  // How matmul_resident.wgsl brings x",
  );
  const end = rest.includes("var square = 0.0") ? "  {\n    var square = 0.0;" : "  if (i0 < ";
  const [none, loads, tail] = cut(rest, "  // How matmul_resident", end);
  return a + none + loads + weights + tail;
};
/** Timing only: one addend. */
const oneAddend: Edit = (code) => code.replaceAll(/^  s_(lo|hi)0_0_0 \+= .*$/gm, "");
/** Timing only: the scale is a constant. */
const noFold: Edit = (code) => {
  const [a, , rest] = cut(
    code,
    "  workgroupBarrier();\n  {\n    let left",
    "    let scale = 1.0 / sqrt",
  );
  return a + "  {\n    let sum = squares[thread % 128u] ;\n" + rest;
};
/** The lanes' sums have workgroup memory of their own. */
const ownEnding: Edit = (code) => {
  const [a, fn, rest] = cut(code, "fn add_lanes(", "\n}\n");
  let f = fn.replaceAll("staged[", "lane_sums[");
  f = sub(f, "  workgroupBarrier();\n  lane_sums", "  lane_sums");
  return a + "var<workgroup> lane_sums: array<vec4<f32>, 136>;\n" + f + rest;
};
/** The same of two floats an invocation, added by two invocations a group. */
const twoFloats: Edit = (code, { constants }) => {
  const groups = constants.GROUPS!;
  const [a, fn, rest] = cut(code, "fn add_lanes(", "\n}\n");
  const head = fn.slice(0, fn.indexOf("  workgroupBarrier();"));
  const body = `  lane_sums[thread + thread / LANES] = sums0.xy;
  workgroupBarrier();
  if (thread < GROUPS) {
    let first = thread * (LANES + 1u);
    var sum = vec2<f32>(0.0);
${Array.from({ length: 16 }, (_, l) => `    sum += lane_sums[first + ${l}u];`).join("\n")}
    let c = column + thread * step;
    if (c < half) { epilogue(split * rows + row, c, half, sum); }
  }`;
  return a + `var<workgroup> lane_sums: array<vec2<f32>, ${groups * 17}>;\n` + head + body + rest;
};
/** Sums of squares go from lane to lane of a subgroup in a tree. Timing only, other bits. */
const groups = (n: number) => (d: Dispatch): Partial<Dispatch> => ({
  constants: { ...d.constants, GROUPS: n },
  workgroups: [d.workgroups[0], d.workgroups[1] * 8 / n, d.workgroups[2]],
});
const regroup = (n: number): Edit => (code) => {
  const vectors = /var<workgroup> staged: array<vec4<f32>, (\d+)>/.exec(code)!;
  const more = Math.max(Number(vectors[1]), n * 17);
  return code.replace(vectors[0], `var<workgroup> staged: array<vec4<f32>, ${more}>`)
    .replace("const THREADS = 128u", `const THREADS = ${16 * n}u`);
};
const regroup16: Edit = (code) =>
  sub(code, "const THREADS = 128u", "const THREADS = 256u").replace(
    "array<vec2<f32>, 136>",
    "array<vec2<f32>, 272>",
  )
    .replaceAll("squares[thread", "squares[thread");
/** o: all splits' sums are asked for before it is known how many there are, and before the weights. */
const combineFirst = (vectors: boolean, first: boolean): Edit => (code) => {
  const [a, weights, rest] = cut(
    code,
    "  let at0 = min(pair",
    "  // How matmul_resident.wgsl brings",
  );
  const [, , tail] = cut(
    rest,
    "  // How matmul_resident",
    "  workgroupBarrier();\n  for (var first",
  );
  const parts = vectors ? ["v"] : ["lo", "hi"];
  const n = vectors ? 128 : 64;
  const loads = `
  let h_i = min(thread, ${n - 1}u);
  let h_quad = tile.z * 128u + h_i * ${vectors ? 1 : 2}u;
  let h_at = (row * HEADS + h_quad / HEAD) * KV_SPLITS;
  let h_own = row_list[row];
${
    Array.from({ length: 8 }, (_, c) =>
      `  let h_p${c} = (h_at + min(${c}u, KV_SPLITS - 1u)) * HEAD + h_quad % HEAD;
${
        parts.map((p, k) => `  let h_${p}${c} = parts[h_p${c} + ${k}u];`).join("\n")
      }
  let h_s${c} = stats[h_at + min(${c}u, KV_SPLITS - 1u)];`).join("\n")
  }
`;
  const use = `
  if (thread < ${n}u) {
    let splits = (visible_end(h_own) + SPLIT_CELLS - 1u) / SPLIT_CELLS;
${
    Array.from({ length: 8 }, (_, c) =>
      `    let stat${c} = select(vec2<f32>(NEGATIVE, 0.0), h_s${c}, ${c}u < splits);`).join("\n")
  }
    var top = stat0.x;
${Array.from({ length: 7 }, (_, c) => `    top = max(top, stat${c + 1}.x);`).join("\n")}
    var total = 0.0;
${parts.map((p) => `    var ${p} = vec4<f32>(0.0);`).join("\n")}
${
    Array.from({ length: 8 }, (_, c) =>
      `    let share${c} = exp(stat${c}.x - top);
    total = fma(stat${c}.y, share${c}, total);
${
        parts.map((p) =>
          `    ${p} = fma(select(vec4<f32>(0.0), h_${p}${c}, ${c}u < splits), vec4<f32>(share${c}), ${p});`
        ).join("\n")
      }`).join("\n")
  }
    if (splits > 8u) {
      // More of them, as before.
      for (var c = 8u; c < splits; c++) {
        total += stats[h_at + c].y;
${
    parts.map((p, k) => `        ${p} += parts[(h_at + c) * HEAD + h_quad % HEAD + ${k}u];`).join(
      "\n",
    )
  }
      }
    }
    let seen = splits > 0u;
${
    vectors
      ? `    staged[(h_i % 2u) * 64u + h_i / 2u] = select(vec4<f32>(0.0), v / total, seen);`
      : `    put_vec8(0u, h_i, select(vec4<f32>(0.0), lo / total, seen), select(vec4<f32>(0.0), hi / total, seen));`
  }
  }
`;
  return first ? a + loads + weights + use + tail : a + weights + loads + use + tail;
};
/** Timing only: one split. */
const noCombine: Edit = (code) => {
  const [a, , rest] = cut(
    code,
    "  // combined.wgsl for x as floats",
    "  workgroupBarrier();\n  for (var first",
  );
  return a + `  if (thread < 64u) {
    let q = (tile.z * 64u + thread) * 2u;
    let p = ((row * HEADS + q / HEAD) * KV_SPLITS) * HEAD + q % HEAD;
    put_vec8(0u, thread, parts[p], parts[p + 1u] + stats[0].x + f32(row_list[0].position));
  }
` + rest;
};

// ---- attention
/** q, k and v and the norms' weights are asked for before the row. `late`: squares after keys are asked for. */
const queriesFirst = (early: boolean): Edit => (code) => {
  let [a, norm, rest] = cut(
    code,
    "  let head = thread / NORM_LANES;",
    "  if (is_made) {\n    var sum = 0.0;",
  );
  norm = "";
  const top = `  let head = thread / NORM_LANES;
  let norm_lane = thread % NORM_LANES;
  let is_query = head < GROUP;
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;
  let gain_at = select(2u * HALF, 0u, is_query);
  let from_head = tile.x * (heads + 2u * KV_HEADS) +
    select(heads + (min(head, VALUE) - KEY) * KV_HEADS + kv_head, tile.y * GROUP + head, is_query);
  let w0 = norm_lane;
  let w1 = norm_lane + NORM_LANES;
  let pair0 = vec2<f32>(qkv[from_head * 2u * HALF + w0], qkv[from_head * 2u * HALF + HALF + w0]);
  let pair1 = vec2<f32>(qkv[from_head * 2u * HALF + w1], qkv[from_head * 2u * HALF + HALF + w1]);
  let gain0 = vec2<f32>(norm_weight[gain_at + w0], norm_weight[gain_at + HALF + w0]);
  let gain1 = vec2<f32>(norm_weight[gain_at + w1], norm_weight[gain_at + HALF + w1]);
`;
  const squares = `  if (head <= VALUE) {
    squares[thread / 4u][thread % 4u] = squares_of(squares_of(0.0, pair0), pair1);
  }
  workgroupBarrier();
`;
  const turns = `  let is_made = is_query || (has_new && head <= VALUE);
  let turn0 = rope[own.position * HALF + w0];
  let turn1 = rope[own.position * HALF + w1];
`;
  a = sub(a, "  let row = tile.x;\n", top + "  let row = tile.x;\n");
  a = sub(
    a,
    "  let kv_head = tile.y / HEAD_TILES;\n  let heads = KV_HEADS * HEAD_TILES * GROUP;\n  let newest",
    "  let newest",
  );
  a = sub(
    a,
    "  let lane = thread % LANES;\n",
    turns + (early ? squares : "") + "  let lane = thread % LANES;\n",
  );
  return a + (early ? "" : squares) + rest;
};
/** The norm's sum as a tree of fours. Other bits. */
const treeNorm: Edit = (code) => {
  const [a, , rest] = cut(code, "    var sum = 0.0;\n    let four0", "    scale = head_scale(sum)");
  return a +
    `${
      Array.from({ length: 8 }, (_, i) =>
        `    let four${i} = squares[head * (NORM_LANES / 4u) + ${i}u];`).join("\n")
    }
    let all = ((four0 + four1) + (four2 + four3)) + ((four4 + four5) + (four6 + four7));
    let sum = (all.x + all.y) + (all.z + all.w);
` + rest;
};
/** Scores by an invocation a cell and query, the largest by subgroups of 32. */
const fewerPhases: Edit = (code) => {
  let c = code;
  c = sub(
    c,
    "var<workgroup> pool: array<vec4<f32>, 1024>;",
    "var<workgroup> pool: array<vec4<f32>, 512>;\nvar<workgroup> dots: array<vec2<f32>, LANES * STRIDE>;",
  );
  c = sub(
    c,
    "var<workgroup> scores: array<vec4<f32>, SPLIT_CELLS>;",
    "var<workgroup> scores: array<vec2<f32>, SPLIT_CELLS>;",
  );
  c = sub(c, "var<workgroup> peaks: array<vec4<f32>, 8>;", "var<workgroup> peaks: array<f32, 4>;");
  c = c.replace(
    /pool\[lane \* STRIDE \+ cell \+ 0u \/ LANES\] = [^;]*;/,
    "dots[lane * STRIDE + cell] = vec2<f32>(dot0_0, dot0_1);",
  );
  c = c.replace(
    /pool\[lane \* STRIDE \+ cell \+ 256u \/ LANES\] = [^;]*;/,
    "dots[lane * STRIDE + cell + 32u] = vec2<f32>(dot1_0, dot1_1);",
  );
  const [a, , rest] = cut(
    c,
    "  workgroupBarrier();\n  if (thread < SPLIT_CELLS) {\n    var score",
    "  var total0 = vec2<f32>(0.0);",
  );
  const phase = `  workgroupBarrier();
  let query = thread / SPLIT_CELLS;
  let own_cell = thread % SPLIT_CELLS;
  var own_score = NEGATIVE;
  if (thread < GROUP * SPLIT_CELLS) {
    var score = 0.0;
${
    Array.from({ length: 8 }, (_, l) => `    score += dots[${l}u * STRIDE + own_cell][query];`)
      .join("\n")
  }
    let seen = first + own_cell >= begin && first + own_cell < end;
    own_score = select(NEGATIVE, capped(vec4<f32>(score * SCALE)).x, seen);
    let peak = subgroupMax(own_score);
    if (thread % 32u == 0u) { peaks[thread / 32u] = peak; }
  }
  workgroupBarrier();
  if (thread < GROUP * SPLIT_CELLS) {
    let peak = max(peaks[2u * query], peaks[2u * query + 1u]);
    scores[own_cell][query] = select(exp(own_score - peak), 0.0, own_score == NEGATIVE);
  }
  workgroupBarrier();

`;
  let r = rest.replaceAll(
    "let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);",
    "let weight = all;",
  );
  r = r.replaceAll(/pool\[to0 \* VEC4S \+ j\]/g, "pool[part * 2u * VEC4S + j]").replaceAll(
    /pool\[\(to0 \+ 1u\) \* VEC4S \+ j\]/g,
    "pool[(part * 2u + 1u) * VEC4S + j]",
  );
  r = r.replaceAll(
    /pool\[(\d+)u \* VEC4S \+ thread\]/g,
    (_, n) => `pool[${Number(n) / 2}u * VEC4S + thread]`,
  );
  r = r.replace("split_peak()[thread]", "max(peaks[2u * thread], peaks[2u * thread + 1u])");
  const [p, , q] = cut(a + phase + r, "fn split_peak()", "fn weighted(");
  const [s, , t] = cut(p + q, "fn weighted(", "@compute");
  return s + t;
};
/** Timing only: loads, then a sum of them all. */
const loadsOnly: Edit = (code) => {
  const [a, , rest] = cut(
    code,
    "  workgroupBarrier();\n  if (is_made) {\n    var sum = 0.0;",
    "  if (thread < GROUP * VEC4S) {\n    var sum = vec4<f32>(0.0);",
  );
  const [, , end] = cut(
    rest,
    "  if (thread < GROUP * VEC4S)",
    "    let query = row * heads + tile.y * GROUP + thread / VEC4S;",
  );
  const names = [...code.matchAll(/let (key\d_\d) =/g)].map((m) => m[1]);
  const values = [...code.matchAll(/let (value\d) =/g)].map((m) => m[1]);
  return a.replace("fn split_peak()", "fn unused_peak()") + `  if (thread < 4096u) {
    var sum = vec4<f32>(stats[0], 0.0, 0.0) + vec4<f32>(pair0, turn1) + vec4<f32>(gain0, pair1);
${names.map((n) => `    sum += ${n}.lo + ${n}.hi;`).join("\n")}
${values.map((n) => `    sum += bitcast<vec4<f32>>(${n});`).join("\n")}
` +
    end.slice(0, end.indexOf("  if (thread < GROUP) {")).replace(
      "+ split) * VEC4S + j",
      "+ split) * VEC4S % 4096u + j",
    ) + "}\n";
};
/** Timing only: keys and values are numbers. */
const noKeys: Edit = (code) =>
  code.replaceAll(
    /= load_key\((\w+), .*\);/g,
    "= PackedVec8(vec4<f32>(f32($1)), vec4<f32>(f32(thread)));",
  )
    .replaceAll(/= load_half\((.*), j\);/g, "= vec4<u32>($1);");
/** Timing only: everything ends at once. */
const atOnce: Edit = (code) =>
  sub(
    code,
    "  let begin = visible_begin(own);",
    "  if (own.position < 100000u) {\n    if (thread == 0u) { stats[tile.y * KV_SPLITS + tile.z] = vec2<f32>(1.0); }\n    return;\n  }\n  let begin = visible_begin(own);",
  );

const text = (name: string) =>
  Deno.readTextFileSync(new URL(`./old/${name}.wgsl`, import.meta.url));
const old = (part: string, name: string): Vary => on([part], "old", () => text(name));
const NAMES: Record<string, string> = {
  attention: "attention_row_f32_128_2",
  qkv: "matmul_resident_bf16_store_1_1_16_8_floats_128_8_normed_128x1_4",
  gateUp: "matmul_resident_bf16_swiglu_1_1_16_8_floats_128_8_normed_128x1_4",
  o: "matmul_resident_bf16_store_1_1_16_8_floats_64_4_combined_128",
  down: "matmul_resident_bf16_store_1_1_16_8_floats_96_6",
};
const fixedRow: Edit = (c) =>
  c.replace(
    /let own = rows\[.*\];/,
    "let own = Row(0u, 511u, arrayLength(&rows) / 1000u, 511u, 512u, 1u, vec2<u32>(), vec4<u32>());",
  );
const fixedPages: Edit = (c) => {
  const [a, , b] = cut(c, "  var four_pages = vec4", "  let own =");
  return sub(
    a + "  var four_pages = vec4<u32>(guess, guess + 1u, guess + 2u, guess + 3u);\n" + b,
    "  if (table != guess) {",
    "  if (table > 100000u) {",
  );
};
const noGuess: Edit = (c) => sub(c, "  if (table != guess) {", "  if (table + 1u > 0u) {");
const noNorm: Edit = (c) => {
  const [a, , b] = cut(c, "  if (head <= VALUE) {\n    var square", "  let lane = thread % LANES;");
  const [d, , e] = cut(a + b, "    var sum = 0.0;\n    let four0", "    for");
  return d + e;
};
/** Timing only: no phases between dots and values. */
const noPhases: Edit = (c) => {
  const [a, , b] = cut(c, "  let query = thread / SPLIT_CELLS;", "  var total0 = vec2");
  return a +
    "  let query = thread / SPLIT_CELLS;\n  if (query < GROUP) { weights[thread % SPLIT_CELLS][query] = pool[thread / 4u][thread % 4u]; }\n  workgroupBarrier();\n" +
    b;
};
const noDots: Edit = (c) => {
  const [a, , b] = cut(c, "  var dot0_0 = 0.0;", "  put_dot(");
  return a + b;
};
const oneGroup: Vary = (layer, make) =>
  layer.map((d) =>
    d.label.endsWith(".attention")
      ? {
        ...d,
        kernel: rowKernel({ heads: 16, kvHeads: 8, headDim: 128, tablePages: 32, kvDtype: "f32" }, {
          group: 1,
          normed: true,
        }) as Kernel,
        constants: { ...d.constants, HEAD_TILES: 2 },
        workgroups: [1, 16, 8] as const,
      }
      : d
  );
const ALL = ["qkv", "attention", "o", "gateUp", "down"];
export const variants = (extra: Extra): Record<string, Vary> => ({
  base: (layer) => layer,
  apart: (layer) => layer,
  "apart all old": both(...ALL.map((part) => old(part, NAMES[part]!))),
});
void [
  nop,
  without,
  holdFirst,
  oneAddend,
  noFold,
  ownEnding,
  twoFloats,
  regroup,
  combineFirst,
  queriesFirst,
  treeNorm,
  fewerPhases,
  loadsOnly,
  noKeys,
  atOnce,
  fixedRow,
  noGuess,
  noNorm,
  noPhases,
  noDots,
  oneGroup,
  regroup16,
  noCombine,
];

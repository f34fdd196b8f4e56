// Prototypes: a layer's dispatches joined, the second waiting for the words of the first. Throw-away.
import type { Dispatch, dispatch, Kernel, kernel, Operand } from "../src/gpu/kernel.ts";
import { cut, sub, type Vary } from "./small_variants.ts";

/** Prefixes all names that the text declares at module scope. */
export function prefixed(code: string, prefix: string): string {
  const names = new Set(
    [...code.matchAll(
      /^(?:@group\(0\) @binding\(\d+\) )?(?:fn|var<[^>]*>|override|const|struct|alias|@compute[^\n]*\nfn)\s+(\w+)/gm,
    )].map((m) => m[1]!),
  );
  names.delete("main");
  let out = code;
  for (const name of names) {
    out = out.replaceAll(new RegExp(`(?<![.\\w])${name}\\b`, "g"), `${prefix}${name}`);
  }
  return out.replace(
    /@compute @workgroup_size\([^)]*\)\nfn main\(\s*@builtin\(workgroup_id\) tile: vec3<u32>,\s*@builtin\(local_invocation_index\) thread: u32,?\s*\)/,
    `fn ${prefix}main(tile: vec3<u32>, thread: u32)`,
  );
}

const constants = (code: string, values: Readonly<Record<string, number>>) =>
  code.replaceAll(/^override (\w+): (u32|f32);.*$/gm, (_, n, t) => {
    const v = values[n];
    if (v === undefined) throw new Error(n);
    return `const ${n}: ${t} = ${
      t === "u32" ? `${v}u` : v === Math.floor(v) ? `${v}.0` : String(v)
    };`;
  });

const made = new Map<string, unknown>();
const EMPTY = "0xffffffffu";
export interface Extra {
  readonly buffer: (words: number, fill: number) => Operand;
}
let extra: { relays: [Operand, Operand]; sums: Operand } | undefined;
let parity = 0;

/** gateUp and down: down's workgroups have their weights on the way while they wait. */
export const gateUpDown = (
  make: Extra,
  { wait = true, reset = true }: { readonly wait?: boolean; readonly reset?: boolean } = {},
): Vary =>
(layer, { dispatch, kernel }) => {
  const g = layer.find(({ label }) => label.endsWith(".gateUp"))!;
  const d = layer.find(({ label }) => label.endsWith(".down"))!;
  extra ??= {
    relays: [make.buffer(3072, 0xffffffff), make.buffer(3072, 0xffffffff)],
    sums: make.buffer(4096, 0),
  };
  const name = `gateUpDown_${wait}_${reset}`;
  const code = (made.get(name) ?? (() => {
    let gt = prefixed(constants(g.kernel.code, g.constants), "g_");
    gt = sub(
      gt,
      "@group(0) @binding(2) var<storage, read_write> g_out: array<f32>;",
      "@group(0) @binding(2) var<storage, read_write> relay: array<atomic<u32>>;",
    );
    gt = gt.replace(
      /g_out\[(row \* g_OUT_COLS \+ g_FIRST \+ c)\] = (.*);/,
      (_, at, v) =>
        `{ let word = bitcast<u32>(${v}); atomicStore(&relay[${at}], select(word, 0x7fc00000u, word == ${EMPTY})); ${
          reset ? `last_relay[${at}] = ${EMPTY};` : ""
        } }`,
    );
    if (!gt.includes("atomicStore")) throw new Error("store");
    let dt = prefixed(constants(d.kernel.code, d.constants), "d_");
    dt = dt.replace(/@group\(0\) @binding\(1\) var<storage, read> d_x.*\n/, "");
    dt = sub(dt, "@group(0) @binding(0)", "@group(0) @binding(3)");
    dt = sub(dt, "@group(0) @binding(2)", "@group(0) @binding(4)");
    dt = dt.replaceAll("arrayLength(&d_x) / (d_COLS / 4u)", "1u");
    const [a, , b] = cut(
      dt,
      "  // How matmul_resident.wgsl brings",
      "  workgroupBarrier();\n  for (var first",
    );
    const words = [0, 1, 2, 3, 4, 5];
    dt = a + `
  let base = tile.z * 768u + thread;
${words.map((k) => `  var word${k} = atomicLoad(&relay[base + ${128 * k}u]);`).join("\n")}
  ${
      wait
        ? `for (var outer = 0u; outer < ${outers()}u; outer++) {
  if (${words.map((k) => `word${k} != ${EMPTY}`).join(" && ")}) { break; }
  for (var turn = 0u; turn < 20000u; turn++) {
    if (${words.map((k) => `word${k} != ${EMPTY}`).join(" && ")}) { break; }
${words.map((k) => `    word${k} = atomicLoad(&relay[base + ${128 * k}u]);`).join("\n")}
  } }`
        : ""
    }
${
      words.map((k) =>
        `  { let w = thread + ${
          128 * k
        }u; d_staged[((w / 4u) % 2u) * 96u + w / 8u][w % 4u] = bitcast<f32>(word${k}); }`
      ).join("\n")
    }
` + b;
    return gt + dt + `
@group(0) @binding(5) var<storage, read_write> last_relay: array<u32>;
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  if (tile.y < 384u) {
    g_main(tile, thread);
  } else {
    let t = tile.y - 384u;
    d_main(vec3<u32>(0u, t % 64u, t / 64u), thread);
  }
}
`;
  })()) as string;
  made.set(name, code);
  const bound = [
    "g_weights",
    "g_x",
    "relay",
    "d_weights",
    "d_out",
    "last_relay",
    "g_norm_weight",
    "g_sums",
    "g_stream",
  ];
  const k = (made.get(name + "k") ??
    (kernel as unknown as (n: string, c: string, d: object) => Kernel)(name, code, {
      bindings: bound,
      constants: [],
    })) as Kernel;
  made.set(name + "k", k);
  parity = 1 - parity;
  const joined = (dispatch as unknown as (k: Kernel, l: object) => Dispatch)(k, {
    buffers: {
      g_weights: g.buffers.weights,
      g_x: g.buffers.x,
      relay: extra.relays[parity],
      last_relay: extra.relays[1 - parity],
      d_weights: d.buffers.weights,
      d_out: extra.sums,
      g_norm_weight: g.buffers.norm_weight,
      g_sums: g.buffers.sums,
      g_stream: g.buffers.stream,
    },
    constants: {},
    workgroups: [1, 640],
    label: "gateUpDown",
  });
  return [...layer.slice(0, layer.indexOf(g)), joined];
};

export function fusedSums(): Operand | undefined {
  return extra?.sums;
}

export function fusedRelays(): readonly Operand[] {
  return extra?.relays ?? [];
}

function outers(): number {
  return Deno.args.includes("--tiny") ? 200 : 2;
}

let heads: { relays: [Operand, Operand] } | undefined;
let headParity = 0;
/** qkv and attention: keys and values are on their way while q is waited for. */
export const qkvAttention = (make: Extra): Vary => (layer, { dispatch, kernel }) => {
  const g = layer.find(({ label }) => label.endsWith(".qkv"))!;
  const d = layer.find(({ label }) => label.endsWith(".attention"))!;
  heads ??= { relays: [make.buffer(4096, 0xffffffff), make.buffer(4096, 0xffffffff)] };
  const name = "qkvAttention";
  const code = (made.get(name) ?? (() => {
    let gt = sub(g.kernel.code, "const THREADS = 128u", "const THREADS = 256u").replace(
      "array<vec2<f32>, 136>",
      "array<vec2<f32>, 272>",
    );
    gt = prefixed(constants(gt, { ...g.constants, GROUPS: 16 }), "g_");
    gt = sub(
      gt,
      "@group(0) @binding(2) var<storage, read_write> g_out: array<f32>;",
      "@group(0) @binding(2) var<storage, read_write> relay: array<atomic<u32>>;\n@group(0) @binding(3) var<storage, read_write> last_relay: array<u32>;\nfn put_relay(at: u32, v: f32) {\n  let word = bitcast<u32>(v);\n  atomicStore(&relay[at], select(word, 0x7fc00000u, word == 0xffffffffu));\n  last_relay[at] = 0xffffffffu;\n}\n",
    );
    gt = gt.replaceAll(/g_out\[(.*)\] = (.*);/g, (_, at, v) => `put_relay(${at}, ${v});`);
    let t = d.kernel.code;
    t = t.replaceAll(/  let pair\d = raw_pair.*\n/g, "");
    const [a, squares, b] = cut(
      t,
      "  if (head <= VALUE) {\n    var square",
      "  let lane = thread % LANES;",
    );
    const at = b.indexOf("  if (is_query || (has_new && head <= VALUE)) {");
    if (at < 0) throw new Error("made");
    const poll = `  let raw = of_qkv * 2u * HALF + norm_lane;
  var word0 = atomicLoad(&relay[raw]);
  var word1 = atomicLoad(&relay[raw + 32u]);
  var word2 = atomicLoad(&relay[raw + 64u]);
  var word3 = atomicLoad(&relay[raw + 96u]);
  if (head <= VALUE) {
  for (var outer = 0u; outer < ${outers()}u; outer++) {
    if (max(max(word0, word1), max(word2, word3)) != 0xffffffffu) { break; }
    for (var turn = 0u; turn < 20000u; turn++) {
      if (max(max(word0, word1), max(word2, word3)) != 0xffffffffu) { break; }
      word0 = atomicLoad(&relay[raw]);
      word1 = atomicLoad(&relay[raw + 32u]);
      word2 = atomicLoad(&relay[raw + 64u]);
      word3 = atomicLoad(&relay[raw + 96u]);
    }
  }
  }
  let pair0 = vec2<f32>(bitcast<f32>(word0), bitcast<f32>(word2));
  let pair1 = vec2<f32>(bitcast<f32>(word1), bitcast<f32>(word3));
`;
    t = a + b.slice(0, at) + poll + squares + b.slice(at);
    t = t.replace(/@group\(0\) @binding\(0\) var<storage, read> qkv.*\n/, "").replace(
      /fn raw_pair[\s\S]*?\n}\n/,
      "",
    );
    t = prefixed(constants(t, d.constants), "a_").replaceAll(/a_relay/g, "relay");
    for (
      const [from, to] of [[8, 18], [7, 17], [6, 16], [5, 15], [4, 14], [3, 13], [2, 12], [1, 5]]
    ) {
      t = t.replace(
        `@group(0) @binding(${from}) var<storage, ${
          from === 1 || from === 2 || from === 5 || from === 6 ? "read_write" : "read"
        }> a_`,
        `@group(0) @binding(${to}) var<storage, ${
          from === 1 || from === 2 || from === 5 || from === 6 ? "read_write" : "read"
        }> a_`,
      );
    }
    return gt + t + `
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  if (tile.y < 128u) {
    g_main(tile, thread);
  } else {
    let t = tile.y - 128u;
    a_main(vec3<u32>(0u, t % 8u, t / 8u), thread);
  }
}
`;
  })()) as string;
  made.set(name, code);
  const bound = [
    "g_weights",
    "g_x",
    "relay",
    "last_relay",
    "a_keys",
    "g_norm_weight",
    "g_sums",
    "g_stream",
    "a_values",
    "a_rows",
    "a_pages",
    "a_sums",
    "a_stats",
    "a_rope",
    "a_norm_weight",
  ];
  const k = (made.get(name + "k") ??
    (kernel as unknown as (n: string, c: string, d: object) => Kernel)(name, code, {
      bindings: bound,
      constants: [],
    })) as Kernel;
  made.set(name + "k", k);
  headParity = 1 - headParity;
  const joined = (dispatch as unknown as (k: Kernel, l: object) => Dispatch)(k, {
    buffers: {
      g_weights: g.buffers.weights,
      g_x: g.buffers.x,
      relay: heads.relays[headParity],
      last_relay: heads.relays[1 - headParity],
      a_keys: d.buffers.keys,
      g_norm_weight: g.buffers.norm_weight,
      g_sums: { buffer: g.buffers.sums!.buffer, size: g.buffers.sums!.size },
      g_stream: g.buffers.stream,
      a_values: d.buffers.values,
      a_rows: d.buffers.rows,
      a_pages: d.buffers.pages,
      a_sums: d.buffers.sums,
      a_stats: d.buffers.stats,
      a_rope: d.buffers.rope,
      a_norm_weight: d.buffers.norm_weight,
    },
    constants: {},
    workgroups: [1, 192],
    label: "qkvAttention",
  });
  return [joined, ...layer.slice(layer.indexOf(d) + 1)];
};

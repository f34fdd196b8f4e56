/** How many of an operation the device does in a second, for bench/quantized_rows.ts. */
import { storage } from "../src/gpu/arena.ts";
import type { Gpu } from "../src/gpu/device.ts";
import { dispatch, kernel } from "../src/gpu/kernel.ts";
import type { Compiler, Program } from "../src/gpu/program.ts";

const CHAINS = 8;
const UNROLL = 16;

/** Statements of chain $c in step $u; `a$c` is f32, `i$c` i32, `w` and `v` words, `f` and `g` floats. */
const OPERATIONS: Readonly<Record<string, string>> = {
  fma: "a$c = fma(a$c, f, g);",
  dot4add: "i$c += dot4I8Packed(w, bitcast<u32>(i$c));",
  "dot4+fma": "i$c += dot4I8Packed(w, bitcast<u32>(i$c)); a$c = fma(a$c, f, g);",
  "dot4+2fma":
    "i$c += dot4I8Packed(w, bitcast<u32>(i$c)); a$c = fma(a$c, f, g); b$c = fma(b$c, f, g);",
  toF32: "i$c = bitcast<i32>(f32(i$c));",
  "toF32+fma": "i$c = bitcast<i32>(f32(i$c)); a$c = fma(a$c, f, g);",
  unpack4:
    "{ let t = vec4<f32>(unpack4xI8(bitcast<u32>(i$c))); i$c = bitcast<i32>(t.x + t.y + t.z + t.w); }",
  magic4:
    "{ let u = bitcast<u32>(i$c) ^ 0x80808080u; let t = bitcast<vec4<f32>>(vec4<u32>(u & 0xffu, (u >> 8u) & 0xffu, (u >> 16u) & 0xffu, u >> 24u) | vec4<u32>(0x4b000000u)) - vec4<f32>(8388736.0); i$c = bitcast<i32>(t.x + t.y + t.z + t.w); }",
};

function textOf(operation: string): string {
  const step = (u: number) =>
    Array.from(
      { length: CHAINS },
      (_, c) =>
        operation.replaceAll("$(u)", `${u}`).replaceAll("$(c)", `${c}`).replaceAll("$u", `${u}`)
          .replaceAll("$c", `${c}`),
    ).join("\n    ");
  const chains = Array.from(
    { length: CHAINS },
    (_, c) => `var a${c} = f32(id.x + ${c}u); var b${c} = a${c}; var i${c} = i32(id.x + ${c}u);`,
  ).join("\n  ");
  const sum = Array.from({ length: CHAINS }, (_, c) => `a${c} + b${c} + f32(i${c})`).join(" + ");
  return `
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let w = x[0];
  let vw = x[1];
  let v = i32(x[2]);
  let f = bitcast<f32>(x[3]);
  let g = bitcast<f32>(x[4]);
  let n = x[5];
  ${chains}
  for (var i = 0u; i < n; i++) {
    ${Array.from({ length: UNROLL }, (_, u) => step(u)).join("\n    ")}
  }
  out[id.x] = ${sum};
}`;
}

export async function rates(
  { gpu, make, sample, say, small }: {
    readonly gpu: Gpu;
    readonly make: Compiler;
    readonly sample: (programs: readonly Program[], runs: number) => Promise<number>;
    readonly say: (text: string) => void;
    readonly small: boolean;
  },
): Promise<void> {
  const workgroups = small ? 2 : 132 * 8 * 2;
  const turns = small ? 1 : 96;
  const x = { buffer: storage(gpu.device, "x", 32) };
  const out = { buffer: storage(gpu.device, "out", 4 * 256 * workgroups) };
  const floats = new Uint32Array(new Float32Array([0.999, 0.001]).buffer);
  gpu.device.queue.writeBuffer(
    x.buffer,
    0,
    new Uint32Array([0x01020304, 0x05060708, 3, ...floats, turns, 0, 0]),
  );
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    try {
      const code = kernel(`rate_${name}`, textOf(operation), {
        bindings: ["x", "out"],
        constants: [],
      });
      const program = await make.compile([
        dispatch(code, {
          buffers: { x, out },
          constants: {},
          workgroups: [workgroups],
          label: name,
        }),
      ]);
      let ms = Infinity;
      for (let i = 0; i < (small ? 1 : 8); i++) ms = Math.min(ms, await sample([program], 4));
      const done = workgroups * 256 * turns * UNROLL * CHAINS;
      say(`rate ${name}: ${(done / ms / 1e9).toFixed(2)} T/s`);
    } catch (error) {
      say(`rate ${name} FAILED ${String(error).slice(0, 200)}`);
    }
  }
}

import { type Gpu, openGpu } from "../../src/gpu/device.ts";
import { bytesOf, dispatch, kernel, type Operand, type Plan } from "../../src/gpu/kernel.ts";
import { compiler, encode } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";

/** A GPU with the shortest ways to put numbers in, run a plan and take numbers out. */
export interface Device extends Disposable {
  readonly gpu: Gpu;
  /** A buffer holding `values` as f32. */
  floats(values: ArrayLike<number>): Operand;
  /** A buffer holding `values` as u32 (negative ones as i32). */
  words(values: ArrayLike<number>): Operand;
  /** A buffer of `count` f32 set to `value`: what a kernel must leave alone stays recognizable. */
  filled(count: number, value?: number): Operand;
  /** Compiles and runs a plan once; throws what the device reports. */
  run(plan: Plan): Promise<void>;
  readFloats(operand: Operand): Promise<Float32Array>;
  readWords(operand: Operand): Promise<Uint32Array>;
}

// Loaded weights are no copy sources, so they are read by a kernel.
const COPY_WORDS = kernel(
  "test_copy_words",
  `
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&out)) {
    out[id.x] = x[id.x];
  }
}`,
  { bindings: ["x", "out"], constants: [] },
);

// A software adapter uses its matrix units only where it is asked to.
if (!Deno.env.get("EYRIE_MATRIX_UNITS")) Deno.env.set("EYRIE_MATRIX_UNITS", "on");

/** Opens one device for a test file: `Deno.test.afterAll(() => device[Symbol.dispose]())`. */
export async function openDevice(): Promise<Device> {
  const gpu = await openGpu();
  const { compile } = compiler(gpu);

  function upload(data: Float32Array | Uint32Array): Operand {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const buffer = gpu.device.createBuffer({ label: "test", size: data.byteLength, usage });
    gpu.device.queue.writeBuffer(buffer, 0, data as Float32Array<ArrayBuffer>);
    return { buffer };
  }

  async function run(plan: Plan): Promise<void> {
    const program = await compile(plan);
    const encoder = gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    encode(pass, program);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
    gpu.check();
  }

  async function read(x: Operand): Promise<ArrayBuffer> {
    const words = bytesOf(x) / 4;
    if (x.buffer.usage & GPUBufferUsage.COPY_SRC) return await readBuffer(gpu, x);
    const out = upload(new Uint32Array(words));
    const workgroups = [Math.ceil(words / 64)] as const;
    await run([dispatch(COPY_WORDS, { buffers: { x, out }, constants: {}, workgroups })]);
    return await readBuffer(gpu, out);
  }

  return {
    gpu,
    floats: (values) => upload(Float32Array.from(values)),
    words: (values) => upload(Uint32Array.from(values, (value) => value >>> 0)),
    filled: (count, value = 0) => upload(new Float32Array(count).fill(value)),
    run,
    readFloats: async (operand) => new Float32Array(await read(operand)),
    readWords: async (operand) => new Uint32Array(await read(operand)),
    [Symbol.dispose]: () => gpu[Symbol.dispose](),
  };
}

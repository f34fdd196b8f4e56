import type { Gpu } from "./device.ts";
import type { Operand } from "./kernel.ts";
import type { Wait } from "./webgpu.ts";

/** A small buffer the host reads once a round. */
export interface Readback extends Disposable {
  /** Copy the result here within the round's submission. */
  readonly buffer: GPUBuffer;
  /**
   * Waits for the queue and returns a copy of the first `count` words, or of all.
   */
  read(count?: number, wait?: Wait): Promise<Uint32Array>;
}

/**
 * Opens a readback of `words` u32. Deno panics when the very first map of a buffer is not awaited,
 * hence the map before the first read.
 */
export async function openReadback(gpu: Gpu, words: number): Promise<Readback> {
  const buffer = readbackBuffer(gpu, words);
  await buffer.mapAsync(GPUMapMode.READ);
  buffer.unmap();
  return {
    buffer,
    async read(count = words, wait = {}): Promise<Uint32Array> {
      const range = await gpu.mapped(buffer, wait);
      const copy = new Uint32Array(range, 0, count).slice();
      buffer.unmap();
      gpu.check();
      return copy;
    },
    [Symbol.dispose](): void {
      buffer.destroy();
    },
  };
}

/** The buffer of a readback of `words` u32. */
export function readbackBuffer({ device }: Pick<Gpu, "device">, words: number): GPUBuffer {
  const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
  return device.createBuffer({ label: "readback", size: words * 4, usage });
}

/** Reads an operand (COPY_SRC): tests, `check`. Makes a buffer each time; not for rounds. */
export async function readBuffer(
  gpu: Gpu,
  { buffer, offset = 0, size = buffer.size - offset }: Operand,
): Promise<ArrayBuffer> {
  using readback = await openReadback(gpu, size / 4);
  const encoder = gpu.device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, offset, readback.buffer, 0, size);
  gpu.device.queue.submit([encoder.finish()]);
  return (await readback.read()).buffer as ArrayBuffer;
}

/** How fast the device answers and copies. A decoding round pays the readback once. */
import { medianTime } from "../../gpu/profile.ts";
import type { WebGpu } from "../../gpu/webgpu.ts";

/** Measured on an idle device; medians. */
export interface Speed {
  /** One submit of a small copy and its readback, done the way Eyrie does it. */
  readonly readbackMs: number;
  /** The same with mapAsync awaited. */
  readonly awaitedReadbackMs: number;
  /** Bytes moved a second within the device's memory, in 10^9. */
  readonly copyGBps: number;
  /** Bytes written a second from the host with writeBuffer, in 10^9. */
  readonly uploadGBps: number;
}

const READS = 64;
const AWAITED_READS = 5;
const READ_BYTES = 256;
/** Size of the copy that measures bandwidth: on hardware far above the cache size, and a few ms long. */
const COPY = {
  software: { bytes: 32 << 20, times: 1 },
  hardware: { bytes: 256 << 20, times: 32 },
};
const UPLOAD_BYTES = 4 << 20; // the piece size that weights are uploaded in
const REPEATS = 6;

/** Runs all probes; well under a second even on a software adapter. */
export async function measureSpeed(
  webgpu: WebGpu,
  device: GPUDevice,
  software: boolean,
): Promise<Speed> {
  const copy = software ? COPY.software : COPY.hardware;
  using stack = new DisposableStack();
  const buffer = (size: number, usage: number): GPUBuffer =>
    stack.adopt(device.createBuffer({ size, usage }), (made) => made.destroy());
  const { COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const small = buffer(READ_BYTES, COPY_SRC);
  const read = buffer(READ_BYTES, COPY_DST | MAP_READ);
  const request = (): void => submitCopy(device, small, read, { bytes: READ_BYTES, times: 1 });
  const readback = await measureReadback(webgpu, read, request);
  const from = buffer(copy.bytes, COPY_SRC | COPY_DST);
  const to = buffer(copy.bytes, COPY_DST);
  const piece = new Uint8Array(UPLOAD_BYTES);
  // The queue runs in order: when a read that was submitted after the work has arrived, the work is done.
  const timeOf = async (work: () => void): Promise<number> => {
    const ms = await median(REPEATS, async () => {
      work();
      request();
      await mapOnce(webgpu, read);
    });
    return ms - readback.readbackMs;
  };
  const copyMs = await timeOf(() => submitCopy(device, from, to, copy));
  const uploadMs = await timeOf(() => device.queue.writeBuffer(from, 0, piece));
  return {
    ...readback,
    copyGBps: gigabytesPerSecond(copy.bytes * copy.times, copyMs),
    uploadGBps: gigabytesPerSecond(UPLOAD_BYTES, uploadMs),
  };
}

/** 10^9 bytes a second. The time has a lower bound, because subtracting the overhead may leave nothing. */
export function gigabytesPerSecond(bytes: number, milliseconds: number): number {
  return bytes / 1e6 / Math.max(milliseconds, 1e-3);
}

type Readback = Pick<Speed, "readbackMs" | "awaitedReadbackMs">;

async function measureReadback(
  webgpu: WebGpu,
  read: GPUBuffer,
  request: () => void,
): Promise<Readback> {
  await mapAwaited(read); // Deno panics where a fresh buffer is first mapped without await
  const awaitedReadbackMs = await median(AWAITED_READS, async () => {
    request();
    await mapAwaited(read);
  });
  const readbackMs = await median(READS, async () => {
    request();
    await mapOnce(webgpu, read);
  });
  return { readbackMs, awaitedReadbackMs };
}

function submitCopy(
  device: GPUDevice,
  from: GPUBuffer,
  to: GPUBuffer,
  { bytes, times }: { readonly bytes: number; readonly times: number },
): void {
  const encoder = device.createCommandEncoder();
  for (let i = 0; i < times; i++) encoder.copyBufferToBuffer(from, 0, to, 0, bytes);
  device.queue.submit([encoder.finish()]);
}

async function mapAwaited(buffer: GPUBuffer): Promise<void> {
  await buffer.mapAsync(GPUMapMode.READ);
  buffer.unmap();
}

async function mapOnce({ mapped }: WebGpu, buffer: GPUBuffer): Promise<void> {
  await mapped(buffer);
  buffer.unmap();
}

/** Milliseconds of a run. */
async function median(count: number, run: () => void | Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return medianTime(times);
}

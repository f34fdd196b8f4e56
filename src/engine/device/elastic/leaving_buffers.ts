import { storage } from "../../../gpu/arena.ts";
import type { Gpu } from "../../../gpu/device.ts";
import { readBuffer } from "../../../gpu/readback.ts";
import { allocated } from "./allocated.ts";

/** Bytes that go to or from the host at a time: a few ms over PCIe. */
export const MOVED_BYTES: number = 16 << 20;

/** Buffers that leave the GPU and come back. */
export interface LeavingBuffers {
  readonly bytes: number;
  /**
   * Copies the next chunk to the host; true once all chunks are there. Each is copied only once, because nothing writes
   * to weights.
   */
  copyOut(): Promise<boolean>;
  /** Frees the buffers on the GPU. Programs that bind them must not run any more. */
  leave(): void;
  /**
   * Allocates them again.
   *
   * @throws OutOfMemory, and then none of them is allocated.
   */
  allocate(): Promise<void>;
  /** Writes the next chunk back; true once all are as they were and bound again. */
  copyIn(): boolean;
}

interface Leaving {
  /** The buffer that plans name. */
  readonly bound: GPUBuffer;
  now: GPUBuffer;
  readonly kept: boolean;
  /** Its contents, as far as they are on the host. */
  host: Uint8Array<ArrayBuffer>;
}

/**
 * @param buffers.kept buffers whose contents are restored; all are COPY_SRC.
 * @param buffers.dropped buffers that come back as zeros.
 * @param replace binds buffer `to` in the place of `from`.
 */
export function leavingBuffers(
  gpu: Gpu,
  { kept, dropped }: {
    readonly kept: readonly GPUBuffer[];
    readonly dropped: readonly GPUBuffer[];
  },
  replace: (from: GPUBuffer, to: GPUBuffer | undefined) => void,
): LeavingBuffers {
  const { device } = gpu;
  const all: Leaving[] = [
    ...kept.map((bound) => ({ bound, now: bound, kept: true, host: new Uint8Array() })),
    ...dropped.map((bound) => ({ bound, now: bound, kept: false, host: new Uint8Array() })),
  ];
  const chunks = all.flatMap(({ kept, bound: { size } }, at) =>
    !kept ? [] : Array.from({ length: Math.ceil(size / MOVED_BYTES) }, (_, i) => {
      const offset = i * MOVED_BYTES;
      return { at, offset, size: Math.min(MOVED_BYTES, size - offset) };
    })
  );
  let out = 0;
  let back = 0;
  return {
    bytes: all.reduce((sum, { bound }) => sum + bound.size, 0),
    async copyOut() {
      const chunk = chunks[out];
      if (chunk) {
        const one = all[chunk.at] as Leaving;
        const { now } = one;
        const { offset, size } = chunk;
        if (offset === 0) one.host = new Uint8Array(now.size);
        one.host.set(new Uint8Array(await readBuffer(gpu, { buffer: now, offset, size })), offset);
        out++;
      }
      return out === chunks.length;
    },
    leave() {
      for (const { bound, now } of all) {
        replace(bound, undefined);
        now.destroy();
      }
    },
    async allocate() {
      const made: GPUBuffer[] = [];
      try {
        for (const { bound: { label, size } } of all) {
          made.push(await allocated(gpu, () => storage(device, label, size)));
        }
      } catch (error) {
        for (const each of made) each.destroy();
        throw error;
      }
      for (const [i, each] of all.entries()) each.now = made[i] as GPUBuffer;
      back = 0;
    },
    copyIn() {
      const chunk = chunks[back];
      if (chunk) {
        const { now, host } = all[chunk.at] as Leaving;
        const { offset, size } = chunk;
        device.queue.writeBuffer(now, offset, host, offset, size);
        back++;
      }
      if (back < chunks.length) return false;
      for (const { bound, now } of all) replace(bound, now);
      return true;
    },
  };
}

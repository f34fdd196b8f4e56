import { storage } from "../../../gpu/arena.ts";
import type { Gpu } from "../../../gpu/device.ts";
import { allocated } from "./allocated.ts";

/** A page goes from one number to another. */
export interface PageMove {
  readonly from: number;
  readonly to: number;
}

/** Buffers of pages, [pages, bytes of a page], whose number of pages changes. */
export interface PagedBuffers {
  /** Bytes that a page takes in all of them. */
  readonly pageBytes: number;
  /** Pages that all of them have. */
  readonly pages: number;
  /**
   * Reallocates the next buffer that does not have `pages` pages, with as much of its contents as fits; true once all
   * have `pages` pages. For a moment the old and the new buffer both exist.
   *
   * @throws OutOfMemory, and then the buffer is unchanged.
   */
  resize(pages: number): Promise<boolean>;
  /** Copies pages in all buffers. */
  move(moves: readonly PageMove[]): void;
}

/**
 * @param buffers as they are bound in plans, of `pages` pages each.
 * @param replace binds buffer `to` in the place of `from`.
 */
export function pagedBuffers(
  gpu: Gpu,
  buffers: readonly GPUBuffer[],
  { pages: begin, replace }: {
    readonly pages: number;
    readonly replace: (from: GPUBuffer, to: GPUBuffer) => void;
  },
): PagedBuffers {
  const { device } = gpu;
  const all = buffers.map((bound) => ({
    bound,
    now: bound,
    bytes: bound.size / begin,
    pages: begin,
  }));
  const widest = Math.max(0, ...all.map(({ bytes }) => bytes));
  return {
    pageBytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    get pages() {
      return Math.min(...all.map(({ pages }) => pages));
    },
    async resize(pages) {
      const next = all.find((one) => one.pages !== pages);
      if (next === undefined) return true;
      const { bound, now, bytes } = next;
      const made = await allocated(gpu, () => storage(device, bound.label, pages * bytes));
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(now, 0, made, 0, Math.min(pages, next.pages) * bytes);
      device.queue.submit([encoder.finish()]);
      replace(bound, made);
      now.destroy();
      Object.assign(next, { now: made, pages });
      return all.every((one) => one.pages === pages);
    },
    move(moves) {
      // WebGPU copies nothing within a buffer: pages go by way of another one.
      const between = storage(device, "moved pages", moves.length * widest);
      const encoder = device.createCommandEncoder();
      for (const { now, bytes } of all) {
        for (const [i, { from }] of moves.entries()) {
          encoder.copyBufferToBuffer(now, from * bytes, between, i * widest, bytes);
        }
        for (const [i, { to }] of moves.entries()) {
          encoder.copyBufferToBuffer(between, i * widest, now, to * bytes, bytes);
        }
      }
      device.queue.submit([encoder.finish()]);
      between.destroy();
    },
  };
}

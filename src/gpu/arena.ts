/**
 * Few large buffers for many operands. wgpu cuts buffers out of blocks of up to 256 MiB (gpu-allocator
 * with the memory hint Performance), so a buffer of 224 MiB leaves 32 MiB of its block unused. A buffer
 * larger than a block is an allocation of its own and wastes nothing.
 *
 * wgpu tracks usage per buffer, so a dispatch that writes to one operand cannot read another operand of
 * the same buffer.
 */
import type { Gpu } from "./device.ts";
import type { Operand } from "./kernel.ts";

/** Allocates operands. Each is filled with zeros and bound with its own length. */
export interface Arena {
  /** @param bytes a multiple of 4. */
  allocate(label: string, bytes: number): Operand;
}

/** An arena with all its buffers. */
export interface OpenArena extends Arena {
  readonly buffers: readonly GPUBuffer[];
}

/** Where an item is placed. */
export interface Place {
  readonly buffer: number;
  /** Bytes, a multiple of ALIGNMENT. */
  readonly offset: number;
}

export interface ArenaPlan {
  /** Bytes of each buffer: it ends with its last item. */
  readonly buffers: readonly number[];
  /** Places of the items, in their order. */
  readonly places: readonly Place[];
}

export interface BufferSizes {
  /** Most bytes of a buffer: the adapter's maxBufferSize. */
  readonly limit: number;
  /** Bytes after which a new buffer is begun. */
  readonly most: number;
  /** A buffer of at most this many bytes is joined with the one before or after it. */
  readonly least: number;
}

/** Binding offsets that every adapter accepts: the largest minStorageBufferOffsetAlignment there is. */
export const ALIGNMENT = 256;

/** Bytes of wgpu's blocks; buffers that are smaller share one. */
const BLOCK = 256 * 2 ** 20;
/**
 * Together with a block that may be joined this is 1 GiB, the largest allocation that Vulkan promises
 * (maxMemoryAllocationSize). A full or fragmented card is more likely to have room for several of these
 * than for one buffer with all weights.
 */
const MAX = 768 * 2 ** 20;

/** Buffer sizes for an adapter. */
export function bufferSizes(
  { maxBufferSize }: Pick<GPUSupportedLimits, "maxBufferSize">,
): BufferSizes {
  return { limit: maxBufferSize, most: MAX, least: BLOCK };
}

/**
 * Places items one after the other, in their order. Where the limit allows it, every buffer has more than
 * `least` bytes, unless there is only one.
 */
export function planArena(
  items: readonly number[],
  { limit, most, least }: BufferSizes,
): ArenaPlan {
  const buffers: number[][] = [];
  for (const run of runsOf(items, Math.min(most, limit))) {
    const before = buffers.at(-1);
    const small = before && Math.min(extent(before), extent(run)) <= least;
    if (small && extent([...before, ...run]) <= limit) before.push(...run);
    else buffers.push(run);
  }
  return { buffers: buffers.map(extent), places: buffers.flatMap(placesIn) };
}

/** Groups items into runs of at most `most` bytes; a larger item has a run of its own. */
function runsOf(items: readonly number[], most: number): number[][] {
  const runs: number[][] = [];
  let end = Infinity;
  for (const bytes of items) {
    const offset = aligned(end);
    if (offset + bytes <= most) {
      runs.at(-1)?.push(bytes);
      end = offset + bytes;
    } else {
      runs.push([bytes]);
      end = bytes;
    }
  }
  return runs;
}

/** Bytes of items one after the other. */
function extent(items: readonly number[]): number {
  return items.reduce((end, bytes) => aligned(end) + bytes, 0);
}

function placesIn(items: readonly number[], buffer: number): Place[] {
  let end = 0;
  return items.map((bytes) => {
    const offset = aligned(end);
    end = offset + bytes;
    return { buffer, offset };
  });
}

/** Records the sizes asked for and allocates nothing: its operands must not be bound. */
export function measuringArena(): Arena & { readonly items: readonly number[] } {
  const items: number[] = [];
  return {
    items,
    allocate(_label, bytes) {
      items.push(bytes);
      return { size: bytes } as Operand;
    },
  };
}

/** Makes the buffers for `items`; the caller must then allocate these items in this order. */
export function openArena(
  { device, limits }: Gpu,
  label: string,
  items: readonly number[],
): OpenArena {
  const { buffers: sizes, places } = planArena(items, bufferSizes(limits));
  const buffers = sizes.map((size, i) => storage(device, `${label}.${i}`, size));
  const operands = places.map(({ buffer, offset }, i) => (
    { buffer: buffers[buffer] as GPUBuffer, offset, size: items[i] as number }
  ));
  let next = 0;
  return {
    buffers,
    allocate(label, bytes) {
      const operand = operands[next++];
      if (operand?.size === bytes) return { ...operand, label };
      throw new Error(`${label} wants ${bytes} bytes, ${operand?.size} were measured`);
    },
  };
}

/** Allocates a buffer for each operand. */
export function separateBuffers({ device }: Pick<Gpu, "device">): Arena {
  return { allocate: (label, bytes) => ({ buffer: storage(device, label, bytes) }) };
}

/** A storage buffer of zeros that can be written and copied. */
export function storage(device: GPUDevice, label: string, size: number): GPUBuffer {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  return device.createBuffer({ label, size, usage });
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

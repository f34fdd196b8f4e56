/**
 * Few large buffers for many operands. wgpu cuts buffers out of blocks of up to 256 MiB (gpu-allocator
 * with the memory hint Performance), so a buffer of 224 MiB leaves 32 of its block unused. A buffer
 * larger than a block is an allocation of its own and wastes nothing.
 *
 * wgpu keeps account of uses by the buffer: a dispatch that writes into a slab can read nothing else
 * of it.
 */
import type { Gpu } from "./device.ts";
import type { Operand } from "./kernel.ts";

/** Where weights get their operands: zeros, each bound by its own length. */
export interface Room {
  /** @param bytes a multiple of 4. */
  take(label: string, bytes: number): Operand;
}

/** Where an item lies. */
export interface Place {
  readonly slab: number;
  /** Bytes, a multiple of ALIGNMENT. */
  readonly offset: number;
}

export interface SlabPlan {
  /** Bytes of each slab: it ends with its last item. */
  readonly slabs: readonly number[];
  /** Of the items, in their order. */
  readonly places: readonly Place[];
}

export interface SlabSizes {
  /** No slab has more bytes: the adapter's maxBufferSize. */
  readonly limit: number;
  /** Where the next slab begins. */
  readonly most: number;
  /** A slab of so few bytes joins the one before or after it. */
  readonly least: number;
}

/** What every adapter can bind at: the largest minStorageBufferOffsetAlignment there is. */
export const ALIGNMENT = 256;

/** Smaller buffers share wgpu's blocks. */
const BLOCK = 256 * 2 ** 20;
/**
 * 1 GiB with the block that may join it, the largest allocation that Vulkan promises
 * (maxMemoryAllocationSize). A full or fragmented card has room for several of these sooner than
 * for one as large as all weights.
 */
const MOST = 768 * 2 ** 20;

/** What suits an adapter. */
export function slabSizes({ maxBufferSize }: Pick<GPUSupportedLimits, "maxBufferSize">): SlabSizes {
  return { limit: maxBufferSize, most: MOST, least: BLOCK };
}

/**
 * Places items one after the other, in their order. Where the limit allows it, slabs have more than
 * `least` bytes, or there is but one.
 */
export function planSlabs(items: readonly number[], { limit, most, least }: SlabSizes): SlabPlan {
  const slabs: number[][] = [];
  for (const run of runsOf(items, Math.min(most, limit))) {
    const before = slabs.at(-1);
    const small = before && Math.min(extent(before), extent(run)) <= least;
    if (small && extent([...before, ...run]) <= limit) before.push(...run);
    else slabs.push(run);
  }
  return { slabs: slabs.map(extent), places: slabs.flatMap(placesIn) };
}

/** Runs of items that `most` bytes hold; an item beyond them has a run of its own. */
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

function placesIn(items: readonly number[], slab: number): Place[] {
  let end = 0;
  return items.map((bytes) => {
    const offset = aligned(end);
    end = offset + bytes;
    return { slab, offset };
  });
}

/** A room that only writes down what is taken: its operands lie nowhere, nothing may be bound to them. */
export function openMeasure(): Room & { readonly items: readonly number[] } {
  const items: number[] = [];
  return {
    items,
    take(_label, bytes) {
      items.push(bytes);
      return {} as Operand;
    },
  };
}

/** Makes the slabs for `items`, which are then taken in their order. */
export function openSlabs({ device, limits }: Gpu, label: string, items: readonly number[]): Room {
  const { slabs, places } = planSlabs(items, slabSizes(limits));
  const buffers = slabs.map((size, i) => storage(device, `${label}.${i}`, size));
  const operands = places.map(({ slab, offset }, i) => (
    { buffer: buffers[slab] as GPUBuffer, offset, size: items[i] as number }
  ));
  let next = 0;
  return {
    take(label, bytes) {
      const operand = operands[next++];
      if (operand?.size === bytes) return { ...operand, label };
      throw new Error(`${label} takes ${bytes} bytes, ${operand?.size} were measured`);
    },
  };
}

/** A room of a buffer each. */
export function buffersApart({ device }: Pick<Gpu, "device">): Room {
  return { take: (label, bytes) => ({ buffer: storage(device, label, bytes) }) };
}

function storage(device: GPUDevice, label: string, size: number): GPUBuffer {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  return device.createBuffer({ label, size, usage });
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

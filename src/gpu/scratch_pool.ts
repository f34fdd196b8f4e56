/** Buffers for values that only their graph reads: a value occupies one from its first write to its last read. */
import type { Gpu } from "./device.ts";
import type { Operand } from "./kernel.ts";

/** Most passes over the plans with fixed buffer sizes: each pass adds the buffers that the one before lacked. */
const MAX_PASSES = 8;

/** A value's size, and the first and the last operation of a list that need it. */
export interface Lifetime {
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
}

/**
 * Buffers of a decoder's scratch memory. Plans are first laid out on paper, where buffers grow as values need it.
 * Then their sizes are fixed, and a value that fits no free buffer gets an additional one.
 *
 * From then on a list of operations gets the same places whenever it is placed, whatever was placed in between. The
 * parts of a round are compiled at different times, and one part reads what another leaves in scratch memory.
 *
 * A value has a whole buffer, not a part of one: a dispatch cannot write to a buffer that it also reads.
 */
export class ScratchPool {
  readonly #gpu: Gpu;
  readonly #label: string;
  readonly #sizes: number[] = [];
  /** How many buffers there were when sizes were fixed last; undefined while buffers still grow. */
  #fixedCount: number | undefined;
  #buffers: GPUBuffer[] | undefined;

  constructor(gpu: Gpu, label: string) {
    this.#gpu = gpu;
    this.#label = label;
  }

  /**
   * Lays out plans on paper, then makes the buffers, so that the same plans find room in buffers of fixed sizes.
   *
   * @param layouts each places the values of a plan; all are called several times.
   */
  allocate(layouts: readonly (() => void)[] = []): void {
    const place = () => {
      for (const layout of layouts) layout();
    };
    place();
    for (let pass = 0; pass < MAX_PASSES && this.#fixedCount !== this.#sizes.length; pass++) {
      this.#fixedCount = this.#sizes.length;
      place();
    }
    this.#fixedCount = this.#sizes.length;
    this.#buffers = this.#sizes.map((_, place) => this.#create(place));
  }

  /**
   * A place for each value; no two values that are needed at the same time share one. The largest values choose first,
   * so that the few large buffers are not taken by small ones (greedy by size, https://arxiv.org/abs/2001.03288).
   */
  place(values: readonly Lifetime[]): number[] {
    const fixedCount = this.#fixedCount;
    const places = Array<number>(values.length).fill(-1);
    const taken: Lifetime[][] = [];
    const isFree = (place: number, { first, last }: Lifetime) =>
      !taken[place]?.some((other) => other.first <= last && first <= other.last);
    const largestFirst = values.map((value, i) => ({ value, i }))
      .toSorted((a, b) => b.value.bytes - a.value.bytes);
    for (const { value, i } of largestFirst) {
      const free = this.#sizes.map((size, place) => ({ size, place }))
        .filter(({ place }) => isFree(place, value));
      // Additional buffers come last, in the order in which they were made: later ones change no earlier choice.
      const bySize = fixedCount === undefined ? free.toSorted((a, b) => a.size - b.size) : [
        ...free.filter(({ place }) => place < fixedCount).toSorted((a, b) => a.size - b.size),
        ...free.filter(({ place }) => place >= fixedCount),
      ];
      const fits = bySize.find(({ size }) => size >= value.bytes) ??
        (fixedCount === undefined ? bySize.at(-1) : undefined);
      const place = fits?.place ?? this.#add(value.bytes);
      if (fixedCount === undefined) {
        this.#sizes[place] = Math.max(this.#sizes[place] as number, value.bytes);
      }
      places[i] = place;
      (taken[place] ??= []).push(value);
    }
    return places;
  }

  /** Adds a buffer and returns its place. */
  #add(bytes: number): number {
    const place = this.#sizes.push(bytes) - 1;
    this.#buffers?.push(this.#create(place));
    return place;
  }

  /** The first `bytes` bytes of a buffer. */
  operand(place: number, bytes: number): Operand {
    const buffer = this.#buffers?.[place] ?? { label: this.#name(place), size: bytes } as GPUBuffer;
    return { buffer, offset: 0, size: bytes };
  }

  #create(place: number): GPUBuffer {
    return this.#gpu.device.createBuffer({
      label: this.#name(place),
      size: this.#sizes[place] as number,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
  }

  #name(place: number): string {
    return `${this.#label}.${place}`;
  }
}

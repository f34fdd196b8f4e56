/** Buffers for values that only their graph reads: a value has one from its first write to its last read. */
import type { Gpu } from "./device.ts";
import type { Operand } from "./kernel.ts";

/** Passes over the plans of fixed sizes: each adds the buffers that were missing in the one before. */
const MOST_PASSES = 8;

/**
 * Buffers of a decoder's scratch memory. Plans are first laid out on paper, where buffers grow as values need them.
 * Afterwards their sizes are fixed, and a value that none has room for gets a further buffer.
 *
 * From then on a list of operations gets the same places whenever it is placed, whatever was placed in between. The
 * parts of a round are compiled at different times, and one part reads what another leaves in scratch memory.
 *
 * Values have whole buffers, not parts of one: a dispatch cannot write to a buffer that it reads elsewhere.
 */
export class ScratchPool {
  readonly #gpu: Gpu;
  readonly #label: string;
  readonly #sizes: number[] = [];
  /** How many of them are laid out; undefined while they grow. */
  #laidOut: number | undefined;
  #buffers: GPUBuffer[] | undefined;

  constructor(gpu: Gpu, label: string) {
    this.#gpu = gpu;
    this.#label = label;
  }

  /**
   * Lays out plans, so that the same plans find room in buffers of fixed sizes, and makes the buffers.
   *
   * @param layouts each places the values of a plan; they are called several times.
   */
  allocate(layouts: readonly (() => void)[] = []): void {
    const place = () => {
      for (const layout of layouts) layout();
    };
    place();
    for (let pass = 0; pass < MOST_PASSES && this.#laidOut !== this.#sizes.length; pass++) {
      this.#laidOut = this.#sizes.length;
      place();
    }
    this.#laidOut = this.#sizes.length;
    this.#buffers = this.#sizes.map((_, place) => this.#create(place));
  }

  /** The place of a buffer of at least so many bytes, none of the `taken` places. */
  place(bytes: number, taken: ReadonlySet<number>): number {
    const free = this.#sizes.map((size, place) => ({ size, place }))
      .filter(({ place }) => !taken.has(place));
    const laidOutCount = this.#laidOut;
    if (laidOutCount === undefined) {
      const bySize = free.toSorted((a, b) => a.size - b.size);
      const fits = bySize.find(({ size }) => size >= bytes) ?? bySize.at(-1);
      if (fits) {
        this.#sizes[fits.place] = Math.max(fits.size, bytes);
        return fits.place;
      }
      return this.#sizes.push(bytes) - 1;
    }
    // Further buffers come last, in the order in which they were made: later ones change no earlier choice.
    const laidOut = free.filter(({ place }) => place < laidOutCount)
      .toSorted((a, b) => a.size - b.size);
    const further = free.filter(({ place }) => place >= laidOutCount);
    const fits = [...laidOut, ...further].find(({ size }) => size >= bytes);
    if (fits) return fits.place;
    const place = this.#sizes.push(bytes) - 1;
    this.#buffers?.push(this.#create(place));
    return place;
  }

  /** So many bytes of a buffer. */
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

/** Buffers for values that nobody outside their graph reads: a value has one from its first write to its last read. */
import type { Gpu } from "./device.ts";
import type { Operand } from "./kernel.ts";

/**
 * Buffers of a decoder's scratch memory. Until `allocate`, plans are laid out on paper: buffers grow as values need
 * them. Afterwards their sizes are fixed, and a value that none has room for gets a further buffer.
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
  /** Of the buffers that were laid out before `allocate`. */
  #laidOut = 0;
  #buffers: GPUBuffer[] | undefined;

  constructor(gpu: Gpu, label: string) {
    this.#gpu = gpu;
    this.#label = label;
  }

  /** Makes the buffers, as large as the plans so far need them. */
  allocate(): void {
    this.#laidOut = this.#sizes.length;
    this.#buffers = this.#sizes.map((_, place) => this.#create(place));
  }

  /** The place of a buffer of at least so many bytes, none of the `taken` places. */
  place(bytes: number, taken: ReadonlySet<number>): number {
    const free = this.#sizes.map((size, place) => ({ size, place }))
      .filter(({ place }) => !taken.has(place));
    if (this.#buffers === undefined) {
      const bySize = free.toSorted((a, b) => a.size - b.size);
      const fits = bySize.find(({ size }) => size >= bytes) ?? bySize.at(-1);
      if (fits) {
        this.#sizes[fits.place] = Math.max(fits.size, bytes);
        return fits.place;
      }
    }
    // Further buffers come last, in the order in which they were made: later ones change no earlier choice.
    const laidOut = free.filter(({ place }) => place < this.#laidOut)
      .toSorted((a, b) => a.size - b.size);
    const further = free.filter(({ place }) => place >= this.#laidOut);
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

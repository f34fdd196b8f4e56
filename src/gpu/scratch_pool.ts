/** Buffers for values that nobody outside their graph reads: a value has one from its first write to its last read. */
import type { Gpu } from "./device.ts";
import type { Operand } from "./kernel.ts";

/**
 * Buffers of a decoder's scratch memory. Until `allocate`, plans are laid out on paper: buffers grow as values need
 * them. Afterwards they are what they are, and a value that none has room for gets a further one.
 *
 * Values have whole buffers, not parts of one: a dispatch cannot write to a buffer that it reads elsewhere.
 */
export class ScratchPool {
  readonly #gpu: Gpu;
  readonly #label: string;
  readonly #sizes: number[] = [];
  #buffers: GPUBuffer[] | undefined;

  constructor(gpu: Gpu, label: string) {
    this.#gpu = gpu;
    this.#label = label;
  }

  /** Makes the buffers, as large as the plans so far need them. */
  allocate(): void {
    this.#buffers = this.#sizes.map((_, place) => this.#create(place));
  }

  /** The place of a buffer of at least so many bytes, none of the `taken` places. */
  place(bytes: number, taken: ReadonlySet<number>): number {
    const free = this.#sizes.map((size, place) => ({ size, place }))
      .filter(({ place }) => !taken.has(place)).toSorted((a, b) => a.size - b.size);
    const fits = free.find(({ size }) => size >= bytes);
    if (fits) return fits.place;
    const largest = free.at(-1);
    if (this.#buffers === undefined && largest) {
      this.#sizes[largest.place] = bytes;
      return largest.place;
    }
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

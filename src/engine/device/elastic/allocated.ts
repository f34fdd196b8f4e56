import { type Gpu, OutOfMemory } from "../../../gpu/device.ts";

/**
 * Returns what `make` allocates.
 *
 * @throws OutOfMemory if the adapter has no room for it; everything else continues.
 */
export async function allocated<T>({ device }: Pick<Gpu, "device">, make: () => T): Promise<T> {
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("validation"); // where a driver's limit is what it is too large for
  const made = make();
  const errors = [await device.popErrorScope(), await device.popErrorScope()];
  const error = errors.find((each) => each !== null);
  if (error) throw new OutOfMemory(`The GPU reported: ${error.message}`);
  return made;
}

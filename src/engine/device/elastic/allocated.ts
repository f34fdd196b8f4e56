import { type Gpu, OutOfMemory } from "../../../gpu/device.ts";

/**
 * What `make` allocates.
 *
 * @throws OutOfMemory where the adapter has no room for it, which ends nothing else.
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

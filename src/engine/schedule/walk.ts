/**
 * Work that yields the promises it waits for. So the same scheduler runs on a device, whose results
 * come later, and in simulated time, where all are there at once.
 */
export type Walk<T> = Generator<Promise<unknown>, T, unknown>;

/** The value, waited for where it is not there yet. */
export function* settled<T>(value: T | Promise<T>): Walk<T> {
  return value instanceof Promise ? (yield value) as T : value;
}

/** Runs the work to its end. */
export async function whenSettled<T>(walk: Walk<T>): Promise<T> {
  let next = walk.next();
  while (!next.done) {
    let value: unknown;
    try {
      value = await next.value;
    } catch (error) {
      next = walk.throw(error);
      continue;
    }
    next = walk.next(value);
  }
  return next.value;
}

/**
 * Runs the work to its end without a turn of the event loop.
 *
 * @throws Error where it would have to wait: a bug.
 */
export function atOnce<T>(walk: Walk<T>): T {
  const { done, value } = walk.next();
  if (!done) throw new Error("simulated time waits for nothing");
  return value;
}

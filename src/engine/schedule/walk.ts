/**
 * Work that yields the promises it waits for, and undefined where it only lets others run. So the same
 * scheduler runs on a device, whose results come later, and in simulated time, where all are there at once.
 */
export type Walk<T> = Generator<Promise<unknown> | undefined, T, unknown>;

/** The value, waited for where it is not there yet. */
export function* settled<T>(value: T | Promise<T>): Walk<T> {
  return value instanceof Promise ? (yield value) as T : value;
}

/**
 * Runs the work to its end.
 *
 * @param pause waits where the work lets others run.
 */
export async function whenSettled<T>(walk: Walk<T>, pause: () => Promise<void>): Promise<T> {
  let next = walk.next();
  while (!next.done) {
    let value: unknown;
    try {
      value = await (next.value ?? pause());
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
  let next = walk.next();
  while (!next.done) {
    if (next.value !== undefined) throw new Error("simulated time waits for nothing");
    next = walk.next();
  }
  return next.value;
}

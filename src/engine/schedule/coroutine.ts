/**
 * A function that yields the promises it waits for. An async function returns to its caller at every await; a
 * coroutine does so only where a result is not there yet. So the same scheduler runs on a device, whose results come
 * later, and in simulated time, where all are there at once.
 */
export type Coroutine<T> = Generator<Promise<unknown>, T, unknown>;

/** The value, waited for where it is not there yet. */
export function* settled<T>(value: T | Promise<T>): Coroutine<T> {
  return value instanceof Promise ? (yield value) as T : value;
}

/** Runs a coroutine to its end. */
export async function runAsync<T>(coroutine: Coroutine<T>): Promise<T> {
  let next = coroutine.next();
  while (!next.done) {
    let value: unknown;
    try {
      value = await next.value;
    } catch (error) {
      next = coroutine.throw(error);
      continue;
    }
    next = coroutine.next(value);
  }
  return next.value;
}

/**
 * Runs a coroutine to its end without a turn of the event loop.
 *
 * @throws Error where it would have to wait: a bug.
 */
export function runSync<T>(coroutine: Coroutine<T>): T {
  const { done, value } = coroutine.next();
  if (!done) throw new Error("simulated time waits for nothing");
  return value;
}

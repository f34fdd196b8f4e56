/** The values of several generators as they come, each with the number of its generator. */
export async function* merged<T>(
  sources: readonly AsyncGenerator<T, void, void>[],
): AsyncGenerator<readonly [index: number, value: T], void, void> {
  const next = async (index: number) => {
    const { value, done } = await (sources[index] as AsyncGenerator<T, void, void>).next();
    return { index, value, done };
  };
  const pending = new Map(sources.map((_, index) => [index, next(index)]));
  try {
    while (pending.size > 0) {
      const { index, value, done } = await Promise.race(pending.values());
      if (done) pending.delete(index);
      else {
        pending.set(index, next(index));
        yield [index, value as T];
      }
    }
  } finally {
    for (const waiting of pending.values()) waiting.catch(() => {});
    for (const source of sources) source.return().catch(() => {});
  }
}

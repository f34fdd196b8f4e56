/** The values of several generators as they come, each with the number of its generator. */
export async function* merged<T>(
  sources: readonly AsyncGenerator<T, void, void>[],
): AsyncGenerator<readonly [index: number, value: T], void, void> {
  const next = (index: number) => {
    const source = sources[index] as AsyncGenerator<T, void, void>;
    const coming = source.next().then(({ value, done }) => ({ index, value, done }));
    // While nobody iterates, a source may fail; who iterates next is told.
    coming.catch(() => {});
    return coming;
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
    for (const source of sources) source.return().catch(() => {});
  }
}

/** Whether the engine's thread answers, asked again and again. */
export interface Heartbeat {
  /** For how long the question that is open has waited for its answer, ms; 0 where none is open. */
  readonly silentMs: number;
  /** Why the last question was not answered; undefined where it was. */
  readonly failure: Error | undefined;
  /** Asks, unless a question is open. */
  ask(): void;
  /** Asks and waits for the answer, at most `ms`. */
  check(ms: number): Promise<void>;
}

/**
 * @param ping resolves when the engine's thread has answered.
 * @param onFailure called with the first of failures that follow each other.
 */
export function openHeartbeat(
  ping: () => Promise<unknown>,
  onFailure: (error: Error) => void,
): Heartbeat {
  let open: { readonly since: number; readonly answered: Promise<void> } | undefined;
  let failure: Error | undefined;

  async function answered(): Promise<void> {
    try {
      await ping();
      failure = undefined;
    } catch (error) {
      const before = failure;
      failure = error instanceof Error ? error : new Error(String(error));
      if (before === undefined) onFailure(failure);
    }
    open = undefined;
  }

  function ask(): Promise<void> {
    open ??= { since: performance.now(), answered: answered() };
    return open.answered;
  }

  return {
    get silentMs() {
      return open === undefined ? 0 : performance.now() - open.since;
    },
    get failure() {
      return failure;
    },
    ask: () => void ask(),
    async check(ms) {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      await Promise.race([ask(), late]);
      clearTimeout(timer);
    },
  };
}

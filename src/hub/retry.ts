import { setTimeout } from "node:timers/promises";
import { UsageError } from "../errors.ts";

/** A failure of the hub or the network that may soon pass: a lost connection, 429, 5xx. */
export class TransientError extends Error {
  override readonly name = "TransientError";
  /** How long the server asks us to wait. */
  readonly waitMs: number;

  constructor(message: string, waitMs: number = 0) {
    super(message);
    this.waitMs = waitMs;
  }
}

/** Eyrie has given up on the hub; the cache may still have what is needed. */
export class UnreachableError extends UsageError {}

/** Milliseconds between attempts: one attempt more than there are waits. */
export const WAITS: readonly number[] = [500, 1000, 2000, 4000, 8000];

/** The hub counts requests for 300 s. */
const LONGEST_WAIT_MS = 310_000;
/** A wait that a person notices: not for what is tried only twice. */
const LONG_WAIT_MS = 2000;
/** Bytes that show a connection works; the attempts are counted anew after them. */
const PROGRESS_BYTES = 1 << 20;

/** How often and how long. */
export interface Persistence {
  readonly waits: readonly number[];
  readonly signal?: AbortSignal | undefined;
  /** Called before a long wait. */
  readonly onWait?: (line: string) => void;
  /** Bytes received so far, over all attempts. */
  readonly received?: () => number;
}

/**
 * Repeats `attempt` until it succeeds, or until the waits are used up without progress.
 * @param what for the message: `Cannot get "org/name"`.
 * @throws UnreachableError with the last reason, or what `attempt` throws otherwise.
 */
export async function persist<T>(
  what: string,
  attempt: () => Promise<T>,
  { waits, signal, onWait = () => {}, received = () => 0 }: Persistence,
): Promise<T> {
  const longest = waits.length > 1 ? LONGEST_WAIT_MS : LONG_WAIT_MS;
  let failures = 0;
  let before = received();
  while (true) {
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof TransientError)) throw error;
      if (received() - before >= PROGRESS_BYTES) failures = 0;
      before = received();
      const wait = waits[failures];
      failures += 1;
      if (wait === undefined || error.waitMs > longest) {
        const times = failures === 1 ? "" : `, tried ${failures} times`;
        throw new UnreachableError(`${what}: ${error.message}${times}`, { cause: error });
      }
      const waitMs = Math.max(wait, error.waitMs);
      if (waitMs >= LONG_WAIT_MS) {
        onWait(`${what}: ${error.message}; trying again in ${Math.round(waitMs / 1000)} s`);
      }
      await setTimeout(waitMs, undefined, signal ? { signal } : {});
    }
  }
}

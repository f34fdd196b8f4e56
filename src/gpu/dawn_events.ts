/** Polls Dawn for what has happened on the device, without a turn of the event loop. */

/** How long the thread sleeps between two polls: a share of the time waited, within bounds. */
const SLEEP = { least: 0.02, most: 0.25, share: 0.02 };

/**
 * The addon polls while something is awaited: it hands a native function to the global `setImmediate`,
 * which does so again and again. That costs a core, and 9 to 17 ms a read while the H200 works for 5,
 * and on a software adapter the time of the very threads that it waits for. So the function is kept
 * where it can be called.
 */
export interface EventPoll {
  /** Polls once; false where the addon awaits nothing. */
  poll(): boolean;
  /** How often the addon has polled until now, for one instance of Dawn or another, also in turns of the event loop. */
  count(): number;
}

/** Polls by the `setImmediate` that catches their callbacks: a thread has one, however many devices it opens. */
const caught = new WeakMap<typeof globalThis.setImmediate, EventPoll>();

/** Replaces the thread's `setImmediate`; what others hand to it runs as before. */
export function catchPolls(): EventPoll {
  const { setImmediate, clearImmediate } = globalThis;
  const before = caught.get(setImmediate);
  if (before) return before;
  let handle: ReturnType<typeof setImmediate> | undefined;
  /** One for each instance of Dawn that awaits something. */
  let kept: (() => void)[] = [];
  let count = 0;

  function run(): boolean {
    const all = kept;
    kept = [];
    handle = undefined;
    for (const poll of all) poll();
    count += all.length;
    return all.length > 0;
  }

  const replaced = (callback: (...args: unknown[]) => void, ...args: unknown[]) => {
    if (!isNative(callback)) return setImmediate(callback, ...args);
    kept.push(() => callback(...args));
    return handle ??= setImmediate(run);
  };
  globalThis.setImmediate = replaced as typeof setImmediate;
  const polls = {
    poll() {
      if (handle !== undefined) clearImmediate(handle);
      return run();
    },
    count: () => count,
  };
  caught.set(globalThis.setImmediate, polls);
  return polls;
}

/**
 * Maps a buffer for reading; the thread sleeps meanwhile, as it does in Deno's own mapAsync.
 *
 * @param options.busyMs milliseconds from now before which it does not poll: for each poll the addon allocates a
 *   function of 750 bytes in V8's old space, which only a full garbage collection frees.
 * @param options.stillBusy is called if the first poll does not find it mapped.
 * @param options.meanwhile is called once, while the device works.
 */
export async function mappedByPolling(
  { poll }: Pick<EventPoll, "poll">,
  buffer: GPUBuffer,
  { busyMs = 0, stillBusy = () => {}, meanwhile = () => {} }: {
    readonly busyMs?: number;
    readonly stillBusy?: (() => void) | undefined;
    readonly meanwhile?: () => void;
  } = {},
): Promise<ArrayBuffer> {
  const until = performance.now() + busyMs;
  const mapped = buffer.mapAsync(GPUMapMode.READ);
  mapped.catch(() => {});
  meanwhile();
  const began = performance.now();
  if (until > began) sleep(until - began);
  for (let polls = 0; buffer.mapState === "pending"; polls++) {
    if (!poll()) break;
    if (buffer.mapState !== "pending") break;
    if (polls === 0) stillBusy();
    sleepSince(began);
  }
  // Else it failed, or the addon polls in another way.
  if (buffer.mapState !== "mapped") await mapped;
  return buffer.getMappedRange();
}

/**
 * Waits for a promise of the addon's. Other than `mappedByPolling` it lets the event loop turn, so that messages are
 * answered: what is waited for takes long.
 *
 * @param meanwhile is called before each turn.
 */
export async function settledByPolling<T>(
  { poll }: Pick<EventPoll, "poll">,
  promise: Promise<T>,
  meanwhile: () => void = () => {},
): Promise<T> {
  let settled = false;
  const tell = () => void (settled = true);
  promise.then(tell, tell);
  const began = performance.now();
  while (!settled && poll()) {
    meanwhile();
    await new Promise((turned) => setImmediate(turned));
    if (!settled) sleepSince(began);
  }
  return await promise;
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));

function sleepSince(began: number): void {
  const share = (performance.now() - began) * SLEEP.share;
  sleep(Math.min(SLEEP.most, Math.max(SLEEP.least, share)));
}

function sleep(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}

function isNative(callback: unknown): boolean {
  return Function.prototype.toString.call(callback).includes("[native code]");
}

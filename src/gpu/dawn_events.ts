/** Polls Dawn for what has happened on the device, without a turn of the event loop. */

/** How long the thread sleeps between two polls: a share of the time waited, within bounds. */
const SLEEP = { min: 0.02, max: 0.25, share: 0.02 };

/**
 * While something is awaited the addon polls: it hands a native function to the global `setImmediate`, and
 * that function hands itself over again and again. This keeps a core busy, and a read takes 9 to 17 ms
 * while the H200 works for 5. On a software adapter it takes time from the threads that it waits for. So the
 * function is caught and kept, and called once: by `poll`, or else in the next turn of the event loop.
 */
export interface EventPoll {
  /** Polls once; false where the addon awaits nothing. */
  poll(): boolean;
}

/** The poll of each replaced `setImmediate`: a thread replaces it once, however many devices it opens. */
const caught = new WeakMap<typeof globalThis.setImmediate, EventPoll>();

/** Replaces the thread's `setImmediate`. Callbacks that are not the addon's run as before. */
export function catchPolls(): EventPoll {
  const { setImmediate, clearImmediate } = globalThis;
  const before = caught.get(setImmediate);
  if (before) return before;
  let handle: ReturnType<typeof setImmediate> | undefined;
  /** The caught functions: one for each instance of Dawn that awaits something. */
  let kept: (() => void)[] = [];

  function run(): boolean {
    const all = kept;
    kept = [];
    handle = undefined;
    for (const poll of all) poll();
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
  };
  caught.set(globalThis.setImmediate, polls);
  return polls;
}

/**
 * Maps a buffer for reading; the thread sleeps meanwhile, as it does in Deno's own mapAsync.
 *
 * @param options.busyMs milliseconds from now in which it does not poll yet: for each poll the addon allocates a
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
  // Otherwise the map failed, or the addon polls in another way.
  if (buffer.mapState !== "mapped") await mapped;
  return buffer.getMappedRange();
}

/**
 * Waits for a promise of the addon. Such waits are long, so unlike `mappedByPolling` it lets the event loop turn, and
 * messages are answered meanwhile.
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
  sleep(Math.min(SLEEP.max, Math.max(SLEEP.min, share)));
}

function sleep(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}

function isNative(callback: unknown): boolean {
  return Function.prototype.toString.call(callback).includes("[native code]");
}

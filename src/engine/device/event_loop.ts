import { setImmediate, setTimeout } from "node:timers/promises";
import type { Gpu } from "../../gpu/device.ts";

/** Milliseconds between two turns of the event loop, without which timers, signals and the device's reports wait. */
const TURN_MS = 100;

/** Longest wait for messages that are on their way. */
const MESSAGES_MS = 2;

/**
 * Receives the messages sent to this thread, as long as `messageWaits` says that one waits. All of them arrive after
 * some 25 immediates (0.3 ms in Deno 2.9.6), none after one.
 */
export async function receiveMessages(messageWaits: () => boolean): Promise<void> {
  const until = performance.now() + MESSAGES_MS;
  while (messageWaits() && performance.now() < until) await setImmediate();
}

/**
 * Returns a function that takes a turn of the event loop at the first call, and then every TURN_MS. An engine in a
 * thread of its own has `messageWaits`, by which each call receives messages; it handles no signals, so two immediates
 * (2 us) are enough for the device's reports. Otherwise a turn waits for a timer (2 ms), because an immediate would
 * return before Deno has handled a signal.
 */
export function yieldToEventLoop(messageWaits?: () => boolean): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (messageWaits) await receiveMessages(messageWaits);
    if (performance.now() - last < TURN_MS) return;
    if (messageWaits) await setImmediate().then(() => setImmediate());
    else await setTimeout(1);
    last = performance.now();
  };
}

/** Throws what the device has reported until now: reports come with a turn of the event loop. */
export async function throwDeviceErrors(gpu: Pick<Gpu, "check">): Promise<void> {
  await yieldToEventLoop()();
  gpu.check();
}

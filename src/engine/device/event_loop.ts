import { setImmediate, setTimeout } from "node:timers/promises";
import type { Gpu } from "../../gpu/device.ts";

/** Timers, signals and the device's reports wait while the GPU is read or fed. */
const TURN_MS = 100;

/** Longest wait for messages that are on their way. */
const MAIL_MS = 2;

/**
 * Receives what was sent to this thread, where there is `mail`. All of it comes after some 25
 * immediates (0.3 ms in Deno 2.9.6), none of it after one.
 */
export async function receiveMail(mail: () => boolean): Promise<void> {
  const until = performance.now() + MAIL_MS;
  while (mail() && performance.now() < until) await setImmediate();
}

/**
 * Turns of the event loop, at once and then every TURN_MS. In a thread of its own, which says when
 * there is `mail`, the engine receives that each time and handles no signals: two immediates (2 us)
 * are enough for the device's reports. Otherwise a turn waits for a timer (2 ms): an immediate would
 * come back before Deno has handled a signal.
 */
export function yieldToEventLoop(mail?: () => boolean): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (mail) await receiveMail(mail);
    if (performance.now() - last < TURN_MS) return;
    if (mail) await setImmediate().then(() => setImmediate());
    else await setTimeout(1);
    last = performance.now();
  };
}

/** Throws what the device has reported until now: reports come with a turn of the event loop. */
export async function throwDeviceErrors(gpu: Pick<Gpu, "check">): Promise<void> {
  await yieldToEventLoop()();
  gpu.check();
}

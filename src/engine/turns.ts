import { setTimeout } from "node:timers/promises";
import type { Gpu } from "../gpu/device.ts";

/** Timers and signals wait while the GPU is read or fed; a turn takes 2 ms, so not each time. */
const TURN_MS = 100;

/** Gives timers and signals a turn, at once and then every TURN_MS. */
export function turns(): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (performance.now() - last < TURN_MS) return;
    // setImmediate would come back before Deno has heard a signal.
    await setTimeout(1);
    last = performance.now();
  };
}

/** Throws what the device has reported until now: reports come with a turn of the event loop. */
export async function heard(gpu: Pick<Gpu, "check">): Promise<void> {
  await turns()();
  gpu.check();
}

import { setImmediate, setTimeout } from "node:timers/promises";
import type { Gpu } from "../../gpu/device.ts";

/** Timers and signals wait while the GPU is read or fed; a turn takes 2 ms, so not each time. */
const TURN_MS = 100;

/**
 * Gives timers and signals a turn, at once and then every TURN_MS; messages of other threads whenever
 * there is `mail`, which takes 0.4 ms.
 */
export function turns(mail: () => boolean = () => false): () => Promise<void> {
  let last = -Infinity;
  return async () => {
    if (mail()) await setImmediate();
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

import type { Gpu } from "./device.ts";
import { openProfiler } from "./profile.ts";
import { type Program, submit } from "./program.ts";
import { openReadback } from "./readback.ts";

/** Times one program at a time. */
export interface Timer extends Disposable {
  /** The clock that is read: the device's timestamps, or the host's clock if the adapter has no timestamps. */
  readonly clock: "device" | "host";
  /** Runs a program in a submission of its own: milliseconds. */
  ms(program: Program): Promise<number>;
}

/** Opens a timer. On the host's clock a time ends when a read that waits for the program returns. */
export async function openTimer(gpu: Gpu): Promise<Timer> {
  if (gpu.info.features.includes("timestamp-query")) {
    const profiler = await openProfiler(gpu, { queries: 2 });
    return {
      clock: "device",
      ms: async (program) => (await profiler.time([program]))[0]?.end ?? NaN,
      [Symbol.dispose]: () => profiler[Symbol.dispose](),
    };
  }
  const readback = await openReadback(gpu, 1);
  return {
    clock: "host",
    async ms(program) {
      const start = performance.now();
      submit(gpu, program);
      await readback.read();
      return performance.now() - start;
    },
    [Symbol.dispose]: () => readback[Symbol.dispose](),
  };
}

/** Has V8 collect the functions that polling Dawn leaves behind, before there are so many that it takes long. */
import v8 from "node:v8";
import vm from "node:vm";

/**
 * Polls whose functions are collected together. A collection takes 13 ms and more without any, and Deno needs time for
 * each that grows with their number: on two cores 2 ms for 1,000, 20 for 2,000, 160 for 5,000 and 3 to 8 s for 20,000.
 */
const POLLS = 2000;

/** The same where the device has work for long, as a prompt's forward: it comes with prompts, if there are any. */
const LASTING_POLLS = 1000;

export interface Collector {
  /**
   * Collects if there were enough polls since the last time; called while the device is busy, `lasting` where that
   * takes tens of milliseconds.
   */
  collectOverdue(lasting?: boolean): void;
}

/**
 * For each poll the addon allocates a function in V8's old space, which only a full collection frees; V8 itself runs
 * one after minutes. What a round leaves behind (encoders, passes and command buffers) is in the young space, and V8
 * frees it with a scavenge in 2 ms.
 *
 * @param run a full collection.
 * @param polls how often the addon has polled until now, see dawn_events.ts.
 */
export function openCollector(run: () => void, polls: () => number): Collector {
  let collected = 0;
  return {
    collectOverdue(lasting = false) {
      const now = polls();
      if (now - collected < (lasting ? LASTING_POLLS : POLLS)) return;
      collected = now;
      run();
    },
  };
}

/** V8 has it in contexts that are made while the flag is set; undefined where Deno does not allow setting it. */
export function collectorOfV8(): (() => void) | undefined {
  try {
    v8.setFlagsFromString("--expose-gc");
    const gc: unknown = vm.runInNewContext("globalThis.gc");
    v8.setFlagsFromString("--no-expose-gc");
    return typeof gc === "function" ? () => void gc() : undefined;
  } catch {
    return undefined;
  }
}

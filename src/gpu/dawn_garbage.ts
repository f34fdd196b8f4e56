/** Makes V8 collect the functions that polling Dawn leaves behind, before there are so many that collecting is slow. */
import v8 from "node:v8";
import vm from "node:vm";

/**
 * Polls after which their functions are collected. A collection without any takes 13 ms and more. Their own share grows
 * faster than their number: on two cores 2 ms for 1,000, 20 for 2,000, 160 for 5,000 and 3 to 8 s for 20,000.
 */
const POLLS = 2000;

/** The same while the device is busy for long, as with a prompt's forward: a good time to collect, so fewer suffice. */
const LASTING_POLLS = 1000;

export interface Collector {
  /**
   * Collects if there were enough polls since the last collection. Call it while the device is busy, with `lasting`
   * where that takes tens of milliseconds.
   */
  collectOverdue(lasting?: boolean): void;
}

/**
 * For each poll the addon allocates a function in V8's old space, which only a full collection frees; V8 by itself runs
 * one after minutes. Objects of a round (encoders, passes and command buffers) are in the young space, which V8
 * scavenges in 2 ms.
 *
 * @param run runs a full collection.
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

/**
 * Returns V8's `gc`, which exists only in contexts made while --expose-gc is set; undefined where Deno does not allow
 * setting the flag.
 */
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

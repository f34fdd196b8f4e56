/** Makes V8 collect the functions that polling Dawn leaves behind, before there are so many that collecting is slow. */
import v8 from "node:v8";
import vm from "node:vm";

/**
 * Dead functions of polls after which they are collected. A collection without any takes 13 ms and more. Their own
 * share grows faster than their number: on two cores 2 ms for 1,000, 20 for 2,000, 160 for 5,000 and 3 to 8 s for
 * 20,000.
 */
const FUNCTIONS = 3000;

/** The same while the device is busy for long, as with a prompt's forward: a good time to collect, so fewer suffice. */
const LASTING_FUNCTIONS = 2000;

export interface Collector {
  /**
   * Collects if there are enough dead functions. Call it while the device is busy, with `lasting` where that takes tens
   * of milliseconds.
   */
  collectOverdue(lasting?: boolean): void;
}

/**
 * For each poll the addon allocates a function in V8's old space, held by a handle, which only a full collection frees.
 * V8 runs one by itself, in small steps, once other garbage fills its old space: after seconds with many requests,
 * after minutes with one. Objects of a round (encoders, passes and command buffers) are in the young space, which V8
 * scavenges in 2 ms.
 *
 * @param run runs a full collection.
 * @param handles how many handles V8 has now. What they have grown by since they were fewest is taken for functions.
 */
export function openCollector(run: () => void, handles: () => number): Collector {
  let fewest = Infinity;
  return {
    collectOverdue(lasting = false) {
      const now = handles();
      fewest = Math.min(fewest, now);
      if (now - fewest < (lasting ? LASTING_FUNCTIONS : FUNCTIONS)) return;
      run();
      fewest = handles();
    },
  };
}

/** Bytes of a handle in V8's statistics. */
const HANDLE_BYTES = 32;

/** How many handles V8 has. */
export function handlesOfV8(): number {
  return v8.getHeapStatistics().used_global_handles_size / HANDLE_BYTES;
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

/** Has V8 collect what looks at Dawn leave behind, before that takes long. */
import v8 from "node:v8";
import vm from "node:vm";

/**
 * Looks whose functions are collected together. A collection takes 13 ms and more without any, and Deno needs time for
 * each that grows with their number: on two cores 2 ms for 1,000, 20 for 2,000, 160 for 5,000 and 3 to 8 s for 20,000.
 */
const LOOKS = 2000;

/** The same where the device has work for long, as a prompt's forward: it comes with prompts, if there are any. */
const LASTING_LOOKS = 1000;

export interface Collector {
  /** Something has looked once whether Dawn is done, see dawn_events.ts. */
  looked(): void;
  /**
   * Collects if there was reason enough; called while the device has something to do, `lasting` where that takes tens
   * of milliseconds.
   */
  collectOverdue(lasting?: boolean): void;
}

/**
 * For each look the addon makes a function that V8 allocates among what is to stay, so that only a collection of
 * everything frees it; V8 itself comes to that after minutes. What a round leaves behind (encoders, passes and command
 * buffers) is young, and V8 frees it now and then in 2 ms.
 *
 * @param run collects everything.
 */
export function openCollector(run: () => void): Collector {
  let looks = 0;
  return {
    looked: () => void looks++,
    collectOverdue(lasting = false) {
      if (looks < (lasting ? LASTING_LOOKS : LOOKS)) return;
      looks = 0;
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

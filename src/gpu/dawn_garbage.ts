/** Has V8 collect what rounds on Dawn leave behind, a little at a time. */
import v8 from "node:v8";
import vm from "node:vm";

/** Milliseconds between two collections, see docs/kernels/small_models.md. */
const INTERVAL = 500;

/**
 * The same where the device has work for long, as the forward of a prompt: with an engine of 8B and 64 requests the round
 * with a collection took 30 ms longer than the others. So it comes with prompts, where there are any.
 */
const LASTING_INTERVAL = 250;

/** Milliseconds that a collection waits for somebody to have been told of it, who gives the device enough to do. */
const GRACE = 100;

/** Milliseconds of a collection, until there was one: of an engine of 8B on a machine with an H200. */
const USUAL_MS = 35;

/** Collects garbage, not too often. */
export interface Collector {
  /**
   * Collects if that is due and `dueMs` has said so, or soon after; called while the device has something to do, `lasting`
   * where that takes tens of milliseconds.
   */
  collect(lasting?: boolean): void;
  /** Milliseconds that the next `collect` will take, as long as the last one did; 0: it will not collect. */
  dueMs(): number;
}

/**
 * Dawn frees encoders, passes and command buffers when V8 finds that nobody refers to them. V8 itself looks for that
 * every thousand rounds and more, and freeing all of them takes 0.3 to 1.3 s, in the middle of a text.
 */
export function openCollector(
  collect: () => void = collectorOfV8() ?? (() => {}),
  now: () => number = () => performance.now(),
): Collector {
  let last = now();
  let ms = USUAL_MS;
  let isTold = false;
  const isDue = (interval: number) => now() - last >= interval;
  return {
    collect(lasting = false) {
      const alone = isTold ? INTERVAL : INTERVAL + GRACE;
      if (!isDue(lasting ? LASTING_INTERVAL : alone)) return;
      const began = now();
      collect();
      last = now();
      ms = last - began;
      isTold = false;
    },
    dueMs() {
      isTold = isDue(INTERVAL);
      return isTold ? ms : 0;
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

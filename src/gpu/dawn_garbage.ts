/** Has V8 collect what rounds on Dawn leave behind, a little at a time. */
import v8 from "node:v8";
import vm from "node:vm";

/** Milliseconds between two collections, see docs/kernels/small_models.md. */
const INTERVAL = 500;

/**
 * The same where the device has work for long, as the forward of a prompt: with an engine of 8B and 64 requests the
 * round with a collection took 30 ms longer than the others. So it comes with prompts, where there are any.
 */
const LASTING_INTERVAL = 250;

/** Milliseconds after which it is collected although nobody has called `collect`: the device may have little to do. */
const FORGOTTEN_INTERVAL = 600;

/** Milliseconds of a collection, until there was one: of an engine of 8B on a machine with an H200. */
const USUAL_MS = 35;

/** What the host has to collect, which keeps it from anything else for that long. */
export interface Garbage {
  /** Milliseconds that a collection takes, as long as the last one; 0: none is due. */
  dueMs(): number;
  /** Collects; called where the device has work for as long. */
  collect(): void;
}

/** Garbage that is also collected where nobody has called `collect` for long. */
export interface Collector extends Garbage {
  /**
   * Collects if that is overdue; called while the device has something to do, `lasting` where that takes tens of
   * milliseconds.
   */
  collectOverdue(lasting?: boolean): void;
}

/**
 * Dawn frees encoders, passes and command buffers when V8 finds that nobody refers to them. V8 itself looks for that
 * every thousand rounds and more, and freeing all of them takes 0.3 to 1.3 s, in the middle of a text.
 */
export function openCollector(
  run: () => void,
  now: () => number = () => performance.now(),
): Collector {
  let last = now();
  let ms = USUAL_MS;
  function collect(): void {
    const began = now();
    run();
    last = now();
    ms = last - began;
  }
  return {
    dueMs: () => now() - last >= INTERVAL ? ms : 0,
    collect,
    collectOverdue(lasting = false) {
      if (now() - last >= (lasting ? LASTING_INTERVAL : FORGOTTEN_INTERVAL)) collect();
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

import { UsageError } from "../errors.ts";

/** Finds the first stop text in an output that arrives in pieces. */
export interface StopScanner {
  /** `text` may be shown now; `stopped` once a stop text is complete, and then for good. */
  push(piece: string): { readonly text: string; readonly stopped: boolean };
  /** Called when the output ends; returns the text that was held back because a stop might have begun there. */
  end(): string;
}

/**
 * A scanner for `stops`. The output ends where the first stop text becomes complete and leaves that
 * text out; of several that end together the longest counts. So the result does not depend on how
 * the output was cut into pieces, and nothing is held back but a tail that may begin a stop.
 * @throws UsageError when a stop text is empty.
 */
export function stopScanner(stops: readonly string[]): StopScanner {
  if (stops.includes("")) throw new UsageError(`Cannot stop at "": the text is empty`);
  if (stops.length === 0) {
    return { push: (text) => ({ text, stopped: false }), end: () => "" };
  }
  let held = "";
  let stopped = false;
  return {
    push: (piece) => {
      if (stopped) return { text: "", stopped };
      const text = held + piece;
      const at = firstStop(text, stops);
      stopped = at !== undefined;
      const end = at ?? text.length - openTail(text, stops);
      held = stopped ? "" : text.slice(end);
      return { text: text.slice(0, end), stopped };
    },
    end: () => {
      const text = held;
      held = "";
      return text;
    },
  };
}

/** Where the stop that is complete first begins; undefined when none is complete. */
function firstStop(text: string, stops: readonly string[]): number | undefined {
  const found = stops
    .map((stop) => ({ begin: text.indexOf(stop), length: stop.length }))
    .filter(({ begin }) => begin >= 0)
    .toSorted((a, b) => (a.begin + a.length) - (b.begin + b.length) || a.begin - b.begin);
  return found[0]?.begin;
}

/** Length of the longest end of `text` that begins a stop. */
function openTail(text: string, stops: readonly string[]): number {
  const longest = Math.max(0, ...stops.map((stop) => stop.length - 1));
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const tail = text.slice(-length);
    if (stops.some((stop) => stop.startsWith(tail))) return length;
  }
  return 0;
}
